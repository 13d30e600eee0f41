//! What tables, statistics and reports know of a run: facts of its cases, groups of categories, and tallies.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::case::{Case, CaseId, Category, Role};
use super::clause::{ClauseId, Scenario};
use super::suite::Suite;
use super::verdict::{FaultKind, NOT_ASKED, Outcome, Verdict};

/// What a table says of a test case; controls have none, since they are in no denominator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseFacts {
    pub category: Category,
    pub scenario: Scenario,
    pub title: String,
    pub clause: ClauseId,
    /// Names of the controls that gate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<String>,
    /// The seed at the root of its expansion, or the case itself: outcomes within a family are correlated.
    pub family: CaseId,
}

pub type Facts = BTreeMap<CaseId, CaseFacts>;

/// The family of every test case: the seed at the root of its expansion, or the case itself.
pub fn families(suite: &Suite) -> BTreeMap<CaseId, CaseId> {
    let seeds: BTreeMap<&str, &str> = suite
        .tests()
        .filter_map(|case| Some((case.id.as_str(), seed(case)?)))
        .collect();
    suite
        .tests()
        .map(|case| {
            let root = root(&seeds, case.id.as_str());
            (case.id.clone(), CaseId::new(root))
        })
        .collect()
}

fn seed(case: &Case) -> Option<&str> {
    match &case.role {
        Role::Test {
            origin: Some(origin),
            ..
        } => origin.seed.as_deref(),
        _ => None,
    }
}

/// Follows seeds upward; a circle ends where it would close.
fn root<'a>(seeds: &BTreeMap<&'a str, &'a str>, case: &'a str) -> &'a str {
    let mut at = case;
    for _ in 0..seeds.len() {
        match seeds.get(at) {
            Some(seed) => at = seed,
            None => break,
        }
    }
    at
}

/// A column of the tables: the six large categories, and one for the three small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Permissions,
    FileOperations,
    SessionState,
    Headless,
    DirectDrive,
    InteractiveTerminal,
    /// Artifact checks, startup and extension discovery.
    Other,
}

impl Group {
    pub const ALL: [Self; 7] = [
        Self::Permissions,
        Self::FileOperations,
        Self::SessionState,
        Self::Headless,
        Self::DirectDrive,
        Self::InteractiveTerminal,
        Self::Other,
    ];

    /// The groups that ranks and correlations are about.
    pub const MAIN: [Self; 6] = [
        Self::Permissions,
        Self::FileOperations,
        Self::SessionState,
        Self::Headless,
        Self::DirectDrive,
        Self::InteractiveTerminal,
    ];

    pub fn of(category: Category) -> Self {
        match category {
            Category::Permissions => Self::Permissions,
            Category::FileOperations => Self::FileOperations,
            Category::SessionState => Self::SessionState,
            Category::Headless => Self::Headless,
            Category::DirectDrive => Self::DirectDrive,
            Category::InteractiveTerminal => Self::InteractiveTerminal,
            Category::ArtifactChecks | Category::Startup | Category::ExtensionDiscovery => {
                Self::Other
            }
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permissions => "permissions",
            Self::FileOperations => "file-operations",
            Self::SessionState => "session-state",
            Self::Headless => "headless",
            Self::DirectDrive => "direct-drive",
            Self::InteractiveTerminal => "interactive-terminal",
            Self::Other => "other",
        }
    }

    /// A short head for a column.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Permissions => "perm.",
            Self::FileOperations => "file ops.",
            Self::SessionState => "session",
            Self::Headless => "headless",
            Self::DirectDrive => "direct",
            Self::InteractiveTerminal => "interactive",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One verdict as tables and statistics read it, from a run or from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub candidate: String,
    /// The model that built the candidate; several candidates of one model are its builds.
    pub model: String,
    pub build: String,
    pub case: CaseId,
    pub category: Category,
    pub scenario: Scenario,
    pub family: CaseId,
    /// Positive controls that gate the case, where it is known.
    pub n_controls: Option<usize>,
    pub status: Status,
    /// `pass`, or the reason.
    pub reason: String,
}

/// How a verdict ended, without the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pass,
    Fail,
    Invalid,
    NotAsked,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::NotAsked => NOT_ASKED,
        }
    }
}

impl From<&Outcome> for Status {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Passed => Self::Pass,
            Outcome::Failed(_) => Self::Fail,
            Outcome::Invalid(_) => Self::Invalid,
            Outcome::NotAsked { .. } => Self::NotAsked,
        }
    }
}

/// Rows of verdicts on known cases. `models` names the model of a candidate; else a candidate is its own model.
pub fn rows(verdicts: &[Verdict], facts: &Facts, models: &BTreeMap<String, String>) -> Vec<Row> {
    verdicts
        .iter()
        .filter_map(|verdict| {
            let fact = facts.get(&verdict.case)?;
            let candidate = &verdict.candidate;
            Some(Row {
                candidate: candidate.clone(),
                model: models.get(candidate).unwrap_or(candidate).clone(),
                build: candidate.clone(),
                case: verdict.case.clone(),
                category: fact.category,
                scenario: fact.scenario,
                family: fact.family.clone(),
                n_controls: Some(fact.controls.len()),
                status: Status::from(&verdict.outcome),
                reason: verdict.outcome.reason().to_owned(),
            })
        })
        .collect()
}

/// Verdicts counted by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub invalid: usize,
    /// Their repetitions ended differently.
    pub flaky: usize,
    pub not_asked: usize,
}

impl Tally {
    pub fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Invalid(fault) if fault.kind == FaultKind::Flaky => self.flaky += 1,
            Outcome::Invalid(_) => self.invalid += 1,
            Outcome::NotAsked { .. } => self.not_asked += 1,
        }
    }

    /// The denominator of a pass rate: what is invalid, flaky or was not asked is in none.
    pub fn counted(&self) -> usize {
        self.passed + self.failed
    }

    /// Passes ÷ counted, from 0 to 1; nothing when nothing was counted.
    pub fn rate(&self) -> Option<f64> {
        (self.counted() > 0).then(|| self.passed as f64 / self.counted() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_over_nothing() {
        let tally = |passed, failed| Tally {
            passed,
            failed,
            invalid: 3,
            flaky: 1,
            not_asked: 5,
        };
        assert_eq!(tally(0, 0).rate(), None);
        assert_eq!(tally(1, 3).rate(), Some(0.25));
    }

    #[test]
    fn families_go_to_the_root_and_survive_a_circle() {
        let seeds = BTreeMap::from([("c", "b"), ("b", "a"), ("x", "y"), ("y", "x")]);
        assert_eq!(root(&seeds, "c"), "a");
        assert_eq!(root(&seeds, "a"), "a");
        assert!(["x", "y"].contains(&root(&seeds, "x")));
    }

    #[test]
    fn every_category_is_in_a_group() {
        for category in Category::ALL {
            let group = Group::of(category);
            assert!(group == Group::Other || group.as_str() == category.as_str());
        }
    }
}
