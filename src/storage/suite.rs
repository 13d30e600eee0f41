//! The suite as files: `cases/CATEGORY/NAME.toml` and `cases/controls/NAME.toml`.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::runs::hex;
use crate::domain::case::{Case, CaseId};
use crate::domain::place::{Finding, Place};
use crate::domain::suite::Suite;

/// Reads every case below the folder. On failure all findings of all files are returned.
pub fn read(cases: &Path) -> Result<Suite, Vec<Finding>> {
    match read_what_can_be(cases) {
        (suite, findings) if findings.is_empty() => Ok(suite),
        (_, findings) => Err(findings),
    }
}

/// Reads the cases of these ids and no others; one that has no file is left out.
pub fn read_some<'a>(
    cases: &Path,
    ids: impl Iterator<Item = &'a CaseId>,
) -> Result<Suite, Vec<Finding>> {
    let files = ids.map(|id| cases.join(format!("{id}.toml")));
    match parsed(cases, files.filter(|file| file.is_file())) {
        (suite, findings) if findings.is_empty() => Ok(suite),
        (_, findings) => Err(findings),
    }
}

/// The cases below the folder that can be read, and what is wrong with the others.
pub fn read_what_can_be(cases: &Path) -> (Suite, Vec<Finding>) {
    let mut files = Vec::new();
    let collected = collect(cases, &mut files);
    files.sort();
    let (suite, mut findings) = parsed(cases, files.into_iter());
    if let Err(error) = collected {
        let finding = Finding::new(Place::new(cases, 1), error.to_string());
        findings.insert(0, finding);
    }
    (suite, findings)
}

fn parsed(cases: &Path, files: impl Iterator<Item = PathBuf>) -> (Suite, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut parsed = Vec::new();
    for file in files {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                findings.push(Finding::new(Place::new(&file, 1), error.to_string()));
                continue;
            }
        };
        let id = file
            .strip_prefix(cases)
            .expect("the file was found below this folder")
            .with_extension("")
            .to_string_lossy()
            .into_owned();
        match Case::parse(CaseId::new(id), &file, &text) {
            Ok(case) => parsed.push(case),
            Err(mut found) => findings.append(&mut found),
        }
    }
    (Suite::new(parsed), findings)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.is_file() && path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    Ok(())
}

/// SHA-256 of a case's file, in hexadecimal.
pub fn case_digest(case: &Case) -> String {
    hex(&Sha256::digest(case.text.as_bytes()))
}

/// SHA-256 of what a case does: its fixture and its launches, whatever it asserts.
pub fn scenario_digest(case: &Case) -> String {
    let scenario = serde_json::to_vec(&(&case.fixture, &case.launches))
        .expect("a case is plain data with string keys");
    hex(&Sha256::digest(scenario))
}

/// Digest over the ids and files of some cases, in order.
pub fn digest<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    let mut hasher = Sha256::new();
    for case in cases {
        hasher.update(case.id.as_str());
        hasher.update([0]);
        hasher.update(case_digest(case));
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}
