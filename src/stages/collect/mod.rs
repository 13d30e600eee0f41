//! Collect: issues of harnesses into the database, from GitHub or from files. Pull requests are counted and left out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{Context, Kind, Result};
use crate::stages::Classify;
use crate::storage::database::Database;
use crate::storage::issues::{self, Count, Stored};
use crate::storage::stage_log::{self, StageEntry};

mod files;

#[derive(Debug)]
pub struct Config {
    pub source: Source,
}

#[derive(Debug)]
pub enum Source {
    /// Files, or folders of files. `repository` is that of rows which do not name theirs.
    Files {
        paths: Vec<PathBuf>,
        repository: Option<String>,
    },
}

#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Issues that were not there before.
    pub n_new: u64,
    /// Issues whose text, labels, state or times are others than before.
    pub n_changed: u64,
    pub n_same: u64,
    /// Rows older than what is stored; they were left.
    pub n_older: u64,
    /// Further rows of an issue that this run had read already.
    pub n_repeated: u64,
    /// Pull requests seen in this run, left out.
    pub n_pull_requests: u64,
    /// Rows that cannot be read: place and fault.
    pub broken: Vec<String>,
    /// All that is stored now, by repository.
    pub repositories: BTreeMap<String, Count>,
    /// Nothing new, nothing changed.
    pub unchanged: bool,
}

impl Summary {
    pub fn n_issues(&self) -> u64 {
        self.repositories.values().map(|count| count.n_issues).sum()
    }

    fn count(&mut self, stored: Stored) {
        match stored {
            Stored::New => self.n_new += 1,
            Stored::Changed => self.n_changed += 1,
            Stored::Same => self.n_same += 1,
            Stored::Older => self.n_older += 1,
        }
    }
}

pub fn run(context: &Context, config: Config) -> Result<Summary> {
    let path = context.project.database();
    let mut database = Database::open(&path).kind(Kind::Environment)?;
    let mut summary = Summary::default();
    match config.source {
        Source::Files { paths, repository } => files::collect(
            context,
            &mut database,
            &paths,
            repository.as_deref(),
            &mut summary,
        )?,
    }
    summary.repositories = issues::counts(&database)?;
    summary.unchanged = summary.n_new == 0 && summary.n_changed == 0;
    let entry = StageEntry {
        inputs: issues::digest_of_all(&database)?,
        finished_at: context.timestamp(),
        summary: serde_json::to_string(&summary)?,
    };
    stage_log::finish(&mut database, "collect", &entry)?;
    Ok(summary)
}
