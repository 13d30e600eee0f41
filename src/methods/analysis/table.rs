//! Rows turned into candidates × cases, and the pass rate over a part of them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::statistics::{clustered_variance, wilson};
use super::{Parts, Rate};
use crate::domain::case::{CaseId, Category};
use crate::domain::clause::Scenario;
use crate::domain::results::{Group, Row, Status};

/// Everything is sorted by its name, so that the order of rows does not matter.
pub struct Table<'a> {
    pub(super) cases: Vec<CaseRow<'a>>,
    pub(super) candidates: Vec<CandidateRow<'a>>,
    pub(super) models: Vec<ModelRow<'a>>,
    /// Those that have a case, in the order of columns.
    pub(super) groups: Vec<Group>,
    pub(super) n_families: usize,
}

pub(super) struct CaseRow<'a> {
    pub id: &'a CaseId,
    pub category: Category,
    pub group: Group,
    pub scenario: Scenario,
    /// From 0, in the order of the seeds' ids.
    pub family: usize,
    pub n_controls: Option<usize>,
}

pub(super) struct CandidateRow<'a> {
    pub name: &'a str,
    pub model: &'a str,
    pub build: &'a str,
    /// One a case.
    pub seen: Vec<Option<&'a Row>>,
}

pub(super) struct ModelRow<'a> {
    pub name: &'a str,
    /// Places among the candidates.
    pub builds: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Group(Group),
    Scenario(Scenario),
}

impl CaseRow<'_> {
    pub fn is_in(&self, part: Part) -> bool {
        match part {
            Part::All => true,
            Part::Group(group) => self.group == group,
            Part::Scenario(scenario) => self.scenario == scenario,
        }
    }
}

impl CandidateRow<'_> {
    /// None when there is no verdict that counts.
    pub fn passed(&self, case: usize) -> Option<bool> {
        match self.seen[case]?.status {
            Status::Pass => Some(true),
            Status::Fail => Some(false),
            Status::Invalid | Status::NotAsked => None,
        }
    }
}

/// The part of a table where every candidate has met every case.
pub(super) struct Complete {
    /// Places among the table's candidates: those with any verdict that counts.
    pub candidates: Vec<usize>,
    /// Places among the table's cases: those that all of them have a counted verdict on.
    pub cases: Vec<usize>,
    pub passed: Vec<Vec<bool>>,
}

impl<'a> Table<'a> {
    /// A candidate has at most one row a case.
    pub fn new(rows: &'a [Row]) -> Self {
        let by_case: BTreeMap<&CaseId, &Row> = rows.iter().map(|row| (&row.case, row)).collect();
        let families: BTreeMap<&CaseId, usize> = by_case
            .values()
            .map(|row| &row.family)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .enumerate()
            .map(|(idx, family)| (family, idx))
            .collect();
        let places: BTreeMap<&CaseId, usize> = by_case.keys().copied().zip(0..).collect();
        let mut candidates: BTreeMap<&str, CandidateRow<'_>> = BTreeMap::new();
        for row in rows {
            let candidate = candidates
                .entry(&row.candidate)
                .or_insert_with(|| CandidateRow {
                    name: &row.candidate,
                    model: &row.model,
                    build: &row.build,
                    seen: vec![None; places.len()],
                });
            candidate.seen[places[&row.case]] = Some(row);
        }
        let candidates: Vec<CandidateRow<'_>> = candidates.into_values().collect();
        let mut models: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (idx, candidate) in candidates.iter().enumerate() {
            models.entry(candidate.model).or_default().push(idx);
        }
        let cases: Vec<CaseRow<'_>> = by_case
            .into_values()
            .map(|row| CaseRow {
                id: &row.case,
                category: row.category,
                group: Group::of(row.category),
                scenario: row.scenario,
                family: families[&row.family],
                n_controls: row.n_controls,
            })
            .collect();
        let groups: BTreeSet<Group> = cases.iter().map(|case| case.group).collect();
        Self {
            n_families: families.len(),
            groups: groups.into_iter().collect(),
            models: models
                .into_iter()
                .map(|(name, builds)| ModelRow { name, builds })
                .collect(),
            candidates,
            cases,
        }
    }

