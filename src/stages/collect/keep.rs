//! What a walk found, stored: each page and the place to go on in one transaction, so that a killed run goes on there.

use std::collections::BTreeSet;

use chrono::{DateTime, SecondsFormat, TimeDelta};

use super::{Summary, intake};
use crate::adapters::github::Page;
use crate::domain::issue::IssueKey;
use crate::methods::issue_form::{self, Row};
use crate::stages::{Classify, Context, Kind, Result};
use crate::storage::database::Database;
use crate::storage::github_passes::{self, List, Pass};
use crate::storage::{issues, raw_pages};

/// Clocks and updates that are under way when a pass begins.
const OVERLAP: TimeDelta = TimeDelta::minutes(10);

/// The state of one list while it is walked.
pub(super) struct Keeper<'a> {
    pub context: &'a Context,
    pub pass: Pass,
    /// Rows that were created later are left out.
    pub as_of: Option<&'a str>,
    /// Numbers of the rows of this walk.
    pub met: BTreeSet<u64>,
    /// New and changed rows of this walk.
    pub n_brought: u64,
}

impl<'a> Keeper<'a> {
    pub fn new(context: &'a Context, pass: Pass, as_of: Option<&'a str>) -> Self {
        let mut keeper = Self {
            context,
            pass,
            as_of,
            met: BTreeSet::new(),
            n_brought: 0,
        };
        if keeper.pass.next_url.is_none() {
            keeper.begin();
        }
        keeper
    }

    /// The list is begun anew.
    pub fn begin(&mut self) {
        self.pass.started_at = None;
        self.pass.next_url = None;
        self.pass.has_changes = false;
        self.met.clear();
    }

    /// The unfinished pass is given up; the next run begins the list anew.
    pub fn forget(&mut self, database: &mut Database) -> Result<()> {
        self.begin();
        let transaction = database.write()?;
        github_passes::put(&transaction, &self.pass)?;
        Ok(transaction.commit()?)
    }

    /// The walk came to its end. Without a change the watermark stays, so that the same question can be answered by
    /// "not modified".
    pub fn finish(&mut self, database: &mut Database) -> Result<()> {
        let pass = &mut self.pass;
        let Some(started_at) = pass.started_at.take() else {
            return Ok(());
        };
        pass.next_url = None;
        if pass.has_changes || pass.watermark.is_none() {
            let until = match self.as_of {
                Some(as_of) if as_of < started_at.as_str() => as_of,
                _ => started_at.as_str(),
            };
            pass.watermark = Some(with_overlap(until));
        }
        pass.has_changes = false;
        let transaction = database.write()?;
        github_passes::put(&transaction, pass)?;
        Ok(transaction.commit()?)
    }

    /// One page: first its bytes, then its rows with the place to go on.
    pub fn store(
        &mut self,
        database: &mut Database,
        url: &str,
        page: Page,
        summary: &mut Summary,
    ) -> Result<()> {
        let raw = self.context.project.raw();
        raw_pages::store(&raw, &self.pass.repository, &page.bytes).kind(Kind::Environment)?;
        let transaction = database.write()?;
        if self.pass.started_at.is_none() {
            let now = self.context.timestamp();
            self.pass.started_at = Some(page.date.unwrap_or(now));
            self.pass.etag = page.etag;
            self.pass.etag_url = Some(url.to_owned());
        }
        if self.pass.repository_id.is_none() {
            self.pass.repository_id = page.repository_id;
        }
        let mut broken = |idx: usize, message: String| {
            let place = idx + 1;
            summary.broken.push(format!("{url} row {place}: {message}"));
        };
        let mut rows = Vec::new();
        let mut name: Option<String> = None;
        for (idx, value) in page.rows.iter().enumerate() {
            let mut row = match issue_form::rows(value, Some(self.pass.name())) {
                Ok(mut rows) if rows.len() == 1 => rows.remove(0),
                Ok(_) => {
                    broken(idx, "is no issue".to_owned());
                    continue;
                }
                Err(message) => {
                    broken(idx, message);
                    continue;
                }
            };
            let of_row = &row.key_mut().repository;
            match &name {
                Some(name) if name != of_row => {
                    broken(
                        idx,
                        format!("belongs to {of_row}, the rows before to {name}"),
                    );
                    continue;
                }
                Some(_) => {}
                None => name = Some(of_row.clone()),
            }
            rows.push(row);
        }
        if let Some(name) = name {
            self.take_name(&transaction, name)?;
        }
        for mut row in rows {
            if self.pass.list == List::Issues {
                self.met.insert(row.key_mut().number);
            }
            if is_later(&row, self.as_of) {
                summary.n_later += 1;
                continue;
            }
            if intake::store(&transaction, &row, summary)? {
                self.pass.has_changes = true;
                self.n_brought += 1;
            }
        }
        self.pass.next_url = page.next;
        github_passes::put(&transaction, &self.pass)?;
        transaction.commit()?;
        summary.n_pages += 1;
        self.context.progress.advance(page.rows.len() as u64);
        Ok(())
    }

    /// The name that the rows have. What is stored under another one of this repository is given it.
    fn take_name(&mut self, transaction: &rusqlite::Transaction<'_>, name: String) -> Result<()> {
        let mut others = github_passes::absorb(transaction, &self.pass)?;
        others.push(self.pass.name().to_owned());
        for old in others.iter().filter(|old| **old != name) {
            issues::rename(transaction, old, &name)?;
            self.context
                .progress
                .note(&format!("{old} is called {name} now"));
        }
        self.pass.full_name = Some(name);
        Ok(())
    }

    /// Issues that are stored and were not met by a walk over all there is.
    pub fn missing(&self, database: &Database) -> Result<Vec<IssueKey>> {
        let numbers = issues::numbers(database, self.pass.name())?;
        Ok(numbers
            .into_iter()
            .filter(|number| !self.met.contains(number))
            .map(|number| IssueKey {
                repository: self.pass.name().to_owned(),
                number,
            })
            .collect())
    }
}

fn is_later(row: &Row, as_of: Option<&str>) -> bool {
    let created_at = match row {
        Row::Issue(issue) => &issue.created_at,
        Row::Comment(comment) => &comment.created_at,
        Row::PullRequest(_) | Row::Gone { .. } => &None,
    };
    matches!((created_at, as_of), (Some(created_at), Some(as_of)) if created_at.as_str() > as_of)
}

fn with_overlap(time: &str) -> String {
    match DateTime::parse_from_rfc3339(time) {
        Ok(time) => (time.to_utc() - OVERLAP).to_rfc3339_opts(SecondsFormat::Secs, true),
        Err(_) => time.to_owned(),
    }
}
