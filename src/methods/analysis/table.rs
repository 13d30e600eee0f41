//! Rows turned into candidates × cases, and the pass rate over a part of them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::statistics::clustered_interval;
use super::{Parts, Rate};
use crate::domain::case::CaseId;
use crate::domain::clause::Scenario;
use crate::domain::results::{Group, Row, Status};

pub(super) struct Table<'a> {
    pub cases: BTreeMap<&'a CaseId, CaseRow<'a>>,
    pub candidates: BTreeMap<&'a str, CandidateRow<'a>>,
    /// Those that have a case, in the order of columns.
    pub groups: Vec<Group>,
}

pub(super) struct CaseRow<'a> {
    pub group: Group,
    pub scenario: Scenario,
    pub family: &'a CaseId,
}

pub(super) struct CandidateRow<'a> {
    pub model: &'a str,
    pub build: &'a str,
    pub seen: BTreeMap<&'a CaseId, Status>,
}

#[derive(Clone, Copy)]
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

impl<'a> Table<'a> {
    pub fn new(rows: &'a [Row]) -> Self {
        let mut cases = BTreeMap::new();
        let mut candidates: BTreeMap<&str, CandidateRow<'_>> = BTreeMap::new();
        for row in rows {
            cases.entry(&row.case).or_insert(CaseRow {
                group: Group::of(row.category),
                scenario: row.scenario,
                family: &row.family,
            });
            candidates
                .entry(&row.candidate)
                .or_insert_with(|| CandidateRow {
                    model: &row.model,
                    build: &row.build,
                    seen: BTreeMap::new(),
                })
                .seen
                .insert(&row.case, row.status);
        }
        let present: BTreeSet<Group> = cases.values().map(|case| case.group).collect();
        Self {
            cases,
            candidates,
            groups: present.into_iter().collect(),
        }
    }

    pub fn parts<T>(&self, estimate: impl Fn(Part) -> T) -> Parts<T> {
        let groups = self.groups.iter();
        Parts {
            overall: estimate(Part::All),
            groups: groups
                .map(|group| (*group, estimate(Part::Group(*group))))
                .collect(),
            ordinary: estimate(Part::Scenario(Scenario::Ordinary)),
            boundary: estimate(Part::Scenario(Scenario::Boundary)),
        }
    }

    /// The outcomes of some candidates on a part of the cases, pooled.
    pub fn rate(&self, candidates: &[&CandidateRow<'_>], part: Part) -> Rate {
        let mut rate = Rate::default();
        let mut clusters: BTreeMap<&CaseId, (usize, usize)> = BTreeMap::new();
        for (id, case) in self.cases.iter().filter(|(_, case)| case.is_in(part)) {
            for candidate in candidates {
                let passed = match candidate.seen.get(id) {
                    None => {
                        rate.missing += 1;
                        continue;
                    }
                    Some(Status::Invalid) => {
                        rate.invalid += 1;
                        continue;
                    }
                    Some(Status::NotAsked) => {
                        rate.not_asked += 1;
                        continue;
                    }
                    Some(status) => usize::from(*status == Status::Pass),
                };
                rate.counted += 1;
                rate.passed += passed;
                let cluster = clusters.entry(case.family).or_default();
                cluster.0 += passed;
                cluster.1 += 1;
            }
        }
        rate.rate = (rate.counted > 0).then(|| rate.passed as f64 / rate.counted as f64);
        rate.interval = clustered_interval(&clusters.into_values().collect::<Vec<_>>());
        rate
    }
}
