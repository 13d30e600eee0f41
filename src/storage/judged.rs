//! A judged set of issues: `issues.jsonl` with `judgements.jsonl` beside it, joined by repository and number.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::domain::issue::IssueKey;
use crate::domain::place::{Finding, Place};

/// One line of `judgements.jsonl`; further fields are for readers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Judgement {
    pub repository: String,
    pub number: u64,
    /// 0 not relevant, 1 in part, 2 fully.
    pub relevant: u8,
    /// Issues with the same one belong into one cluster; none counts as one of its own.
    #[serde(default)]
    pub phenomenon: Option<String>,
}

pub fn issues_file(folder: &Path) -> PathBuf {
    folder.join("issues.jsonl")
}

/// All judgements of a folder; every faulty line is named.
pub fn read(folder: &Path) -> Result<BTreeMap<IssueKey, Judgement>, Vec<Finding>> {
    let path = folder.join("judgements.jsonl");
    let text = std::fs::read_to_string(&path).map_err(|error| {
        vec![Finding::new(
            Place::new(&path, 1),
            format!("cannot be read: {error}"),
        )]
    })?;
    let mut judgements = BTreeMap::new();
    let mut findings = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let mut fault = |message: String| {
            findings.push(Finding::new(Place::new(&path, idx + 1), message));
        };
        match serde_json::from_str::<Judgement>(line) {
            Ok(judgement) if judgement.relevant > 2 => {
                fault(format!("relevant is {}, not 0, 1 or 2", judgement.relevant));
            }
            Ok(judgement) => {
                let key = IssueKey {
                    repository: judgement.repository.clone(),
                    number: judgement.number,
                };
                if judgements.insert(key.clone(), judgement).is_some() {
                    fault(format!("{key} is judged twice"));
                }
            }
            Err(error) => fault(error.to_string()),
        }
    }
    if findings.is_empty() {
        Ok(judgements)
    } else {
        Err(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judgements_are_joined_by_key_and_faults_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |text: &str| {
            std::fs::write(folder.path().join("judgements.jsonl"), text).expect("writes");
        };
        let line = r#"{"repository": "o/n", "number": 1, "relevant": 2, "phenomenon": "p", "chapter": "x"}"#;
        write(line);
        let judged = read(folder.path()).expect("reads");
        let key: IssueKey = "o/n#1".parse().expect("a key");
        assert_eq!(judged[&key].phenomenon.as_deref(), Some("p"));
        write(&format!("{line}\n{line}\n{{\"relevant\": 1}}\n"));
        let lines: Vec<usize> = read(folder.path())
            .expect_err("must fail")
            .iter()
            .map(|finding| finding.place.line)
            .collect();
        assert_eq!(lines, [2, 3]);
    }
}
