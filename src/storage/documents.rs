//! The development document read from its folder: every `NN-slug.md`, in the order of the numbers.

use std::path::{Path, PathBuf};

use crate::domain::document::{Chapter, Document};
use crate::domain::place::{Finding, Place};

/// Reads all chapters; when something is wrong, every finding of every chapter is returned.
///
/// Files whose name does not begin with a digit (notes, tables) are no chapters.
pub fn read(folder: &Path) -> Result<Document, Vec<Finding>> {
    let files = files(folder).map_err(|message| vec![at(folder, message)])?;
    let mut chapters = Vec::new();
    let mut findings = Vec::new();
    for file in files {
        match std::fs::read_to_string(&file) {
            Ok(markdown) => match Chapter::parse(&file, &markdown) {
                Ok(chapter) => chapters.push(chapter),
                Err(mut found) => findings.append(&mut found),
            },
            Err(error) => findings.push(at(&file, format!("cannot be read: {error}"))),
        }
    }
    if chapters.is_empty() && findings.is_empty() {
        findings.push(at(folder, "holds no chapter (NN-slug.md)".to_owned()));
    }
    chapters.sort_by(|a, b| (a.number, &a.slug).cmp(&(b.number, &b.slug)));
    if findings.is_empty() {
        Ok(Document { chapters })
    } else {
        Err(findings)
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot be read: {error}"))?;
    for entry in entries {
        let path = entry
            .map_err(|error| format!("cannot be read: {error}"))?
            .path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".md") && name.starts_with(|c: char| c.is_ascii_digit()) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn at(path: &Path, message: String) -> Finding {
    Finding::new(Place::new(path, 1), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUSE: &str = "# T\n\n### SLUG.a.b · ordinary\n**Syntax** x\n**Meaning** x\n\
        **Behaviour** x\n**Channels** exit\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("writes");
        }
        folder
    }

    #[test]
    fn chapters_come_in_the_order_of_their_numbers() {
        let folder = folder(&[
            ("10-b.md", &CLAUSE.replace("SLUG", "b")),
            ("02-a.md", &CLAUSE.replace("SLUG", "a")),
            ("notes.md", "no chapter"),
            ("aliases.toml", ""),
        ]);
        let document = read(folder.path()).expect("reads");
        let ids: Vec<&str> = document
            .clauses()
            .map(|clause| clause.id.as_str())
            .collect();
        assert_eq!(ids, ["a.a.b", "b.a.b"]);
    }

    #[test]
    fn every_finding_is_returned() {
        let folder = folder(&[("01-a.md", CLAUSE), ("02-b.md", "no title")]);
        let findings = read(folder.path()).expect_err("must fail");
        let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings.len(), 2, "{shown:?}");
        assert!(shown[0].contains("01-a.md:3:"), "{shown:?}");
        assert!(shown[1].contains("02-b.md:1:"), "{shown:?}");
    }

    #[test]
    fn an_empty_folder_is_a_finding() {
        let folder = folder(&[]);
        let findings = read(folder.path()).expect_err("must fail");
        assert!(findings[0].message.contains("holds no chapter"));
        assert!(read(&folder.path().join("absent")).is_err());
    }
}
