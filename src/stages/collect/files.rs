//! Collecting from files: each file is one transaction, so that a killed run has whole files and goes on from there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::intake::Names;
use super::{Summary, intake};
use crate::domain::issue::IssueKey;
use crate::domain::place::Finding;
use crate::methods::issue_form::{self, Row};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::database::Database;
use crate::storage::issue_files::{self, IssueFilesError, PlacedRow};

/// The time of the last update of each issue that this run has read.
type Seen = HashMap<IssueKey, Option<String>>;

pub(super) fn collect(
    context: &Context,
    database: &mut Database,
    paths: &[PathBuf],
    repository: Option<&str>,
    names: &Names,
    summary: &mut Summary,
) -> Result<()> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(issue_files::list(path).map_err(failure)?);
    }
    if files.is_empty() {
        return Err(Failure::user("no file of issues is there")
            .hint("give files or folders with .json, .jsonl or .ndjson (also .gz)"));
    }
    context.progress.begin("collect", Some(files.len() as u64));
    let mut seen = Seen::new();
    for file in &files {
        collect_file(database, file, repository, names, &mut seen, summary)?;
        context.progress.advance(1);
    }
    context.progress.end(&format!(
        "{} files, {} new issues, {} changed",
        files.len(),
        summary.n_new,
        summary.n_changed
    ));
    Ok(())
}

fn collect_file(
    database: &mut Database,
    file: &Path,
    repository: Option<&str>,
    names: &Names,
    seen: &mut Seen,
    summary: &mut Summary,
) -> Result<()> {
    let placed = issue_files::read(file).map_err(failure)?;
    let transaction = database.write()?;
    for row in placed {
        let rows = match row.and_then(|row| parsed(row, repository)) {
            Ok(rows) => rows,
            Err(finding) => {
                summary.broken.push(finding.to_string());
                continue;
            }
        };
        for mut row in rows {
            let key = row.key_mut();
            if let Some(present) = names.present(&key.repository) {
                key.repository = present.to_owned();
            }
            if let Row::Issue(issue) = &row {
                let before = seen.get(&issue.key);
                if before.is_some_and(|updated_at| issue.updated_at <= *updated_at) {
                    summary.n_repeated += 1;
                    continue;
                }
            }
            intake::store(&transaction, &row, summary)?;
            if let Row::Issue(issue) = row {
                seen.insert(issue.key, issue.updated_at);
            }
        }
    }
    Ok(transaction.commit()?)
}

fn parsed(row: PlacedRow, repository: Option<&str>) -> std::result::Result<Vec<Row>, Finding> {
    let (place, value) = row;
    issue_form::rows(&value, repository).map_err(|message| Finding::new(place, message))
}

fn failure(error: IssueFilesError) -> Failure {
    let kind = match error {
        IssueFilesError::Missing { .. } => Kind::User,
        IssueFilesError::Read { .. } => Kind::Environment,
    };
    Err::<(), _>(error).kind(kind).expect_err("it is an error")
}
