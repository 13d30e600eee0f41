//! What each case is worth: how hard it is, how well it tells candidates apart, and what the suite would lose with it.

use serde::Serialize;

use super::super::statistics::{Ability, ItemCurve, Reliabilities, item_response, pearson};
use super::table::Table;
use crate::domain::case::{CaseId, Category};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Items {
    pub cases: Vec<ItemRow>,
    pub abilities: Vec<CandidateAbility>,
    /// Whether the item response model settled; None when there was nothing to fit.
    pub settled: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemRow {
    pub case: CaseId,
    pub category: Category,
    pub counted: usize,
    pub passed: usize,
    /// Passed ÷ counted: the classical difficulty, 1 the easiest.
    pub rate: Option<f64>,
    /// The point-biserial correlation of passing it with the candidate's rate on its other cases.
    pub discrimination: Option<f64>,
    /// Two-parameter item response curve.
    pub curve: Option<ItemCurve>,
    /// KR-20 of the suite without it; None also when it is not among the cases that KR-20 is of.
    pub kr20_without: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateAbility {
    pub candidate: String,
    pub ability: Option<Ability>,
}

/// Discrimination is corrected for the case itself (Henrysson 1963): it is Pearson's correlation of the outcome with the
/// pass rate on all other counted cases. `None` for fewer than three candidates, or when all pass or all fail.
pub fn items(table: &Table<'_>) -> Items {
    let outcomes: Vec<Vec<Option<bool>>> = table
        .candidates
        .iter()
        .map(|candidate| {
            (0..table.cases.len())
                .map(|idx| candidate.passed(idx))
                .collect()
        })
        .collect();
    let totals: Vec<(f64, f64)> = outcomes
        .iter()
        .map(|seen| {
            let counted = seen.iter().flatten();
            let passed = counted.clone().filter(|passed| **passed).count();
            (passed as f64, counted.count() as f64)
        })
        .collect();
    let complete = table.complete();
    let reliabilities = Reliabilities::new(
        &complete.passed,
        &vec![1; complete.cases.len()],
        &vec![1; complete.candidates.len()],
    );
    let response = item_response(&outcomes);
    let cases = table
        .cases
        .iter()
        .enumerate()
        .map(|(idx, case)| {
            let seen: Vec<bool> = outcomes.iter().filter_map(|seen| seen[idx]).collect();
            let passed = seen.iter().filter(|passed| **passed).count();
            let pairs: Vec<(f64, f64)> = outcomes
                .iter()
                .zip(&totals)
                .filter_map(|(seen, (sum, counted))| {
                    let own = f64::from(u8::from(seen[idx]?));
                    (*counted > 1.0).then(|| (own, (sum - own) / (counted - 1.0)))
                })
                .collect();
            let complete_idx = complete.cases.iter().position(|case| *case == idx);
            ItemRow {
                case: case.id.clone(),
                category: case.category,
                counted: seen.len(),
                passed,
                rate: (!seen.is_empty()).then(|| passed as f64 / seen.len() as f64),
                discrimination: pearson(&pairs),
                curve: response.as_ref().and_then(|response| response.items[idx]),
                kr20_without: complete_idx.and_then(|idx| reliabilities.without(idx)),
            }
        })
        .collect();
    let abilities = table.candidates.iter().enumerate();
    Items {
        cases,
        abilities: abilities
            .map(|(idx, candidate)| CandidateAbility {
                candidate: candidate.name.to_owned(),
                ability: response.as_ref().and_then(|response| response.persons[idx]),
            })
            .collect(),
        settled: response.map(|response| response.settled),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{World, worlds_rows};
    use super::*;
    use crate::domain::results::Status;

    #[test]
    fn a_case_that_the_weak_pass_discriminates_backwards() {
        let mut rows = worlds_rows(World {
            models: &[0.2, 0.4, 0.6, 0.8],
            ..World::default()
        });
        let (turned, floor) = (rows[0].case.clone(), rows[1].case.clone());
        for row in &mut rows {
            let weak = row.model.as_str() < "m02";
            row.status = match &row.case {
                case if *case == turned && weak => Status::Pass,
                case if *case == turned || *case == floor => Status::Fail,
                _ => continue,
            };
        }
        let found = items(&Table::new(&rows));
        let item = |wanted: &CaseId| {
            found
                .cases
                .iter()
                .find(|item| item.case == *wanted)
                .unwrap()
        };
        assert!(item(&turned).discrimination.unwrap() < -0.5);
        let whole = super::super::analyse(&rows).reliability.kr20;
        assert!(
            item(&turned).kr20_without > whole,
            "the suite is better without it"
        );
        let floor = item(&floor);
        assert_eq!((floor.rate, floor.discrimination), (Some(0.0), None));
        assert_eq!(floor.curve, None);
        assert_eq!(found.settled, Some(true));
        let ability = |idx: usize| found.abilities[idx].ability.unwrap().mean;
        assert!(ability(0) < ability(11));
    }
}
