//! Drafts that were refused, with the reason: `data/drafts/CLUSTER.jsonl`, append-only.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::draft::Refusal;

#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct DraftsError {
    pub path: PathBuf,
    pub source: std::io::Error,
}

/// One answer of a model that did not become a draft in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// RFC 3339.
    pub at: String,
    pub model: String,
    #[serde(flatten)]
    pub refusal: Refusal,
    /// As it came.
    pub answer: String,
}

/// Appends refused drafts of a cluster, and returns their file.
pub fn append(folder: &Path, cluster: &str, refused: &[Refused]) -> Result<PathBuf, DraftsError> {
    let path = folder.join(format!("{cluster}.jsonl"));
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut lines = String::new();
        for one in refused {
            lines += &serde_json::to_string(one)?;
            lines.push('\n');
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    };
    match write() {
        Ok(()) => Ok(path),
        Err(source) => Err(DraftsError { path, source }),
    }
}
