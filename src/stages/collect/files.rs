//! Collecting from files: each file is one transaction, so that a killed run has whole files and goes on from there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Summary;
use crate::domain::issue::IssueKey;
use crate::domain::place::Finding;
use crate::methods::issue_form::{self, Row};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::database::Database;
use crate::storage::issue_files::{self, IssueFilesError, PlacedRow};
use crate::storage::issues;

/// The time of the last update of each issue that this run has read.
type Seen = HashMap<IssueKey, Option<String>>;

pub(super) fn collect(
    context: &Context,
    database: &mut Database,
    paths: &[PathBuf],
    repository: Option<&str>,
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
        collect_file(database, file, repository, &mut seen, summary)?;
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
    seen: &mut Seen,
    summary: &mut Summary,
) -> Result<()> {
    let rows = issue_files::read(file).map_err(failure)?;
    let transaction = database.write()?;
    for row in rows {
        match row.and_then(|row| parsed(row, repository)) {
            Err(finding) => summary.broken.push(finding.to_string()),
            Ok(Row::PullRequest(key)) => {
                issues::store_pull_request(&transaction, &key)?;
                summary.n_pull_requests += 1;
            }
            Ok(Row::Issue(issue)) => {
                let before = seen.get(&issue.key);
                if before.is_some_and(|updated_at| issue.updated_at <= *updated_at) {
                    summary.n_repeated += 1;
                    continue;
                }
                summary.count(issues::store(&transaction, &issue)?);
                seen.insert(issue.key, issue.updated_at);
            }
        }
    }
    Ok(transaction.commit()?)
}

fn parsed(row: PlacedRow, repository: Option<&str>) -> std::result::Result<Row, Finding> {
    let (place, value) = row;
    issue_form::row(&value, repository).map_err(|message| Finding::new(place, message))
}

fn failure(error: IssueFilesError) -> Failure {
    let kind = match error {
        IssueFilesError::Missing { .. } => Kind::User,
        IssueFilesError::Read { .. } => Kind::Environment,
    };
    Err::<(), _>(error).kind(kind).expect_err("it is an error")
}
