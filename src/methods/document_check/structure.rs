//! Chapters, ids and references.

use std::collections::BTreeMap;
use std::path::Path;

use super::lines::{code_spans, lines};
use super::{CHAPTERS, CONSISTENCY};
use crate::domain::clause::ClauseId;
use crate::domain::document::Document;
use crate::domain::place::{Finding, Place};

/// Chapters 1 to 11 are there, each once and under its name.
pub fn chapters(document: &Document, findings: &mut Vec<Finding>) {
    for (idx, slug) in CHAPTERS.iter().enumerate() {
        let number = u32::try_from(idx + 1).expect("there are few chapters");
        let is_it = |chapter: &&crate::domain::document::Chapter| {
            chapter.number == number && chapter.slug == *slug
        };
        if !document.chapters.iter().any(|chapter| is_it(&chapter)) {
            let folder = document
                .chapters
                .first()
                .and_then(|first| first.file.parent());
            findings.push(Finding::new(
                Place::new(folder.unwrap_or(Path::new("data/document")), 1),
                format!("chapter {number:02}-{slug}.md is missing"),
            ));
        }
    }
    for chapter in &document.chapters {
        let expected = (chapter.number as usize)
            .checked_sub(1)
            .and_then(|idx| CHAPTERS.get(idx));
        let at = |message: String| Finding::new(Place::new(&chapter.file, 1), message);
        if expected != Some(&chapter.slug.as_str()) {
            findings.push(at(format!(
                "{:02}-{} is none of the chapters",
                chapter.number, chapter.slug
            )));
        }
        if chapter.clauses.is_empty() {
            findings.push(at("the chapter has no clause".to_owned()));
        }
    }
}

/// Every id names one clause.
pub fn ids(document: &Document, findings: &mut Vec<Finding>) {
    let mut seen: BTreeMap<&ClauseId, &Place> = BTreeMap::new();
    for clause in document.clauses() {
        if let Some(first) = seen.insert(&clause.id, &clause.place) {
            findings.push(Finding::new(
                clause.place.clone(),
                format!("{} is already the id of the clause at {first}", clause.id),
            ));
        }
    }
}

/// The clauses of the consistency chapter relate at least two others, and no other clause does.
pub fn relates(document: &Document, findings: &mut Vec<Finding>) {
    let known = document.by_id();
    for clause in document.clauses() {
        let mut at = |message: String| findings.push(Finding::new(clause.place.clone(), message));
        let id = &clause.id;
        if id.chapter() != CONSISTENCY {
            if !clause.relates.is_empty() {
                at(format!(
                    "{id} relates others; only chapter {CONSISTENCY} does"
                ));
            }
            continue;
        }
        let mut distinct = clause.relates.clone();
        distinct.sort();
        distinct.dedup();
        if distinct.len() < 2 {
            at(format!(
                "{id} relates {} clauses; it needs two",
                distinct.len()
            ));
        }
        if distinct.len() < clause.relates.len() {
            at(format!("{id} relates a clause twice"));
        }
        for related in &distinct {
            if related == id {
                at(format!("{id} relates itself"));
            } else if !known.contains_key(related) {
                at(format!("{id} relates {related}, which is no clause"));
            }
        }
    }
}

/// What stands in backticks and looks like the id of a clause, or like the file of a chapter, is one.
pub fn references(document: &Document, findings: &mut Vec<Finding>) {
    let known = document.by_id();
    let files: Vec<String> = document
        .chapters
        .iter()
        .map(|chapter| format!("{:02}-{}.md", chapter.number, chapter.slug))
        .collect();
    for line in lines(document) {
        for code in code_spans(line.text) {
            let mut at = |message: String| findings.push(Finding::new(line.place.clone(), message));
            let looks_like_file = code.text.len() > 6
                && code.text.as_bytes()[..2].iter().all(u8::is_ascii_digit)
                && code.text.as_bytes()[2] == b'-'
                && code.text.ends_with(".md");
            if looks_like_file && !files.iter().any(|file| file == code.text) {
                at(format!("{} is no chapter", code.text));
            }
            let Ok(id) = code.text.parse::<ClauseId>() else {
                continue;
            };
            if !CHAPTERS.contains(&id.chapter()) {
                continue;
            }
            if !known.contains_key(&id) {
                at(format!("`{id}` is no clause"));
            } else if line.clause.is_some_and(|clause| clause.id == id) {
                at(format!("`{id}` refers to itself"));
            }
        }
    }
}
