//! Closing samples: random draws from the issues that were unread, `reviews/samples.jsonl`, append-only.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::issue::IssueKey;
use crate::domain::place::Place;

#[derive(Debug, thiserror::Error)]
pub enum SamplesError {
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{place}: {message}")]
    Line { place: Place, message: String },
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// RFC 3339.
    pub at: String,
    /// Issues that were unread when it was drawn, from which it was drawn.
    pub n_unread: usize,
    pub issues: Vec<IssueKey>,
}

/// All samples in the order they were drawn; none when there is no file.
pub fn read(reviews: &Path) -> Result<Vec<Sample>, SamplesError> {
    let path = file(reviews);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(SamplesError::File { path, source }),
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(idx, line)| {
            serde_json::from_str(line).map_err(|error| SamplesError::Line {
                place: Place::new(&path, idx + 1),
                message: error.to_string(),
            })
        })
        .collect()
}

/// Appends one sample, and returns when it is on the disk.
pub fn append(reviews: &Path, sample: &Sample) -> Result<(), SamplesError> {
    let path = file(reviews);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(reviews)?;
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let mut line = serde_json::to_vec(sample)?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_data()
    };
    write().map_err(|source| SamplesError::File {
        path: path.clone(),
        source,
    })
}

fn file(reviews: &Path) -> PathBuf {
    reviews.join("samples.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_as_they_were_drawn() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(folder.path()).expect("reads"), []);
        let sample = |number: u64| Sample {
            at: "2026-12-01T00:00:00Z".into(),
            n_unread: 40,
            issues: vec![IssueKey {
                repository: "o/n".into(),
                number,
            }],
        };
        append(folder.path(), &sample(1)).expect("writes");
        append(folder.path(), &sample(2)).expect("writes");
        assert_eq!(read(folder.path()).expect("reads"), [sample(1), sample(2)]);
        std::fs::write(folder.path().join("samples.jsonl"), "{}\n").expect("writes");
        assert!(read(folder.path()).is_err());
    }
}
