//! Which cases could go without loss of reliability, and how many more would be needed for a wanted one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::statistics::{Reliabilities, kr20, lengthening, pearson};
use super::table::{Complete, Table};
use crate::domain::case::{CaseId, Category};
use crate::domain::results::Group;

/// So many cases more are tried a group.
const N_MORE: usize = 10;

/// Over the candidates and cases that KR-20 is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    pub n_cases: usize,
    pub kr20: f64,
    /// In the order in which they go, each the one without which KR-20 is highest.
    pub dropped: Vec<Dropped>,
    /// How the rates on the kept cases go with those on all.
    pub correlation: Option<f64>,
    /// The same choice made on one half of the models and looked at on the other.
    pub held_out: Option<HeldOut>,
    pub wanted: f64,
    /// Cases that the suite needs more, all like its average, for the wanted reliability; 0 when it has it.
    pub n_more: Option<usize>,
    /// KR-20 with ten cases more like those of a group, the best first.
    pub more: Vec<More>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dropped {
    pub case: CaseId,
    /// KR-20 of what is left.
    pub kr20: f64,
}

/// Means over both ways round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeldOut {
    /// Of all cases.
    pub all: f64,
    /// Of the kept ones.
    pub kept: f64,
    pub n_kept: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct More {
    pub group: Group,
    pub kr20: f64,
}

/// Cases go one by one (backward elimination) as long as KR-20 stays at least what it is with all. The last case of a
/// category stays: reliability says nothing of what a suite is about. `None` when there is no KR-20, or it is not above
/// 0.
///
/// The choice fits the candidates it was made on; `held_out` shows how much of it holds for other models: those of even
/// and odd places by overall rate are the halves.
pub fn selection(table: &Table<'_>, wanted: f64) -> Option<Selection> {
    let complete = table.complete();
    let all: Vec<usize> = (0..complete.cases.len()).collect();
    let whole = kr20(&complete.passed).filter(|kr20| *kr20 > 0.0)?;
    let categories: Vec<Category> = complete
        .cases
        .iter()
        .map(|case| table.cases[*case].category)
        .collect();
    let dropped = drop_while_as_good(&complete.passed, &categories)?;
    let gone: Vec<usize> = dropped.iter().map(|(item, _)| *item).collect();
    let kept: Vec<usize> = all
        .iter()
        .copied()
        .filter(|idx| !gone.contains(idx))
        .collect();
    let totals: Vec<(f64, f64)> = complete
        .passed
        .iter()
        .map(|passed| {
            let sum = |items: &[usize]| items.iter().filter(|item| passed[**item]).count() as f64;
            (sum(&all), sum(&kept))
        })
        .collect();
    let reliabilities = reliabilities(&complete.passed, &all);
    let mut more: Vec<More> = table
        .groups
        .iter()
        .filter_map(|group| {
            let like: Vec<usize> = all
                .iter()
                .copied()
                .filter(|idx| table.cases[complete.cases[*idx]].group == *group)
                .collect();
            let kr20 = reliabilities.with_more(&complete.passed, &like, N_MORE)?;
            Some(More {
                group: *group,
                kr20,
            })
        })
        .collect();
    more.sort_by(|a, b| b.kr20.total_cmp(&a.kr20).then(a.group.cmp(&b.group)));
    let n_cases = all.len();
    Some(Selection {
        n_cases,
        kr20: whole,
        dropped: dropped
            .into_iter()
            .map(|(item, kr20)| Dropped {
                case: table.cases[complete.cases[item]].id.clone(),
                kr20,
            })
            .collect(),
        correlation: pearson(&totals),
        held_out: held_out(table, &complete, &categories),
        wanted,
        n_more: lengthening(whole, wanted)
            .map(|times| ((times - 1.0).max(0.0) * n_cases as f64).ceil() as usize),
        more,
    })
}

fn reliabilities(passed: &[Vec<bool>], items: &[usize]) -> Reliabilities {
    let part: Vec<Vec<bool>> = passed
        .iter()
        .map(|person| items.iter().map(|item| person[*item]).collect())
        .collect();
    Reliabilities::new(&part, &vec![1; items.len()], &vec![1; passed.len()])
}

