//! One word for one thing: names of other harnesses occur nowhere, and words of several senses have a clause for each.

use std::collections::BTreeSet;

use super::lines::{Line, code_spans, lines};
use crate::domain::document::Document;
use crate::domain::place::Finding;
use crate::domain::vocabulary::{Alias, Homonym, Letters, Within};

/// None of the other names of a concept occurs, except where a clause shows it as a wrong input.
pub fn aliases(document: &Document, aliases: &[Alias], findings: &mut Vec<Finding>) {
    let known = document.by_id();
    let lines = lines(document);
    let mut given: BTreeSet<&str> = BTreeSet::new();
    for alias in aliases {
        let at = |message: String| Finding::new(alias.place.clone(), message);
        let concept = &alias.concept;
        if alias.others.is_empty() {
            findings.push(at(format!("{concept}: there is no other name")));
        }
        for other in &alias.others {
            if !given.insert(other) {
                findings.push(at(format!("{concept}: {other:?} is listed twice")));
            }
            if *other == alias.canonical {
                findings.push(at(format!("{concept}: {other:?} is the canonical name")));
            }
        }
        let canonical = &alias.canonical;
        if !lines
            .iter()
            .any(|line| contains(line.text, canonical, Letters::Exact))
        {
            findings.push(at(format!(
                "{concept}: the canonical name {canonical:?} occurs nowhere in the document"
            )));
        }
        for id in &alias.except {
            let shown = |line: &&Line| {
                line.clause.is_some_and(|clause| clause.id == *id) && named(line, alias).is_some()
            };
            if !known.contains_key(id) {
                findings.push(at(format!("{concept}: `{id}` is no clause")));
            } else if !lines.iter().any(|line| shown(&line)) {
                findings.push(at(format!("{concept}: `{id}` has none of the names")));
            }
        }
        for line in &lines {
            let excepted = line
                .clause
                .is_some_and(|clause| alias.except.contains(&clause.id));
            if let Some(other) = named(line, alias).filter(|_| !excepted) {
                findings.push(Finding::new(
                    line.place.clone(),
                    format!("{other:?} is another name of {canonical:?} ({concept})"),
                ));
            }
        }
    }
}

/// A homonym has at least two senses, each fixed by a clause of its own.
pub fn homonyms(document: &Document, homonyms: &[Homonym], findings: &mut Vec<Finding>) {
    let known = document.by_id();
    let mut words = BTreeSet::new();
    for homonym in homonyms {
        let word = &homonym.word;
        let mut at = |message: String| findings.push(Finding::new(homonym.place.clone(), message));
        if !words.insert(word) {
            at(format!("{word:?} is listed twice"));
        }
        if homonym.senses.len() < 2 {
            at(format!(
                "{word:?} has {} senses; it needs two",
                homonym.senses.len()
            ));
        }
        let mut clauses = BTreeSet::new();
        for sense in &homonym.senses {
            let clause = &sense.clause;
            if !known.contains_key(clause) {
                at(format!(
                    "{word:?}, {:?}: `{clause}` is no clause",
                    sense.sense
                ));
            } else if !clauses.insert(clause) {
                at(format!("{word:?}: two senses name `{clause}`"));
            }
        }
    }
}

/// The first of the other names that a line has.
fn named<'a>(line: &Line, alias: &'a Alias) -> Option<&'a str> {
    let found = |other: &&String| match alias.within {
        Within::Text => contains(line.text, other, alias.letters),
        Within::Code => code_spans(line.text)
            .iter()
            .any(|code| contains(code.text, other, alias.letters)),
    };
    alias.others.iter().find(found).map(String::as_str)
}

/// Whether `word` stands in `text` by itself: what is before and after it could not belong to the same name.
pub fn contains(text: &str, word: &str, letters: Letters) -> bool {
    let (text, word) = match letters {
        Letters::Exact => (text.to_owned(), word.to_owned()),
        Letters::AnyCase => (text.to_lowercase(), word.to_lowercase()),
    };
    let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let (is_path, is_word) = (word.starts_with('/'), word.starts_with(joins));
    text.match_indices(&word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        // A slash after a letter or a dot is part of a path, one after `<` of a tag.
        let joins_before = |c: char| joins(c) || (!is_word && ['.', '/', '<'].contains(&c));
        let joins_after = |c: char| word.ends_with(joins) && (joins(c) || (is_path && c == '/'));
        !before.is_some_and(joins_before) && !after.is_some_and(joins_after)
    })
}
