//! The inventory files, `data/inventory/HARNESS.toml`, and the closed list of reasons, `reasons.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::domain::clause::ClauseId;
use crate::domain::inventory::{Feature, Inventory, State};
use crate::domain::place::{Finding, Place};

/// The name of the file of reasons beside the inventories.
pub const REASONS: &str = "reasons.toml";

/// Reads all inventories, sorted by file name; an absent folder holds none. Every file's first fault is returned.
pub fn read_all(folder: &Path) -> Result<Vec<Inventory>, Vec<Finding>> {
    let mut inventories = Vec::new();
    let mut findings = Vec::new();
    for file in files(folder)? {
        match read(&file) {
            Ok(inventory) => inventories.push(inventory),
            Err(finding) => findings.push(finding),
        }
    }
    if findings.is_empty() {
        Ok(inventories)
    } else {
        Err(findings)
    }
}

/// Reads one harness's inventory.
pub fn read(file: &Path) -> Result<Inventory, Finding> {
    let (text, parsed): (String, InventoryFile) = parse(file)?;
    let features = parsed
        .feature
        .into_iter()
        .map(|entry| feature(file, &text, entry))
        .collect();
    Ok(Inventory {
        harness: parsed.harness,
        version: parsed.version,
        sources: parsed.sources,
        features,
        file: file.to_path_buf(),
    })
}

/// Why features were left out: the word, and what it means.
pub fn read_reasons(folder: &Path) -> Result<BTreeMap<String, String>, Finding> {
    let (_, parsed): (String, ReasonsFile) = parse(&folder.join(REASONS))?;
    Ok(parsed.reasons)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InventoryFile {
    harness: String,
    version: String,
    sources: Vec<String>,
    #[serde(default)]
    feature: Vec<FeatureEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureEntry {
    id: Spanned<String>,
    kind: String,
    chapter: String,
    name: String,
    invocation: String,
    clause: Option<ClauseId>,
    clauses: Option<Vec<ClauseId>>,
    pruned: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReasonsFile {
    reasons: BTreeMap<String, String>,
}

fn feature(file: &Path, text: &str, entry: FeatureEntry) -> Feature {
    let place = Place::of_offset(file, text, entry.id.span().start);
    let states = [
        entry.clause.map(State::Clause),
        entry.clauses.map(State::Clauses),
        entry.pruned.map(State::Pruned),
    ];
    Feature {
        id: entry.id.into_inner(),
        kind: entry.kind,
        chapter: entry.chapter,
        name: entry.name,
        invocation: entry.invocation,
        states: states.into_iter().flatten().collect(),
        place,
    }
}

fn parse<T: serde::de::DeserializeOwned>(file: &Path) -> Result<(String, T), Finding> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Finding::new(Place::new(file, 1), format!("cannot be read: {error}")))?;
    let parsed = toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        Finding::new(
            Place::of_offset(file, &text, offset),
            error.message().trim().to_owned(),
        )
    })?;
    Ok((text, parsed))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Vec<Finding>> {
    let fault = |error: std::io::Error| {
        vec![Finding::new(
            Place::new(folder, 1),
            format!("cannot be read: {error}"),
        )]
    };
    let mut files = Vec::new();
    if !folder.is_dir() {
        return Ok(files);
    }
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let is_toml = path.extension().is_some_and(|ext| ext == "toml");
        if is_toml && path.file_name().is_some_and(|name| name != REASONS) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "harness = \"x\"\nversion = \"1\"\nsources = []\n";

    fn feature_text(id: &str, state: &str) -> String {
        format!(
            "\n[[feature]]\nid = \"{id}\"\nkind = \"tool\"\nchapter = \"tools\"\nname = \"n\"\ninvocation = \"n()\"\n{state}"
        )
    }

    #[test]
    fn features_keep_their_states_and_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.toml");
        let text = [
            HEAD.to_owned(),
            feature_text("x/tool/a", "clause = \"tools.read.range\"\n"),
            feature_text("x/tool/b", ""),
            feature_text(
                "x/tool/c",
                "pruned = \"appearance\"\nclauses = [\"a.b.c\", \"a.b.d\"]\n",
            ),
        ]
        .concat();
        std::fs::write(&file, text).expect("writes");
        std::fs::write(
            folder.path().join(REASONS),
            "[reasons]\nappearance = \"looks\"\n",
        )
        .expect("writes");
        let inventories = read_all(folder.path()).expect("reads");
        let features = &inventories[0].features;
        assert_eq!(features.len(), 3);
        assert_eq!(features[0].clauses().len(), 1);
        assert_eq!((features[0].place.line, features[1].place.line), (6, 14));
        assert!(features[1].states.is_empty());
        assert_eq!(features[2].states.len(), 2);
        assert!(features[2].state().is_none());
        assert_eq!(read_reasons(folder.path()).expect("reads").len(), 1);
    }

    #[test]
    fn a_fault_names_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.toml");
        let text = format!("{HEAD}{}", feature_text("x/tool/a", "clause = \"tools\"\n"));
        std::fs::write(&file, text).expect("writes");
        let findings = read_all(folder.path()).expect_err("must fail");
        assert_eq!(findings[0].place.line, 11, "{findings:?}");
        assert!(findings[0].message.contains("not a clause id"));
    }
}