    /// All, each group, ordinary, boundary: the order of [`Parts::all`].
    pub(super) fn part_list(&self) -> Vec<Part> {
        let groups = self.groups.iter().copied().map(Part::Group);
        let scenarios = [Scenario::Ordinary, Scenario::Boundary].map(Part::Scenario);
        std::iter::once(Part::All)
            .chain(groups)
            .chain(scenarios)
            .collect()
    }

    pub(super) fn parts<T>(&self, mut estimate: impl FnMut(Part) -> T) -> Parts<T> {
        Parts {
            overall: estimate(Part::All),
            groups: self
                .groups
                .iter()
                .map(|group| (*group, estimate(Part::Group(*group))))
                .collect(),
            ordinary: estimate(Part::Scenario(Scenario::Ordinary)),
            boundary: estimate(Part::Scenario(Scenario::Boundary)),
        }
    }

    /// Of each family, how many of a candidate's verdicts on its cases in the part passed, and count.
    pub(super) fn tallies(&self, candidate: &CandidateRow<'_>, part: Part) -> Vec<(usize, usize)> {
        let mut families = vec![(0, 0); self.n_families];
        for (idx, case) in self.cases.iter().enumerate() {
            if let Some(passed) = candidate.passed(idx).filter(|_| case.is_in(part)) {
                families[case.family].0 += usize::from(passed);
                families[case.family].1 += 1;
            }
        }
        families
    }

    /// The outcomes of a candidate on a part of the cases.
    pub(super) fn rate(&self, candidate: &CandidateRow<'_>, part: Part) -> Rate {
        let mut families = self.tallies(candidate, part);
        families.retain(|(_, counted)| *counted > 0);
        let passed: usize = families.iter().map(|(passed, _)| passed).sum();
        let counted: usize = families.iter().map(|(_, counted)| counted).sum();
        let cases = self.cases.iter().zip(&candidate.seen);
        let seen: Vec<_> = cases
            .filter(|(case, _)| case.is_in(part))
            .map(|(_, seen)| seen)
            .collect();
        let ended = |wanted: Status| {
            let found = seen
                .iter()
                .filter(|row| row.is_some_and(|row| row.status == wanted));
            found.count()
        };
        let rate = (counted > 0).then(|| passed as f64 / counted as f64);
        let effective = rate
            .zip(clustered_variance(&families))
            .map(|(rate, variance)| effective(rate, variance, families.len(), counted));
        Rate {
            passed,
            counted,
            invalid: ended(Status::Invalid),
            not_asked: ended(Status::NotAsked),
            missing: seen.iter().filter(|row| row.is_none()).count(),
            rate,
            effective,
            interval: rate
                .zip(effective)
                .map(|(rate, effective)| wilson(rate, effective)),
        }
    }

    pub(super) fn complete(&self) -> Complete {
        let candidates: Vec<usize> = (0..self.candidates.len())
            .filter(|idx| {
                let candidate = &self.candidates[*idx];
                (0..self.cases.len()).any(|case| candidate.passed(case).is_some())
            })
            .collect();
        let cases: Vec<usize> = (0..self.cases.len())
            .filter(|case| {
                let mut seen = candidates.iter().map(|idx| &self.candidates[*idx]);
                !candidates.is_empty() && seen.all(|c| c.passed(*case).is_some())
            })
            .collect();
        let passed = candidates
            .iter()
            .map(|idx| {
                let candidate = &self.candidates[*idx];
                let cases = cases.iter().map(|case| candidate.passed(*case));
                cases.map(|passed| passed == Some(true)).collect()
            })
            .collect();
        Complete {
            candidates,
            cases,
            passed,
        }
    }
}

/// The number of independent outcomes that would have this variance: `rate (1 - rate) / variance`, between the number
/// of families and the number counted. When all passed or all failed the data do not show how much the outcomes of a
/// family go together, and it is the number of families.
pub(super) fn effective(rate: f64, variance: f64, n_families: usize, n_counted: usize) -> f64 {
    let independent = rate * (1.0 - rate);
    if independent <= 0.0 {
        n_families as f64
    } else {
        (independent / variance).clamp(n_families as f64, n_counted as f64)
    }
}