/// The items that go, in their order, with the KR-20 of what is left; None when there is no KR-20 to begin with.
fn drop_while_as_good(passed: &[Vec<bool>], categories: &[Category]) -> Option<Vec<(usize, f64)>> {
    let mut kept: Vec<usize> = (0..categories.len()).collect();
    let whole = kr20(passed)?;
    let mut left: BTreeMap<Category, usize> = BTreeMap::new();
    for category in categories {
        *left.entry(*category).or_default() += 1;
    }
    let mut dropped = Vec::new();
    loop {
        let reliabilities = reliabilities(passed, &kept);
        let best = (0..kept.len())
            .filter(|idx| left[&categories[kept[*idx]]] > 1)
            .filter_map(|idx| Some((idx, reliabilities.without(idx)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        match best {
            Some((idx, kr20)) if kr20 >= whole => {
                let item = kept.remove(idx);
                *left.get_mut(&categories[item]).expect("it was counted") -= 1;
                dropped.push((item, kr20));
            }
            _ => return Some(dropped),
        }
    }
}

fn held_out(table: &Table<'_>, complete: &Complete, categories: &[Category]) -> Option<HeldOut> {
    let n_passed = |model: &[usize]| -> f64 {
        let rows = complete.candidates.iter().zip(&complete.passed);
        let own: Vec<f64> = rows
            .filter(|(candidate, _)| model.contains(candidate))
            .map(|(_, passed)| passed.iter().filter(|passed| **passed).count() as f64)
            .collect();
        own.iter().sum::<f64>() / own.len().max(1) as f64
    };
    let mut models: Vec<(f64, &Vec<usize>)> = table
        .models
        .iter()
        .map(|model| (n_passed(&model.builds), &model.builds))
        .collect();
    models.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let half = |parity: usize| -> Vec<Vec<bool>> {
        let chosen: Vec<usize> = models
            .iter()
            .skip(parity)
            .step_by(2)
            .flat_map(|(_, builds)| builds.iter().copied())
            .collect();
        let rows = complete.candidates.iter().zip(&complete.passed);
        rows.filter(|(candidate, _)| chosen.contains(candidate))
            .map(|(_, passed)| passed.clone())
            .collect()
    };
    let halves = [half(0), half(1)];
    let one_way = |chosen_on: usize| {
        let other = &halves[1 - chosen_on];
        let dropped = drop_while_as_good(&halves[chosen_on], categories)?;
        let kept: Vec<usize> = (0..categories.len())
            .filter(|idx| !dropped.iter().any(|(item, _)| item == idx))
            .collect();
        let n_kept = kept.len() as f64;
        Some((kr20(other)?, reliabilities(other, &kept).whole()?, n_kept))
    };
    let (first, second) = (one_way(0)?, one_way(1)?);
    Some(HeldOut {
        all: (first.0 + second.0) / 2.0,
        kept: (first.1 + second.1) / 2.0,
        n_kept: (first.2 + second.2) / 2.0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{World, worlds_rows};
    use super::*;
    use crate::domain::results::Status;

    #[test]
    fn what_tells_nothing_goes_first_and_a_category_stays() {
        let mut rows = worlds_rows(World {
            models: &[0.2, 0.4, 0.6, 0.8],
            ..World::default()
        });
        let turned = rows[0].case.clone();
        let category = rows[0].category;
        for row in rows.iter_mut().filter(|row| row.case == turned) {
            let weak = row.model.as_str() < "m02";
            row.status = if weak { Status::Pass } else { Status::Fail };
        }
        let table = Table::new(&rows);
        let found = selection(&table, 0.99).unwrap();
        assert_eq!(found.dropped[0].case, turned);
        assert!(
            found
                .dropped
                .iter()
                .all(|dropped| dropped.kr20 >= found.kr20)
        );
        assert!(found.dropped.len() < found.n_cases && found.correlation.unwrap() > 0.8);
        assert!(found.n_more.unwrap() > 0);
        let held_out = found.held_out.unwrap();
        let own = found.dropped.last().unwrap().kr20;
        assert!(
            held_out.kept < own,
            "a choice flatters the data it was made on"
        );
        assert_eq!(selection(&table, found.kr20 / 2.0).unwrap().n_more, Some(0));

        let lone = rows
            .iter()
            .filter(|row| row.category != category || row.case == turned);
        let lone: Vec<_> = lone.cloned().collect();
        let found = selection(&Table::new(&lone), 0.9).unwrap();
        assert!(found.dropped.iter().all(|dropped| dropped.case != turned));
        assert_eq!(selection(&Table::new(&[]), 0.9), None);
    }
}
