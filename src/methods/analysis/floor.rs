//! Cases that no candidate passes: is it that nobody can, or that the case asks too much? Witnesses tell: the reference,
//! and adapters of mature harnesses.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::table::Table;
use crate::domain::candidate::REFERENCE;
use crate::domain::case::{CaseId, Category};
use crate::domain::results::Status;

/// What witnesses did: by name and case, whether they passed.
pub type Witnesses = BTreeMap<String, BTreeMap<CaseId, Status>>;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FloorCase {
    pub case: CaseId,
    pub category: Category,
    pub diagnosis: Diagnosis,
    pub passed_by: BTreeSet<String>,
    pub failed_by: BTreeSet<String>,
    /// Why the candidates failed: reason → how many.
    pub reasons: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Diagnosis {
    /// A harness that was not written with the suite passes: it can be done, these candidates cannot.
    NobodyCan,
    /// Only the reference passes: the case can be met, but the reference was written with it.
    OnlyReference,
    /// Witnesses were asked, and none passes: suspect the case.
    TooStrict,
    /// No witness has a verdict that counts.
    Unknown,
}

impl Diagnosis {
    pub const ALL: [Self; 4] = [
        Self::NobodyCan,
        Self::OnlyReference,
        Self::TooStrict,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NobodyCan => "nobody-can",
            Self::OnlyReference => "only-reference",
            Self::TooStrict => "too-strict",
            Self::Unknown => "unknown",
        }
    }
}

/// Every case that at least one candidate met, with a verdict that counts, and none passed.
pub fn floor(table: &Table<'_>, witnesses: &Witnesses) -> Vec<FloorCase> {
    table
        .cases
        .iter()
        .enumerate()
        .filter_map(|(idx, case)| {
            let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
            for candidate in &table.candidates {
                match candidate.passed(idx) {
                    Some(true) => return None,
                    Some(false) => {
                        let row = candidate.seen[idx].expect("a verdict that counts is a row");
                        *reasons.entry(row.reason.clone()).or_default() += 1;
                    }
                    None => {}
                }
            }
            if reasons.is_empty() {
                return None;
            }
            let ended = |wanted: Status| -> BTreeSet<String> {
                let all = witnesses.iter();
                all.filter(|(_, seen)| seen.get(case.id) == Some(&wanted))
                    .map(|(name, _)| name.clone())
                    .collect()
            };
            let (passed_by, failed_by) = (ended(Status::Pass), ended(Status::Fail));
            let diagnosis = match (passed_by.iter().any(|n| n != REFERENCE), &passed_by) {
                (true, _) => Diagnosis::NobodyCan,
                (false, passed) if !passed.is_empty() => Diagnosis::OnlyReference,
                _ if !failed_by.is_empty() => Diagnosis::TooStrict,
                _ => Diagnosis::Unknown,
            };
            Some(FloorCase {
                case: case.id.clone(),
                category: case.category,
                diagnosis,
                passed_by,
                failed_by,
                reasons,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{World, worlds_rows};
    use super::*;

    #[test]
    fn witnesses_tell_the_floor_apart() {
        let mut rows = worlds_rows(World::default());
        let cases: BTreeSet<CaseId> = rows.iter().map(|row| row.case.clone()).collect();
        let cases: Vec<CaseId> = cases.into_iter().take(6).collect();
        for row in rows.iter_mut().filter(|row| cases.contains(&row.case)) {
            row.status = Status::Fail;
            row.reason = "assertion".to_owned();
        }
        for row in rows.iter_mut().filter(|row| row.case == cases[5]) {
            row.status = Status::Invalid;
        }
        let seen = |ended: &[(usize, Status)]| -> BTreeMap<CaseId, Status> {
            ended
                .iter()
                .map(|(idx, status)| (cases[*idx].clone(), *status))
                .collect()
        };
        let (pass, fail) = (Status::Pass, Status::Fail);
        let witnesses = Witnesses::from([
            (
                REFERENCE.to_owned(),
                seen(&[(0, pass), (1, pass), (2, fail)]),
            ),
            (
                "adapters/x".to_owned(),
                seen(&[(0, pass), (1, fail), (3, Status::Invalid)]),
            ),
        ]);
        let found = floor(&Table::new(&rows), &witnesses);
        let of = |idx: usize| found.iter().find(|floor| floor.case == cases[idx]);
        let diagnosis = |idx: usize| of(idx).map(|floor| floor.diagnosis);
        assert_eq!(diagnosis(0), Some(Diagnosis::NobodyCan));
        assert_eq!(diagnosis(1), Some(Diagnosis::OnlyReference));
        assert_eq!(diagnosis(2), Some(Diagnosis::TooStrict));
        assert_eq!(diagnosis(3), Some(Diagnosis::Unknown));
        assert_eq!(diagnosis(5), None, "nobody met it");
        let reasons = &of(0).unwrap().reasons;
        assert_eq!(reasons["assertion"], Table::new(&rows).candidates.len());
    }
}
