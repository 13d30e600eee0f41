//! What only several candidates together show: what cases tell apart, reliability, ranks, correlations.

use std::collections::BTreeMap;

use super::super::statistics::{kr20, mean, pearson, ranks};
use super::table::{CandidateRow, Part, Table};
use super::{Correlations, GroupRow, ModelRanks, ModelRates, PairCorrelation, Reliability};
use crate::domain::case::CaseId;
use crate::domain::results::{Group, Status};

pub(super) fn group_row(
    table: &Table<'_>,
    models: &[ModelRates],
    group: Option<Group>,
) -> GroupRow {
    let spread = |model: &ModelRates| match group {
        None => model.rates.overall.mean,
        Some(group) => model.rates.groups[&group].mean,
    };
    let means: Vec<f64> = models.iter().filter_map(spread).collect();
    let gap = (means.len() >= 2).then(|| {
        let best = means.iter().copied().fold(f64::MIN, f64::max);
        let worst = means.iter().copied().fold(f64::MAX, f64::min);
        best - worst
    });
    let mut row = GroupRow {
        group,
        n_cases: 0,
        average: mean(&means),
        gap,
        floor: 0,
        ceiling: 0,
        discriminating: 0,
        undecided: 0,
    };
    let part = group.map_or(Part::All, Part::Group);
    for id in table
        .cases
        .iter()
        .filter(|(_, case)| case.is_in(part))
        .map(|(id, _)| id)
    {
        row.n_cases += 1;
        let seen = |status: Option<Status>| {
            let candidates = table.candidates.values();
            candidates.filter(move |c| c.seen.get(id).copied() == status)
        };
        let n_passed = seen(Some(Status::Pass)).count();
        let n_failed = seen(Some(Status::Fail)).count();
        match (n_passed, n_failed) {
            (1.., 1..) => row.discriminating += 1,
            _ if n_passed + n_failed < table.candidates.len() => row.undecided += 1,
            (0, _) => row.floor += 1,
            (_, 0) => row.ceiling += 1,
        }
    }
    row
}

pub(super) fn reliability(table: &Table<'_>) -> Reliability {
    let counts = |status: &Status| matches!(status, Status::Pass | Status::Fail);
    let candidates: Vec<&CandidateRow<'_>> = table
        .candidates
        .values()
        .filter(|candidate| candidate.seen.values().any(counts))
        .collect();
    let complete: Vec<&CaseId> = table
        .cases
        .keys()
        .copied()
        .filter(|case| {
            let mut seen = candidates.iter().map(|c| c.seen.get(case));
            !candidates.is_empty() && seen.all(|status| status.is_some_and(counts))
        })
        .collect();
    let persons: Vec<Vec<bool>> = candidates
        .iter()
        .map(|candidate| {
            let status = complete.iter().map(|case| candidate.seen[case]);
            status.map(|status| status == Status::Pass).collect()
        })
        .collect();
    Reliability {
        kr20: kr20(&persons),
        n_candidates: candidates.len(),
        n_cases: complete.len(),
        candidates_left_out: table.candidates.len() - candidates.len(),
        cases_left_out: table.cases.len() - complete.len(),
    }
}

pub(super) fn model_ranks(models: &[ModelRates]) -> Vec<ModelRanks> {
    if models.len() < 2 {
        return Vec::new();
    }
    let ranked = |value: &dyn Fn(&ModelRates) -> Option<f64>| -> BTreeMap<&str, usize> {
        let (names, values): (Vec<&str>, Vec<f64>) = models
            .iter()
            .filter_map(|model| Some((model.model.as_str(), value(model)?)))
            .unzip();
        names.into_iter().zip(ranks(&values)).collect()
    };
    let overall = ranked(&|model| model.rates.overall.mean);
    let groups: BTreeMap<Group, BTreeMap<&str, usize>> = Group::MAIN
        .into_iter()
        .map(|group| (group, ranked(&|model| group_mean(model, group))))
        .collect();
    let mut all: Vec<ModelRanks> = models
        .iter()
        .filter_map(|model| {
            let name = model.model.as_str();
            let of_groups: BTreeMap<Group, usize> = groups
                .iter()
                .filter_map(|(group, ranks)| Some((*group, *ranks.get(name)?)))
                .collect();
            let worst = of_groups.values().max();
            let best = of_groups.values().min();
            Some(ModelRanks {
                model: name.to_owned(),
                overall: *overall.get(name)?,
                movement: worst.zip(best).map(|(worst, best)| worst - best),
                groups: of_groups,
            })
        })
        .collect();
    all.sort_by(|a, b| (a.overall, &a.model).cmp(&(b.overall, &b.model)));
    all
}

pub(super) fn correlations(models: &[ModelRates]) -> Correlations {
    let present: Vec<Group> = Group::MAIN
        .into_iter()
        .filter(|group| models.iter().any(|m| group_mean(m, *group).is_some()))
        .collect();
    let correlate = |x: &dyn Fn(&ModelRates) -> Option<f64>,
                     y: &dyn Fn(&ModelRates) -> Option<f64>| {
        let pairs: Vec<(f64, f64)> = models.iter().filter_map(|m| x(m).zip(y(m))).collect();
        pearson(&pairs)
    };
    let mut pairs = Vec::new();
    for (idx, a) in present.iter().copied().enumerate() {
        for b in present[idx + 1..].iter().copied() {
            let r = correlate(&|model| group_mean(model, a), &|model| group_mean(model, b));
            pairs.push(PairCorrelation { a, b, r });
        }
    }
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.r).collect();
    Correlations {
        n_models: models.len(),
        mean: mean(&known),
        overall: present
            .iter()
            .map(|group| {
                let r = correlate(&|model| group_mean(model, *group), &|model| {
                    model.rates.overall.mean
                });
                (*group, r)
            })
            .collect(),
        pairs,
    }
}

fn group_mean(model: &ModelRates, group: Group) -> Option<f64> {
    model.rates.groups.get(&group)?.mean
}
