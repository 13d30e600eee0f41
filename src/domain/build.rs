//! A build: an attempt of a model to write a candidate, its turns, what it submitted and how it ended.

use serde::{Deserialize, Serialize};

use super::model_call::{ModelCall, Tokens};

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Running,
    /// A submission passed the contract check; the candidate is frozen.
    Passed,
    /// Something was submitted, and all of it was returned.
    Failed,
    /// Nothing was submitted.
    NotDelivered,
    /// It could not begin, or the model never answered: no result of the model.
    Aborted,
    /// Our process died meanwhile, or our side broke.
    Void,
}

impl State {
    /// Whether this is a result of the model.
    pub fn counts(self) -> bool {
        matches!(self, Self::Passed | Self::Failed | Self::NotDelivered)
    }
}

/// The file `build.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub name: String,
    pub state: State,
    /// What ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The builder's harness with its version, or a command.
    pub builder: String,
    /// Digest of the lock files that the harness was installed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<String>,
    /// The model's name in `pipeline/build.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// RFC 3339.
    pub started_at: String,
    /// From the first turn to the end.
    pub duration_ms: u64,
    /// Digest of limits, prompts and the model's table of `pipeline/build.toml`.
    pub settings: String,
    /// Digest of the rendered document that the builder was given.
    pub document: String,
    /// Digest of the skeleton that it began with.
    pub skeleton: String,
    pub sandbox: String,
    /// The version of this program.
    pub version: String,
    pub turns: Vec<Turn>,
    pub submissions: Vec<Submitted>,
}

/// One launch of the builder, and its calls of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// How the builder ended, such as `exit 0`.
    pub ended: String,
    pub duration_ms: u64,
    /// Calls that the model answered.
    pub n_answered: usize,
    /// Calls that the endpoint, or the way to it, failed.
    pub n_failed: usize,
    /// What the gateway did not pass on.
    pub n_refused: usize,
    /// Answers whose tokens the endpoint did not tell, or that broke off before.
    pub n_unmetered: usize,
    pub tokens: Tokens,
}

impl Turn {
    /// Adds a call of this turn.
    pub fn add(&mut self, call: &ModelCall) {
        match (call.is_answered(), &call.refused) {
            (true, _) => self.n_answered += 1,
            (false, Some(_)) => self.n_refused += 1,
            (false, None) => self.n_failed += 1,
        }
        match call.tokens {
            Some(tokens) => self.tokens += tokens,
            None => self.n_unmetered += usize::from(call.is_answered()),
        }
    }
}

/// A tree that the builder submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submitted {
    pub turn: usize,
    /// Since the first turn began.
    pub at_ms: u64,
    /// None for an archive that is no tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the contract check found, as `file:line: message`.
    pub findings: Vec<String>,
}

impl Build {
    /// Whether two builds are repetitions of each other: the same model, builder, document, skeleton and settings.
    pub fn is_repetition_of(&self, other: &Self) -> bool {
        let key = |build: &Self| {
            [
                build.model.clone(),
                Some(build.builder.clone()),
                build.packages.clone(),
                Some(build.settings.clone()),
                Some(build.document.clone()),
                Some(build.skeleton.clone()),
            ]
        };
        key(self) == key(other)
    }

    pub fn tokens(&self) -> Tokens {
        let mut all = Tokens::default();
        self.turns.iter().for_each(|turn| all += turn.tokens);
        all
    }
}
