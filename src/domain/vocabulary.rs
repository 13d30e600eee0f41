//! The words of the document: one word for one thing, and one thing for one word unless the senses are told apart.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::clause::ClauseId;
use super::place::Place;

/// One concept that harnesses name differently: the document says `canonical` and none of the others.
#[derive(Debug, Clone)]
pub struct Alias {
    pub concept: String,
    pub canonical: String,
    pub others: Vec<String>,
    pub reason: String,
    pub letters: Letters,
    pub within: Within,
    /// Clauses that show one of the others as a wrong input.
    pub except: Vec<ClauseId>,
    pub place: Place,
}

/// Whether capitals count when a word is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Letters {
    #[default]
    Exact,
    AnyCase,
}

/// Where a word is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    #[default]
    Text,
    /// Only in code spans, for names that are ordinary words too.
    Code,
}

/// One word that means several things, each fixed by a clause of its own.
#[derive(Debug, Clone)]
pub struct Homonym {
    pub word: String,
    pub senses: Vec<Sense>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sense {
    pub sense: String,
    pub clause: ClauseId,
}

/// Words that look like names of the harness in the document and are none, with the reason.
pub type Examples = BTreeMap<String, String>;
