//! The inventory: what twelve harnesses do, as facts, and what became of each feature in the document.

use std::path::PathBuf;

use super::clause::ClauseId;
use super::place::Place;

/// The features of one harness.
#[derive(Debug, Clone)]
pub struct Inventory {
    pub harness: String,
    pub version: String,
    /// `owner/name@commit` of the documentation that was read, or the site where there is none.
    pub sources: Vec<String>,
    pub features: Vec<Feature>,
    pub file: PathBuf,
}

/// One feature as its harness names and calls it.
#[derive(Debug, Clone)]
pub struct Feature {
    /// `harness/kind/name`.
    pub id: String,
    pub kind: String,
    /// The slug of the chapter that it would belong to.
    pub chapter: String,
    pub name: String,
    pub invocation: String,
    /// Every state that the file gives; a finished inventory gives each feature exactly one.
    pub states: Vec<State>,
    pub place: Place,
}

/// What became of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Merged into one clause.
    Clause(ClauseId),
    /// Split over several clauses.
    Clauses(Vec<ClauseId>),
    /// Left out; a word of the closed list of reasons.
    Pruned(String),
}

impl Feature {
    /// The one state that it is in; none when it has none or several.
    pub fn state(&self) -> Option<&State> {
        match self.states.as_slice() {
            [state] => Some(state),
            _ => None,
        }
    }

    /// The clauses that it went into.
    pub fn clauses(&self) -> &[ClauseId] {
        match self.state() {
            Some(State::Clause(id)) => std::slice::from_ref(id),
            Some(State::Clauses(ids)) => ids,
            Some(State::Pruned(_)) | None => &[],
        }
    }
}
