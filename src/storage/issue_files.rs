//! Files of issues: JSON lines, one JSON array or one object, plain or gzipped, in UTF-8.
//!
//! Rows come out with their place; a row that cannot be read says so and does not stop the others.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::domain::place::{Finding, Place};

#[derive(Debug, thiserror::Error)]
pub enum IssueFilesError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// Neither a file nor a folder.
    #[error("there is no file or folder {path}")]
    Missing { path: PathBuf },
}

/// A row with the line on which it begins.
pub type PlacedRow = (Place, Value);

/// The files to read: the path itself, or all files of issues beneath a folder, in the order of their paths.
pub fn list(path: &Path) -> Result<Vec<PathBuf>, IssueFilesError> {
    if path.is_file() {
        return Ok(vec![path.to_path_buf()]);
    }
    if !path.is_dir() {
        return Err(IssueFilesError::Missing {
            path: path.to_path_buf(),
        });
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let fault = |source| IssueFilesError::Read {
            path: folder.clone(),
            source,
        };
        for entry in std::fs::read_dir(&folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let kind = entry.file_type().map_err(fault)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if is_issue_file(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads all rows of a file, good and broken ones in order.
pub fn read(path: &Path) -> Result<Vec<Result<PlacedRow, Finding>>, IssueFilesError> {
    let fault = |source| IssueFilesError::Read {
        path: path.to_path_buf(),
        source,
    };
    let mut bytes = std::fs::read(path).map_err(fault)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        let unpacked = flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain);
        if let Err(error) = unpacked {
            let message = format!("cannot be unpacked: {error}");
            return Ok(vec![Err(Finding::new(Place::new(path, 1), message))]);
        }
        bytes = plain;
    }
    Ok(rows(path, &bytes))
}

fn is_issue_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".json", ".jsonl", ".ndjson"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn rows(path: &Path, bytes: &[u8]) -> Vec<Result<PlacedRow, Finding>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
    match start.map(|start| bytes[start]) {
        Some(b'[') => array(path, bytes),
        Some(b'{') => match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => vec![Ok((Place::new(path, 1), value))],
            Err(_) => lines(path, bytes),
        },
        _ => lines(path, bytes),
    }
}

fn lines(path: &Path, bytes: &[u8]) -> Vec<Result<PlacedRow, Finding>> {
    bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(idx, line)| {
            let place = Place::new(path, idx + 1);
            match serde_json::from_slice(line) {
                Ok(value) => Ok((place, value)),
                Err(error) => Err(Finding::new(place, fault(&error))),
            }
        })
        .collect()
}

/// Item by item, so that each has its place. After a syntax error nothing more of the file can be told apart.
fn array(path: &Path, bytes: &[u8]) -> Vec<Result<PlacedRow, Finding>> {
    let skip = |from: usize, also: u8| {
        bytes[from..]
            .iter()
            .position(|byte| !byte.is_ascii_whitespace() && *byte != also)
            .map_or(bytes.len(), |n| from + n)
    };
    let mut rows = Vec::new();
    let mut at = skip(0, b'[');
    let (mut counted, mut line) = (0, 1);
    loop {
        let rest = &bytes[at..];
        line += bytes[counted..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        counted = at;
        let place = Place::new(path, line);
        if rest.first() == Some(&b']') {
            return rows;
        }
        let mut items = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        let item = match items.next() {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(fault(&error)),
            None => Err("the array has no end".to_owned()),
        };
        match item {
            Ok(value) => rows.push(Ok((place, value))),
            Err(message) => {
                let message = format!("{message}; the rest of the file was not read");
                rows.push(Err(Finding::new(place, message)));
                return rows;
            }
        }
        at = skip(at + items.byte_offset(), b',');
    }
}

/// Without the position inside the row, which would read like one in the file.
fn fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    format!("not valid JSON: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, bool)]) {
        let found: Vec<(usize, bool)> = rows(Path::new("f"), text.as_bytes())
            .iter()
            .map(|row| match row {
                Ok((place, _)) => (place.line, true),
                Err(finding) => (finding.place.line, false),
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn each_row_has_its_line() {
        check("{\"a\":1}\n\n{\"a\":2}\r\n", &[(1, true), (3, true)]);
        check(
            "{\"a\":1}\nnonsense\n{\"a\":2}",
            &[(1, true), (2, false), (3, true)],
        );
        check("[\n{\"a\":1},\n\n{\"a\":2}\n]\n", &[(2, true), (4, true)]);
        check("[]", &[]);
        check("", &[]);
        check("\u{feff}[{\"a\":1}]", &[(1, true)]);
        check("{\n\"a\": 1\n}", &[(1, true)]);
    }

    #[test]
    fn a_torn_array_keeps_what_came_before() {
        check("[{\"a\":1},\n{\"a\":", &[(1, true), (2, false)]);
        check("[{\"a\":1}\n", &[(1, true), (2, false)]);
    }

    #[test]
    fn a_damaged_archive_is_one_broken_row() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json.gz");
        std::fs::write(&path, b"\x1f\x8bnonsense").expect("writes");
        let rows = read(&path).expect("reads");
        assert!(matches!(&rows[..], [Err(finding)] if finding.message.contains("unpacked")));
    }

    #[test]
    fn folders_are_searched_in_order_and_other_files_left() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.jsonl", "a/x.json", "a/x.csv", "README.md", "c.json.gz"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("makes");
            std::fs::write(path, "").expect("writes");
        }
        let found: Vec<String> = list(folder.path())
            .expect("lists")
            .iter()
            .map(|path| {
                let path = path.strip_prefix(folder.path()).expect("is below");
                path.display().to_string()
            })
            .collect();
        assert_eq!(found, ["a/x.json", "b.jsonl", "c.json.gz"]);
        assert!(matches!(
            list(&folder.path().join("none")),
            Err(IssueFilesError::Missing { .. })
        ));
    }
}
