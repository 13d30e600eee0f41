//! The development document: checked against itself and the inventory, counted, and rendered for the builder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::document::Document;
use crate::domain::inventory::{Inventory, Tally};
use crate::domain::place::Finding;
use crate::domain::vocabulary::Examples;
use crate::methods::document_check::{self, Material};
use crate::methods::document_coverage::{self, Coverage};
use crate::methods::document_render;
use crate::storage::{documents, inventory, vocabulary};

/// `pipeline/document.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names in the document that are wrong on purpose, each with the reason.
    #[serde(default)]
    pub examples: Examples,
}

/// What the check saw and found.
#[derive(Debug, Serialize)]
pub struct CheckSummary {
    pub n_chapters: usize,
    pub n_clauses: usize,
    pub n_aliases: usize,
    pub n_homonyms: usize,
    pub harnesses: Vec<Tally>,
    pub findings: Vec<Found>,
}

/// A finding with its place as people should see it.
#[derive(Debug, Serialize)]
pub struct Found {
    pub file: String,
    pub line: usize,
    pub message: String,
}

/// Checks the document, its words and the inventory. Faults are findings, also when a file cannot be parsed: then
/// only those of parsing are told.
pub fn check(context: &Context, config: &Config) -> Result<CheckSummary> {
    let folder = context.project.document();
    let inventory_folder = context.project.inventory();
    let mut findings = Vec::new();
    let document = documents::read(&folder).unwrap_or_else(|found| keep(found, &mut findings));
    let aliases =
        vocabulary::read_aliases(&folder).unwrap_or_else(|found| keep(vec![found], &mut findings));
    let homonyms =
        vocabulary::read_homonyms(&folder).unwrap_or_else(|found| keep(vec![found], &mut findings));
    let inventories =
        inventory::read_all(&inventory_folder).unwrap_or_else(|found| keep(found, &mut findings));
    let reasons: BTreeMap<String, String> = inventory::read_reasons(&inventory_folder)
        .unwrap_or_else(|found| keep(vec![found], &mut findings));
    if findings.is_empty() {
        findings = document_check::check(&Material {
            document: &document,
            aliases: &aliases,
            homonyms: &homonyms,
            examples: &config.examples,
            inventories: &inventories,
            reasons: &reasons,
        });
    }
    Ok(CheckSummary {
        n_chapters: document.chapters.len(),
        n_clauses: document.clauses().count(),
        n_aliases: aliases.len(),
        n_homonyms: homonyms.len(),
        harnesses: inventories.iter().map(Inventory::tally).collect(),
        findings: findings
            .iter()
            .map(|finding| found(context, finding))
            .collect(),
    })
}

/// Counts which features went into which clause.
pub fn coverage(context: &Context) -> Result<Coverage> {
    let document = read(context)?;
    let inventories: Vec<Inventory> = inventory::read_all(&context.project.inventory())
        .map_err(|findings| Failure::findings(&findings))?;
    Ok(document_coverage::coverage(&document, &inventories))
}

/// The form of a rendered document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Html,
}

/// The whole document as one text, with a table of contents and an anchor for each clause.
pub fn render(context: &Context, format: Format) -> Result<String> {
    let document = read(context)?;
    Ok(match format {
        Format::Markdown => document_render::markdown(&document),
        Format::Html => document_render::html(&document),
    })
}

/// The document as the stages that need it whole read it.
pub fn read(context: &Context) -> Result<Document> {
    documents::read(&context.project.document()).map_err(|findings| {
        Failure::findings(&findings).hint("see all faults: pipeline document check")
    })
}

/// Writes a rendered document to a file.
pub fn write(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
        .kind(Kind::Environment)
}

fn keep<T: Default>(mut found: Vec<Finding>, findings: &mut Vec<Finding>) -> T {
    findings.append(&mut found);
    T::default()
}

fn found(context: &Context, finding: &Finding) -> Found {
    // Messages name other places too.
    let root = format!("{}/", context.project.root().display());
    Found {
        file: context.project.shown(&finding.place.file),
        line: finding.place.line,
        message: finding.message.replace(&root, ""),
    }
}
