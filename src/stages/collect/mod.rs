//! Collect: issues of harnesses, and comments on request, into the database, from GitHub or from files. Pull requests
//! are counted and left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::{Classify, Context, Kind, Result};
use crate::domain::secret::Secret;
use crate::paths::Project;
use crate::storage::comments;
use crate::storage::database::Database;
use crate::storage::issues::{self, Count, Stored};
use crate::storage::settings;
use crate::storage::stage_log::{self, StageEntry};

mod asking;
mod export;
mod files;
mod github;
mod intake;
mod keep;
mod walk;

pub use asking::Patience;
pub use intake::Names;

#[derive(Debug)]
pub struct Config {
    pub source: Source,
}

/// `pipeline/collect.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub patience: Patience,
    /// What was created later is left out, so that a collection can be made again; all there is unless said.
    pub as_of: Option<DateTime<Utc>>,
    #[serde(default)]
    pub repository: Vec<Repository>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    pub name: String,
    /// Names that it had before: files that still use one belong to it.
    #[serde(default)]
    pub former: Vec<String>,
    /// Why it is mined.
    pub reason: String,
}

impl Settings {
    pub fn read(project: &Project) -> Result<Self> {
        settings::read(&project.settings("collect")).kind(Kind::Settings)
    }

    pub fn names(&self) -> Names {
        let mut names = Names::default();
        for repository in &self.repository {
            for former in &repository.former {
                names.insert(former, &repository.name);
            }
        }
        names
    }
}

#[derive(Debug)]
pub enum Source {
    /// Files, or folders of files. `repository` is that of rows which do not name theirs.
    Files {
        paths: Vec<PathBuf>,
        repository: Option<String>,
        names: Names,
    },
    /// GitHub, or a server that speaks like it.
    GitHub {
        repositories: Vec<String>,
        api: String,
        token: Option<Secret>,
        patience: Patience,
        as_of: Option<DateTime<Utc>>,
        comments: bool,
        reconcile: bool,
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
    /// Rows of issues that are known to be deleted or moved away; they were left.
    pub n_buried: u64,
    /// Rows that were created after the date that was asked for.
    pub n_later: u64,
    /// Pull requests seen in this run, left out.
    pub n_pull_requests: u64,
    /// Comments that are new or have another text.
    pub n_new_comments: u64,
    /// Issues found deleted or moved, taken out.
    pub n_gone: u64,
    /// Pages that GitHub sent.
    pub n_pages: u64,
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
            Stored::Gone => self.n_buried += 1,
        }
    }
}

/// Writes all that was collected to a file that `collect --from` reads; gives the number of rows.
pub fn export(context: &Context, path: &Path) -> Result<u64> {
    let database = Database::open_to_read(&context.project.database()).kind(Kind::Environment)?;
    export::write(&database, path)
}

pub fn run(context: &Context, config: Config) -> Result<Summary> {
    let path = context.project.database();
    let mut database = Database::open(&path).kind(Kind::Environment)?;
    let mut summary = Summary::default();
    match config.source {
        Source::Files {
            paths,
            repository,
            names,
        } => files::collect(
            context,
            &mut database,
            &paths,
            repository.as_deref(),
            &names,
            &mut summary,
        )?,
        Source::GitHub {
            repositories,
            api,
            token,
            patience,
            as_of,
            comments,
            reconcile,
        } => github::collect(
            context,
            &mut database,
            &github::Request {
                repositories: &repositories,
                api: &api,
                token: token.as_ref(),
                patience: &patience,
                as_of: as_of
                    .map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
                    .as_deref(),
                comments,
                reconcile,
            },
            &mut summary,
        )?,
    }
    let transaction = database.write()?;
    comments::sweep(&transaction)?;
    transaction.commit()?;
    summary.repositories = issues::counts(&database)?;
    summary.unchanged = summary.n_new + summary.n_changed + summary.n_gone == 0;
    // What brought nothing new makes nothing stale.
    if summary.unchanged && stage_log::last(&database, "collect")?.is_some() {
        return Ok(summary);
    }
    let entry = StageEntry {
        inputs: issues::digest_of_all(&database)?,
        finished_at: context.timestamp(),
        summary: serde_json::to_string(&summary)?,
    };
    stage_log::finish(&mut database, "collect", &entry)?;
    Ok(summary)
}
