//! Imports go downward only, as docs/architecture.md says.

use std::path::{Path, PathBuf};

use crate::project::repository;

/// What each layer may import, besides itself.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("methods", &["domain"]),
    ("storage", &["domain"]),
    ("adapters", &["domain"]),
    (
        "stages",
        &["methods", "storage", "adapters", "domain", "paths"],
    ),
    (
        "web",
        &[
            "stages", "methods", "storage", "adapters", "domain", "paths",
        ],
    ),
    (
        "cli",
        &[
            "web", "stages", "methods", "storage", "adapters", "domain", "paths",
        ],
    ),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("reads") {
        let path = entry.expect("reads").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn imports_go_downward() {
    let source = repository().join("src");
    let mut faults = Vec::new();
    for (layer, allowed) in LAYERS {
        let mut found = Vec::new();
        files(&source.join(layer), &mut found);
        assert!(!found.is_empty(), "{layer} has files");
        for file in found {
            let text = std::fs::read_to_string(&file).expect("reads");
            for (idx, line) in text.lines().enumerate() {
                // Comments may point upward.
                let code = line.split("//").next().unwrap_or_default();
                for (_, rest) in code
                    .match_indices("crate::")
                    .map(|(at, _)| code.split_at(at + 7))
                {
                    let name: String = rest
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || *c == '_')
                        .collect();
                    if !name.is_empty() && name != *layer && !allowed.contains(&name.as_str()) {
                        let shown = file.strip_prefix(&source).expect("is below").display();
                        faults.push(format!("src/{shown}:{}: {layer} imports {name}", idx + 1));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_file_opens_with_its_job() {
    let mut found = Vec::new();
    files(&repository().join("src"), &mut found);
    let silent: Vec<PathBuf> = found
        .into_iter()
        .filter(|file| {
            !std::fs::read_to_string(file)
                .expect("reads")
                .starts_with("//!")
        })
        .collect();
    assert!(silent.is_empty(), "{silent:?}");
}
