//! The tree: what has to be there, what may be in it, and the three files beside the package.

use std::path::Path;

use super::file;
use crate::domain::candidate::{FileKind, TreeFile};
use crate::domain::place::{Finding, Place};

/// The entry script.
pub const ENTRY: &str = "harness";
/// The install script.
pub const INSTALL: &str = "install.sh";
const PROJECT: &str = "pyproject.toml";

/// What the entry script must say to reach the first contract.
const ENTRY_NEEDS: [&str; 2] = ["from harness_agent.cli import main", "main(sys.argv[1:])"];
/// The keys of the project file that stay as the skeleton has them.
const PROJECT_KEYS: [&str; 3] = ["name", "requires-python", "dependencies"];

pub fn check(skeleton: &[TreeFile], candidate: &[TreeFile], findings: &mut Vec<Finding>) {
    for needed in skeleton {
        match file(candidate, &needed.path) {
            None => findings.push(at(&needed.path, "is missing")),
            Some(found) if found.kind == FileKind::Link => {
                findings.push(at(&needed.path, "is a link, not a file"));
            }
            Some(found) if found.text().is_none() => {
                findings.push(at(&needed.path, "is not UTF-8"));
            }
            Some(found) if needed.kind == FileKind::Executable && found.kind != needed.kind => {
                findings.push(at(&needed.path, "is not executable"));
            }
            Some(_) => {}
        }
    }
    for found in candidate {
        if found.kind == FileKind::Link && leaves(&found.path, &found.content) {
            let target = String::from_utf8_lossy(&found.content);
            findings.push(at(
                &found.path,
                &format!("is a link out of the tree, to {target}"),
            ));
        }
        if found.path.ends_with(".py") && found.kind != FileKind::Link && found.text().is_none() {
            findings.push(at(&found.path, "is not UTF-8"));
        }
    }
    let changed = |path: &str| {
        let found = file(candidate, path)?;
        let original = file(skeleton, path)?;
        (found.content != original.content).then(|| found.text())?
    };
    for path in [ENTRY, INSTALL] {
        if changed(path).is_some_and(|text| !text.starts_with("#!/")) {
            findings.push(at(path, "does not begin with `#!/` and an interpreter"));
        }
    }
    if let Some(text) = changed(ENTRY) {
        for needed in ENTRY_NEEDS {
            if !text.contains(needed) {
                findings.push(at(ENTRY, &format!("does not have `{needed}`")));
            }
        }
    }
    if let (Some(text), Some(original)) = (changed(PROJECT), file(skeleton, PROJECT)) {
        project(text, original.text().unwrap_or_default(), findings);
    }
}

fn project(text: &str, original: &str, findings: &mut Vec<Finding>) {
    let parsed: toml::Table = match toml::from_str(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let offset = error.span().map_or(0, |span| span.start);
            findings.push(Finding::new(
                Place::of_offset(Path::new(PROJECT), text, offset),
                error.message().trim().to_owned(),
            ));
            return;
        }
    };
    let original: toml::Table = toml::from_str(original).unwrap_or_default();
    let value = |table: &toml::Table, key: &str| table.get("project")?.get(key).cloned();
    for key in PROJECT_KEYS {
        let expected = value(&original, key);
        if value(&parsed, key) != expected {
            let expected = expected.map_or("nothing".to_owned(), |value| value.to_string());
            findings.push(at(PROJECT, &format!("project.{key} is not {expected}")));
        }
    }
}

/// Whether a link leads out of the tree, judged by its text.
fn leaves(path: &str, target: &[u8]) -> bool {
    let target = String::from_utf8_lossy(target);
    if target.starts_with('/') {
        return true;
    }
    let mut depth = path.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn at(path: &str, message: &str) -> Finding {
    Finding::new(Place::new(Path::new(path), 1), message)
}
