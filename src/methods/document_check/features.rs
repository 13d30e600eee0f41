//! The inventory: every feature of every harness ends in exactly one state.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::CHAPTERS;
use crate::domain::clause::ClauseId;
use crate::domain::document::Document;
use crate::domain::inventory::{Feature, Inventory, State};
use crate::domain::place::{Finding, Place};

/// How many features without a state a finding names.
const N_SHOWN: usize = 5;

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

/// Counts the features of an inventory by their state.
pub fn tally(inventory: &Inventory) -> Tally {
    let mut tally = Tally {
        harness: inventory.harness.clone(),
        n_features: inventory.features.len(),
        ..Tally::default()
    };
    for feature in &inventory.features {
        match feature.state() {
            Some(State::Clause(_)) => tally.n_merged += 1,
            Some(State::Clauses(_)) => tally.n_split += 1,
            Some(State::Pruned(_)) => tally.n_pruned += 1,
            None => tally.n_open += 1,
        }
    }
    tally
}

/// Features without a state give one finding a file; every other fault has its own.
pub fn check(
    document: &Document,
    inventories: &[Inventory],
    reasons: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) {
    let known: BTreeSet<&ClauseId> = document.clauses().map(|clause| &clause.id).collect();
    let mut ids: BTreeMap<&str, &Place> = BTreeMap::new();
    for inventory in inventories {
        open(inventory, findings);
        for feature in &inventory.features {
            let mut at = |message: String| {
                findings.push(Finding::new(
                    feature.place.clone(),
                    format!("{}: {message}", feature.id),
                ));
            };
            if let Some(first) = ids.insert(&feature.id, &feature.place) {
                at(format!("the id is already used at {first}"));
            }
            if !feature.id.starts_with(&format!("{}/", inventory.harness)) {
                at(format!("the id does not begin with {}/", inventory.harness));
            }
            if !CHAPTERS.contains(&feature.chapter.as_str()) {
                at(format!("{:?} is no chapter", feature.chapter));
            }
            if feature.states.len() > 1 {
                at("has several states; keep one of clause, clauses, pruned".to_owned());
            }
            for state in &feature.states {
                match state {
                    State::Clause(id) if !known.contains(id) => at(format!("`{id}` is no clause")),
                    State::Clause(_) => {}
                    State::Clauses(ids) => split(ids, &known, &mut at),
                    State::Pruned(reason) => {
                        if !reasons.contains_key(reason) {
                            let words: Vec<&str> = reasons.keys().map(String::as_str).collect();
                            at(format!("{reason:?} is no reason: use {}", words.join(", ")));
                        }
                    }
                }
            }
        }
    }
}

fn open(inventory: &Inventory, findings: &mut Vec<Finding>) {
    let open: Vec<&Feature> = inventory
        .features
        .iter()
        .filter(|feature| feature.states.is_empty())
        .collect();
    let Some(first) = open.first() else { return };
    let mut shown: Vec<String> = open
        .iter()
        .take(N_SHOWN)
        .map(|feature| format!("{} (line {})", feature.id, feature.place.line))
        .collect();
    if open.len() > N_SHOWN {
        shown.push("…".to_owned());
    }
    findings.push(Finding::new(
        first.place.clone(),
        format!(
            "{} of {} features have no state (clause, clauses or pruned): {}",
            open.len(),
            inventory.features.len(),
            shown.join(", ")
        ),
    ));
}

fn split(ids: &[ClauseId], known: &BTreeSet<&ClauseId>, at: &mut impl FnMut(String)) {
    let distinct: BTreeSet<&ClauseId> = ids.iter().collect();
    if distinct.len() < 2 {
        at("`clauses` names fewer than two; use `clause`".to_owned());
    }
    if distinct.len() < ids.len() {
        at("`clauses` names a clause twice".to_owned());
    }
    for id in distinct {
        if !known.contains(id) {
            at(format!("`{id}` is no clause"));
        }
    }
}
