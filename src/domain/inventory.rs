//! The inventory: what twelve harnesses do, as facts, and what became of each feature in the document.

use std::path::PathBuf;

use serde::Serialize;

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

/// What became of the features of one harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub harness: String,
    pub n_features: usize,
    /// Merged into one clause.
    pub n_merged: usize,
    /// Split over several clauses.
    pub n_split: usize,
    pub n_pruned: usize,
    /// In no state, or in several.
    pub n_open: usize,
}

impl Inventory {
    /// Counts the features by their state.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally {
            harness: self.harness.clone(),
            n_features: self.features.len(),
            ..Tally::default()
        };
        for feature in &self.features {
            match feature.state() {
                Some(State::Clause(_)) => tally.n_merged += 1,
                Some(State::Clauses(_)) => tally.n_split += 1,
                Some(State::Pruned(_)) => tally.n_pruned += 1,
                None => tally.n_open += 1,
            }
        }
        tally
    }
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
