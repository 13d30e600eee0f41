//! What became of the files between the start and the end of an attempt.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use similar::TextDiff;

use crate::domain::case::Bindings;
use crate::domain::evidence::{FileKind, FileState};

/// Longer texts are compared by size only, so that no pair of files takes long.
const DIFF_LINES: usize = 2000;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileChange {
    pub path: String,
    /// `added`, `removed` or `changed`
    pub what: &'static str,
    /// What differs but the text: `file, 12 bytes`, `mode 644 → 755`.
    pub note: String,
    /// A unified diff without a head, when both sides are text that was kept; empty when only the note differs.
    pub diff: String,
}

/// Everything that differs, by path, and the number of files that do not.
pub fn changes(
    before: &BTreeMap<String, FileState>,
    after: &BTreeMap<String, FileState>,
    bindings: &Bindings,
) -> (Vec<FileChange>, usize) {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let n_paths = paths.len();
    let changed: Vec<FileChange> = paths
        .into_iter()
        .filter_map(|path| {
            let (was, is) = (before.get(path), after.get(path));
            let (what, note, texts) = match (was, is) {
                (None, Some(is)) => ("added", describe(is, bindings), ("", text(is))),
                (Some(was), None) => ("removed", describe(was, bindings), (text(was), "")),
                (Some(was), Some(is)) if was != is => (
                    "changed",
                    difference(was, is, bindings),
                    (text(was), text(is)),
                ),
                _ => return None,
            };
            Some(FileChange {
                path: path.clone(),
                what,
                note,
                diff: diff(&bindings.redact(texts.0), &bindings.redact(texts.1)),
            })
        })
        .collect();
    let n_unchanged = n_paths - changed.len();
    (changed, n_unchanged)
}

fn text(state: &FileState) -> &str {
    state.text.as_deref().unwrap_or_default()
}

fn describe(state: &FileState, bindings: &Bindings) -> String {
    match state.kind {
        FileKind::File if state.text.is_none() => format!("file, {} bytes, no text", state.size),
        FileKind::File => format!("file, {} bytes", state.size),
        FileKind::Link => {
            let target = state.target.as_deref().unwrap_or_default();
            format!("link to {}", bindings.redact(target))
        }
        kind => word(kind).to_owned(),
    }
}

fn difference(was: &FileState, is: &FileState, bindings: &Bindings) -> String {
    let mut parts = Vec::new();
    if was.kind != is.kind || was.target != is.target {
        parts.push(format!(
            "{} → {}",
            describe(was, bindings),
            describe(is, bindings)
        ));
    } else if was.size != is.size {
        parts.push(format!("{} → {} bytes", was.size, is.size));
    } else if was.digest != is.digest {
        parts.push(format!("{} bytes, other content", is.size));
    }
    if was.mode != is.mode {
        parts.push(format!("mode {:o} → {:o}", was.mode, is.mode));
    }
    parts.join(", ")
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Dir => "folder",
        FileKind::Link => "link",
        FileKind::Fifo => "pipe",
        FileKind::Other => "special file",
    }
}

fn diff(was: &str, is: &str) -> String {
    if was == is || was.lines().count().max(is.lines().count()) > DIFF_LINES {
        return String::new();
    }
    TextDiff::from_lines(was, is)
        .unified_diff()
        .context_radius(2)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> FileState {
        FileState {
            kind: FileKind::File,
            mode,
            size: text.len() as u64,
            digest: Some(text.to_owned()),
            text: Some(text.to_owned()),
            target: None,
        }
    }

    #[test]
    fn tells_what_differs_and_counts_the_rest() {
        let link = FileState {
            kind: FileKind::Link,
            text: None,
            digest: None,
            target: Some("a".into()),
            ..file("", 0o777)
        };
        let before = BTreeMap::from([
            ("a".to_owned(), file("one\ntwo\n", 0o644)),
            ("b".to_owned(), file("same\n", 0o644)),
            ("c".to_owned(), file("x\n", 0o644)),
            ("d".to_owned(), file("", 0o644)),
        ]);
        let after = BTreeMap::from([
            ("a".to_owned(), file("one\n2\n", 0o644)),
            ("b".to_owned(), file("same\n", 0o644)),
            ("c".to_owned(), file("x\n", 0o755)),
            ("e".to_owned(), link),
        ]);
        let (changed, n_unchanged) = changes(&before, &after, &Bindings::default());
        assert_eq!(n_unchanged, 1);
        let told: Vec<_> = changed
            .iter()
            .map(|c| (c.path.as_str(), c.what, c.note.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("a", "changed", "8 → 6 bytes"),
                ("c", "changed", "mode 644 → 755"),
                ("d", "removed", "file, 0 bytes"),
                ("e", "added", "link to a"),
            ]
        );
        assert_eq!(changed[0].diff, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
        assert_eq!(changed[1].diff, "");
    }
}
