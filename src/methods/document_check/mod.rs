//! What must hold between the parts of the document: chapters, references, words, facts stated twice, and the
//! inventory that it was made from. The strict form of one clause is checked where it is parsed,
//! [`crate::domain::document`].

mod facts;
mod features;
mod lines;
mod names;
mod structure;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use crate::domain::document::Document;
use crate::domain::inventory::Inventory;
use crate::domain::place::Finding;
use crate::domain::vocabulary::{Alias, Examples, Homonym};

/// The slugs of the chapters, in order; the number of a chapter is its position here, from 1.
pub const CHAPTERS: [&str; 11] = [
    "deliverable",
    "tools",
    "commands",
    "permissions",
    "flags",
    "in-session",
    "memory",
    "conventions",
    "consistency",
    "exit-codes",
    "eval-api",
];

/// The chapter whose clauses relate others.
pub const CONSISTENCY: &str = "consistency";

/// Everything that is judged together.
pub struct Material<'a> {
    pub document: &'a Document,
    pub aliases: &'a [Alias],
    pub homonyms: &'a [Homonym],
    pub examples: &'a Examples,
    pub inventories: &'a [Inventory],
    pub reasons: &'a BTreeMap<String, String>,
}

/// All findings, sorted by place.
pub fn check(material: &Material) -> Vec<Finding> {
    let document = material.document;
    let mut findings = Vec::new();
    structure::chapters(document, &mut findings);
    structure::ids(document, &mut findings);
    structure::relates(document, &mut findings);
    structure::references(document, &mut findings);
    words::aliases(document, material.aliases, &mut findings);
    words::homonyms(document, material.homonyms, &mut findings);
    names::check(document, material.examples, &mut findings);
    facts::check(document, &mut findings);
    features::check(
        document,
        material.inventories,
        material.reasons,
        &mut findings,
    );
    findings.sort();
    findings.dedup();
    findings
}
