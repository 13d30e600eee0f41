//! What a run is about, frozen before anything runs, and what it brings: `plan.json` and the lines of `outcomes.jsonl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::case::{CaseId, Category};
use crate::domain::clause::{ClauseId, Scenario};
use crate::domain::results::{CaseFacts, Facts};
use crate::domain::verdict::Outcome;

/// Everything that a run is about, fixed before it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: u32,
    pub run: String,
    /// RFC 3339.
    pub created_at: String,
    pub tool_version: String,
    pub sandbox: String,
    /// Nonces are drawn from it.
    pub seed: String,
    /// Digest over the files of all cases.
    pub suite: String,
    /// How often each case and control is run.
    #[serde(default = "once")]
    pub repeat: u32,
    pub candidates: Vec<PlannedCandidate>,
    /// Cases and the controls that gate them, ordered by id.
    pub cases: Vec<PlannedCase>,
    /// Digest of the wording of each clause that a case is about; none in runs of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clauses: BTreeMap<ClauseId, String>,
}

pub const PLAN_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCandidate {
    pub name: String,
    /// Where its tree came from, as it was named: a name below `candidates/` or a path.
    pub source: String,
    /// Digest of its tree.
    pub digest: String,
}

/// What a report needs to know of a case without its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    pub id: CaseId,
    pub title: String,
    pub clause: ClauseId,
    /// None for a control.
    pub category: Option<Category>,
    pub scenario: Option<Scenario>,
    /// The seed at the root of its expansion, or the case itself. None for a control, and in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<CaseId>,
    /// Ids of the controls that gate it.
    pub controls: Vec<CaseId>,
    /// Digest of its file.
    pub digest: String,
    /// Digest of its fixture and launches: evidence belongs to these.
    pub scenario_digest: String,
}

/// A case or control to be run once for a candidate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    pub candidate: String,
    pub case: CaseId,
    /// From 1.
    pub repetition: u32,
}

/// A finished unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitOutcome {
    pub candidate: String,
    pub case: CaseId,
    /// From 1; one unless the run repeats.
    #[serde(default = "once", skip_serializing_if = "is_first")]
    pub repetition: u32,
    /// From 1; a later attempt replaces an earlier one.
    pub attempt: u32,
    pub outcome: Outcome,
    /// None when it broke before there was any.
    pub evidence: Option<String>,
    pub duration_ms: u64,
    /// Of the candidate's processes.
    pub cpu_ms: u64,
}

impl Plan {
    /// Whether a run of the one would tell what a run of the other tells.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        self.tool_version == other.tool_version
            && self.sandbox == other.sandbox
            && self.suite == other.suite
            && self.repeat == other.repeat
            && self.candidates == other.candidates
            && self.cases == other.cases
    }

    /// What tables and reports need to know of the test cases; a case whose family was not planned is one of its own.
    pub fn facts(&self) -> Facts {
        self.cases
            .iter()
            .filter_map(|case| {
                let facts = CaseFacts {
                    category: case.category?,
                    scenario: case.scenario.unwrap_or(Scenario::Ordinary),
                    title: case.title.clone(),
                    clause: case.clause.clone(),
                    controls: case.controls.iter().map(|id| id.name().into()).collect(),
                    family: case.family.clone().unwrap_or_else(|| case.id.clone()),
                };
                Some((case.id.clone(), facts))
            })
            .collect()
    }

    /// Every unit, by candidate as planned, then by repetition, then by case.
    pub fn units(&self) -> impl Iterator<Item = Unit> {
        self.candidates.iter().flat_map(move |candidate| {
            (1..=self.repeat).flat_map(move |repetition| {
                self.cases.iter().map(move |case| Unit {
                    candidate: candidate.name.clone(),
                    case: case.id.clone(),
                    repetition,
                })
            })
        })
    }

    pub fn n_units(&self) -> usize {
        self.candidates.len() * self.cases.len() * self.repeat as usize
    }
}

impl UnitOutcome {
    pub fn unit(&self) -> Unit {
        Unit {
            candidate: self.candidate.clone(),
            case: self.case.clone(),
            repetition: self.repetition,
        }
    }
}

fn once() -> u32 {
    1
}

fn is_first(repetition: &u32) -> bool {
    *repetition == 1
}
