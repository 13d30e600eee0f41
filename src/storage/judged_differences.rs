//! `data/comparison-judged.jsonl`: what readers said about differences that comparisons listed.

use std::path::Path;

use crate::domain::difference::Judgement;
use crate::domain::place::{Finding, Place};

/// All judgements; none when the file is not there. Every faulty line is named.
pub fn read(path: &Path) -> Result<Vec<Judgement>, Vec<Finding>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(vec![Finding::new(Place::new(path, 1), error.to_string())]);
        }
    };
    let mut judgements: Vec<Judgement> = Vec::new();
    let mut findings = Vec::new();
    let lines = text.lines().enumerate();
    for (idx, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let mut fault = |message| findings.push(Finding::new(Place::new(path, idx + 1), message));
        match serde_json::from_str::<Judgement>(line) {
            Ok(new) => {
                let is_known = judgements
                    .iter()
                    .any(|old| old.difference == new.difference && old.clause == new.clause);
                if is_known {
                    fault(format!("{} is judged twice", new.difference));
                }
                judgements.push(new);
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
    fn a_faulty_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("judged.jsonl");
        assert_eq!(read(&path), Ok(Vec::new()));
        let line = r#"{"difference": "t/m/error-1", "clause": "tools.read.range", "right": true, "why": "x"}"#;
        std::fs::write(&path, format!("{line}\n\n")).expect("is written");
        assert_eq!(read(&path).expect("is read").len(), 1);
        std::fs::write(&path, format!("{line}\n{line}\nno\n")).expect("is written");
        let findings = read(&path).expect_err("is faulty");
        let lines: Vec<usize> = findings.iter().map(|finding| finding.place.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
