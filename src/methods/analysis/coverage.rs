//! How the suite is made up: cases of each category, and how many of them a positive control gates.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::{CaseRow, Table};
use crate::domain::case::Category;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoverageRow {
    /// None for all cases together.
    pub category: Option<Category>,
    pub n_cases: usize,
    /// Number of controls → cases that so many gate; cases of which it is not known are in none.
    pub by_controls: BTreeMap<usize, usize>,
    /// Gated by at least one ÷ those of which it is known.
    pub share: Option<f64>,
}

/// A row for all cases, then one for each category that has a case.
pub fn coverage(table: &Table<'_>) -> Vec<CoverageRow> {
    let categories = Category::ALL.into_iter().map(Some);
    std::iter::once(None)
        .chain(categories)
        .map(|category| {
            let is_in = |case: &&CaseRow<'_>| category.is_none_or(|c| c == case.category);
            row(category, table.cases.iter().filter(is_in))
        })
        .filter(|row| row.category.is_none() || row.n_cases > 0)
        .collect()
}

fn row<'a>(
    category: Option<Category>,
    cases: impl Iterator<Item = &'a CaseRow<'a>>,
) -> CoverageRow {
    let (mut n_cases, mut by_controls) = (0, BTreeMap::new());
    for case in cases {
        n_cases += 1;
        if let Some(n) = case.n_controls {
            *by_controls.entry(n).or_default() += 1;
        }
    }
    let known: usize = by_controls.values().sum();
    let gated = known - by_controls.get(&0).copied().unwrap_or(0);
    CoverageRow {
        category,
        n_cases,
        by_controls,
        share: (known > 0).then(|| gated as f64 / known as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{World, worlds_rows};
    use super::*;

    #[test]
    fn gated_cases_are_counted_by_category() {
        let mut rows = worlds_rows(World::default());
        let table = Table::new(&rows);
        let found = coverage(&table);
        // Variants 0, 3, … have no control, 1, 4, … one and 2, 5, … two.
        let all = &found[0];
        assert_eq!((all.category, all.n_cases), (None, table.cases.len()));
        assert_eq!(all.by_controls.values().sum::<usize>(), all.n_cases);
        let gated = all.by_controls[&1] + all.by_controls[&2];
        assert_eq!(all.share, Some(gated as f64 / all.n_cases as f64));
        assert_eq!(found[1].category, Some(Category::Permissions));
        assert_eq!(found.len(), 3);
        for row in &mut rows {
            row.n_controls = None;
        }
        assert_eq!(coverage(&Table::new(&rows))[0].share, None);
    }
}
