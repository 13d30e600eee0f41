//! What only several candidates together show: what cases tell apart, reliability, ranks, correlations.

use std::collections::BTreeMap;

use super::super::statistics::{kr20, mean, pearson, ranks};
use super::table::{Part, Table};
use super::{Correlation, Correlations, GroupRow, ModelRanks, ModelRates, PairCorrelation};
use super::{Parts, Reliability, Spread};
use crate::domain::results::Group;

pub(super) fn group_row(
    table: &Table<'_>,
    models: &[ModelRates],
    group: Option<Group>,
) -> GroupRow {
    let means: Vec<Option<f64>> = models
        .iter()
        .map(|model| match group {
            None => model.rates.overall.mean,
            Some(group) => model.rates.groups[&group].mean,
        })
        .collect();
    let mut row = GroupRow {
        group,
        n_cases: 0,
        average: average(&means),
        average_interval: None,
        gap: gap(&means),
        gap_interval: None,
        floor: 0,
        ceiling: 0,
        discriminating: 0,
        undecided: 0,
    };
    let part = group.map_or(Part::All, Part::Group);
    for (idx, _) in table
        .cases
        .iter()
        .enumerate()
        .filter(|(_, case)| case.is_in(part))
    {
        row.n_cases += 1;
        let ended = |wanted: bool| {
            let candidates = table.candidates.iter();
            candidates.filter(|c| c.passed(idx) == Some(wanted)).count()
        };
        let (n_passed, n_failed) = (ended(true), ended(false));
        match (n_passed, n_failed) {
            (1.., 1..) => row.discriminating += 1,
            _ if n_passed + n_failed < table.candidates.len() => row.undecided += 1,
            (0, _) => row.floor += 1,
            (_, 0) => row.ceiling += 1,
        }
    }
    row
}

/// The mean over models that have the rate.
pub(super) fn average(means: &[Option<f64>]) -> Option<f64> {
    mean(&means.iter().copied().flatten().collect::<Vec<_>>())
}

/// Best − worst; None for fewer than two models.
pub(super) fn gap(means: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = means.iter().copied().flatten().collect();
    (known.len() >= 2).then(|| {
        let best = known.iter().copied().fold(f64::MIN, f64::max);
        let worst = known.iter().copied().fold(f64::MAX, f64::min);
        best - worst
    })
}

pub(super) fn reliability(table: &Table<'_>) -> Reliability {
    let complete = table.complete();
    Reliability {
        kr20: kr20(&complete.passed),
        interval: None,
        n_candidates: complete.candidates.len(),
        n_cases: complete.cases.len(),
        candidates_left_out: table.candidates.len() - complete.candidates.len(),
        cases_left_out: table.cases.len() - complete.cases.len(),
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
                interval: None,
                movement: worst.zip(best).map(|(worst, best)| worst - best),
                groups: of_groups,
            })
        })
        .collect();
    all.sort_by(|a, b| (a.overall, &a.model).cmp(&(b.overall, &b.model)));
    all
}

/// The mean rates of a model in the parts of a table.
pub(super) type Means = Parts<Option<f64>>;

pub(super) fn means(rates: &Parts<Spread>) -> Means {
    Parts {
        overall: rates.overall.mean,
        groups: rates.groups.iter().map(|(g, s)| (*g, s.mean)).collect(),
        ordinary: rates.ordinary.mean,
        boundary: rates.boundary.mean,
    }
}

pub(super) fn correlations(models: &[Means]) -> Correlations {
    let of_group = |model: &Means, group: Group| model.groups.get(&group).copied().flatten();
    let present: Vec<Group> = Group::MAIN
        .into_iter()
        .filter(|group| models.iter().any(|m| of_group(m, *group).is_some()))
        .collect();
    let correlate = |x: &dyn Fn(&Means) -> Option<f64>, y: &dyn Fn(&Means) -> Option<f64>| {
        let pairs: Vec<(f64, f64)> = models.iter().filter_map(|m| x(m).zip(y(m))).collect();
        Correlation {
            r: pearson(&pairs),
            interval: None,
        }
    };
    let mut pairs = Vec::new();
    for (idx, a) in present.iter().copied().enumerate() {
        for b in present[idx + 1..].iter().copied() {
            let of = correlate(&|model| of_group(model, a), &|model| of_group(model, b));
            pairs.push(PairCorrelation { a, b, of });
        }
    }
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.of.r).collect();
    Correlations {
        n_models: models.len(),
        mean: Correlation {
            r: mean(&known),
            interval: None,
        },
        overall: present
            .iter()
            .map(|group| {
                let of = correlate(&|model| of_group(model, *group), &|model| model.overall);
                (*group, of)
            })
            .collect(),
        pairs,
    }
}

fn group_mean(model: &ModelRates, group: Group) -> Option<f64> {
    model.rates.groups.get(&group)?.mean
}
