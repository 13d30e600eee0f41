//! Which harnesses stand behind which clause: features counted by clause, by chapter and by harness.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::clause::{ClauseId, Scenario};
use crate::domain::document::Document;
use crate::domain::inventory::{Inventory, State, Tally};

/// The whole table, sorted in the order of the document.
#[derive(Debug, Serialize)]
pub struct Coverage {
    pub chapters: Vec<ChapterRow>,
    pub clauses: Vec<ClauseRow>,
    pub harnesses: Vec<Tally>,
    /// How many features were left out for each reason.
    pub pruned: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
pub struct ChapterRow {
    pub chapter: String,
    pub n_clauses: usize,
    pub n_ordinary: usize,
    pub n_boundary: usize,
    /// Clauses that at least one feature went into.
    pub n_backed: usize,
    /// Features that went into the chapter's clauses, each counted once.
    pub n_features: usize,
    /// Harnesses that these features come from.
    pub n_harnesses: usize,
}

#[derive(Debug, Serialize)]
pub struct ClauseRow {
    pub clause: ClauseId,
    /// The features that went into the clause, by harness.
    pub features: BTreeMap<String, Vec<String>>,
}

/// Counts what went where. States that name no clause of the document are left out; `document check` tells them.
pub fn coverage(document: &Document, inventories: &[Inventory]) -> Coverage {
    let mut behind: BTreeMap<&ClauseId, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let mut pruned = BTreeMap::new();
    for inventory in inventories {
        for feature in &inventory.features {
            if let Some(State::Pruned(reason)) = feature.state() {
                *pruned.entry(reason.clone()).or_default() += 1;
            }
            for clause in feature.clauses() {
                behind
                    .entry(clause)
                    .or_default()
                    .entry(inventory.harness.clone())
                    .or_default()
                    .push(feature.id.clone());
            }
        }
    }
    let mut clauses = Vec::new();
    let mut chapters = Vec::new();
    for chapter in &document.chapters {
        let rows: Vec<ClauseRow> = chapter
            .clauses
            .iter()
            .map(|clause| ClauseRow {
                clause: clause.id.clone(),
                features: behind.get(&clause.id).cloned().unwrap_or_default(),
            })
            .collect();
        let features: BTreeSet<&String> = rows
            .iter()
            .flat_map(|row| row.features.values().flatten())
            .collect();
        let harnesses: BTreeSet<&String> =
            rows.iter().flat_map(|row| row.features.keys()).collect();
        let n_boundary = chapter
            .clauses
            .iter()
            .filter(|clause| clause.kind == Scenario::Boundary)
            .count();
        chapters.push(ChapterRow {
            chapter: chapter.slug.clone(),
            n_clauses: rows.len(),
            n_ordinary: rows.len() - n_boundary,
            n_boundary,
            n_backed: rows.iter().filter(|row| !row.features.is_empty()).count(),
            n_features: features.len(),
            n_harnesses: harnesses.len(),
        });
        clauses.extend(rows);
    }
    Coverage {
        chapters,
        clauses,
        harnesses: inventories.iter().map(Inventory::tally).collect(),
        pruned,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::document::Chapter;
    use crate::domain::inventory::Feature;
    use crate::domain::place::Place;

    fn feature(id: &str, states: Vec<State>) -> Feature {
        Feature {
            id: id.into(),
            kind: "tool".into(),
            chapter: "tools".into(),
            name: "n".into(),
            invocation: "n()".into(),
            states,
            place: Place::new(Path::new("x.toml"), 1),
        }
    }

    #[test]
    fn features_are_counted_by_clause_chapter_and_harness() {
        let clause = |id: &str, kind: &str| {
            format!(
                "### {id} · {kind}\n**Syntax** x\n**Meaning** x\n**Behaviour** x\n**Channels** exit\n\n"
            )
        };
        let text = format!(
            "# Tools\n\n{}{}",
            clause("tools.a.b", "ordinary"),
            clause("tools.a.c", "boundary")
        );
        let chapter = Chapter::parse(Path::new("02-tools.md"), &text).expect("parses");
        let document = Document {
            chapters: vec![chapter],
        };
        let id = |text: &str| text.parse::<ClauseId>().expect("an id");
        let both = State::Clauses(vec![id("tools.a.b"), id("tools.a.c")]);
        let inventory = |harness: &str, features| Inventory {
            harness: harness.into(),
            version: String::new(),
            sources: Vec::new(),
            features,
            file: "x.toml".into(),
        };
        let inventories = [
            inventory(
                "x",
                vec![
                    feature("x/1", vec![both.clone()]),
                    feature("x/2", vec![State::Clause(id("tools.a.b"))]),
                    feature("x/3", vec![State::Pruned("appearance".into())]),
                ],
            ),
            inventory(
                "y",
                vec![
                    feature("y/1", vec![]),
                    feature("y/2", vec![both.clone(), both]),
                ],
            ),
        ];
        let coverage = coverage(&document, &inventories);
        let row = &coverage.chapters[0];
        assert_eq!(
            (
                row.n_clauses,
                row.n_ordinary,
                row.n_boundary,
                row.n_backed,
                row.n_features,
                row.n_harnesses
            ),
            (2, 1, 1, 2, 2, 1)
        );
        assert_eq!(coverage.clauses[0].features["x"], ["x/1", "x/2"]);
        assert_eq!(coverage.clauses[1].features["x"], ["x/1"]);
        assert_eq!(coverage.pruned["appearance"], 1);
        let x = &coverage.harnesses[0];
        assert_eq!((x.n_merged, x.n_split, x.n_pruned, x.n_open), (1, 1, 1, 0));
        assert_eq!(coverage.harnesses[1].n_open, 2);
    }
}
