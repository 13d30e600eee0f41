//! The inventory: every feature of every harness ends in exactly one state.

use std::collections::{BTreeMap, BTreeSet};

use super::CHAPTERS;
use crate::domain::clause::ClauseId;
use crate::domain::document::Document;
use crate::domain::inventory::{Feature, Inventory, State};
use crate::domain::place::{Finding, Place};

/// How many features without a state a finding names.
const N_SHOWN: usize = 5;

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
