//! Collecting from GitHub: page by page, each page and the address of the next in one transaction. A killed run goes on
//! at that address; a finished one asks later only for what was updated since it began.
//!
//! The list is walked in the order of creation also for increments. An update adds a row to such a list and takes none
//! away, so that no row can slip past; one that lands on an earlier page was updated after the pass began, and the next
//! increment has it.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta};
use serde::Deserialize;

use super::Summary;
use crate::adapters::github::{Answer, GitHub, GitHubError, Page, Token};
use crate::methods::issue_form::{self, Row};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::database::Database;
use crate::storage::github_passes::{self, Pass};
use crate::storage::{issues, raw_pages};

/// How patient the collection is; `pipeline/collect.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// Further tries after a failure that may pass.
    pub max_retries: u32,
    /// Wait before the first of them; each further wait is twice as long.
    pub retry_base_s: f64,
    /// Wait when GitHub limits the rate and does not say for how long.
    pub rate_limit_s: u64,
    /// A longer wait is not sat out: the run ends, and a later one goes on.
    pub max_wait_s: u64,
}

pub(super) struct Request<'a> {
    pub repositories: &'a [String],
    pub api: &'a str,
    pub token: Option<&'a Token>,
    pub patience: &'a Patience,
}

pub(super) fn collect(
    context: &Context,
    database: &mut Database,
    request: &Request<'_>,
    summary: &mut Summary,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let github = GitHub::new(request.api, request.token).map_err(failure)?;
        for repository in request.repositories {
            let mut walk = Walk {
                context,
                github: &github,
                patience: request.patience,
                pass: github_passes::get(database, repository)?,
                seen: BTreeSet::new(),
                restarted: false,
            };
            context
                .progress
                .begin(&format!("collect {repository}"), None);
            let before = (summary.n_new, summary.n_changed);
            walk.run(database, summary).await?;
            context.progress.end(&format!(
                "{} new issues, {} changed",
                summary.n_new - before.0,
                summary.n_changed - before.1
            ));
        }
        Ok(())
    })
}

/// One walk over the list of one repository.
struct Walk<'a> {
    context: &'a Context,
    github: &'a GitHub,
    patience: &'a Patience,
    pass: Pass,
    /// Addresses that this walk has asked for: one that comes again would go round in circles.
    seen: BTreeSet<String>,
    restarted: bool,
}

/// Clocks and updates that are under way when a pass begins.
const OVERLAP: TimeDelta = TimeDelta::minutes(10);
/// Redirects in a row.
const MAX_MOVES: usize = 5;

impl Walk<'_> {
    async fn run(&mut self, database: &mut Database, summary: &mut Summary) -> Result<()> {
        let mut url = match self.pass.next_url.clone() {
            Some(next) => {
                self.context.progress.note(&format!(
                    "{}: goes on where it stopped",
                    self.pass.repository
                ));
                next
            }
            None => self.begin(),
        };
        loop {
            let at_start = self.pass.started_at.is_none();
            let known = at_start && self.pass.etag_url.as_ref() == Some(&url);
            let etag = self.pass.etag.clone().filter(|_| known);
            if !self.seen.insert(url.clone()) {
                self.forget(database)?;
                return Err(Failure::environment(format!(
                    "GitHub's list goes round in circles at {url}"
                ))
                .hint("pipeline collect (begins the list anew)"));
            }
            let page = match self.answer(&url, etag.as_deref()).await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                // A stored address can go stale, and numbered pages have an end: once, the list is begun anew, and its
                // links lead on by cursor. What is stored already comes as known.
                Err(
                    error @ (GitHubError::NeedsCursor { .. }
                    | GitHubError::NotFound { .. }
                    | GitHubError::Refused { .. }),
                ) if !self.restarted && (!at_start || self.seen.len() > 1) => {
                    self.context
                        .progress
                        .note(&format!("{error}; the list is begun anew"));
                    self.restarted = true;
                    self.seen.clear();
                    url = self.begin();
                    continue;
                }
                Err(error) => return Err(failure(error)),
            };
            let next = page.next.clone();
            self.store(database, &url, page, summary)?;
            match next {
                Some(next) => url = next,
                None => return Ok(()),
            }
        }
    }

    /// The first page of a pass.
    fn begin(&mut self) -> String {
        self.pass.started_at = None;
        self.pass.has_changes = false;
        let name = self
            .pass
            .full_name
            .as_ref()
            .unwrap_or(&self.pass.repository);
        self.github.first_page(name, self.pass.watermark.as_deref())
    }

    /// The unfinished pass is given up; the next run begins the list anew.
    fn forget(&mut self, database: &mut Database) -> Result<()> {
        self.pass.next_url = None;
        let transaction = database.write()?;
        github_passes::put(&transaction, &self.pass)?;
        Ok(transaction.commit()?)
    }

    /// The page at an address, after redirects, waits and further tries; none when nothing was modified.
    async fn answer(
        &self,
        url: &str,
        etag: Option<&str>,
    ) -> std::result::Result<Option<Page>, GitHubError> {
        let mut url = url.to_owned();
        let mut n_moves = 0;
        let mut n_failed = 0;
        loop {
            let error = match self.github.get(&url, etag).await {
                Ok(Answer::Page(page)) => return Ok(Some(page)),
                Ok(Answer::NotModified) => return Ok(None),
                Ok(Answer::Moved(to)) if n_moves < MAX_MOVES => {
                    n_moves += 1;
                    url = to;
                    continue;
                }
                Ok(Answer::Moved(_)) => {
                    return Err(GitHubError::Passing {
                        url,
                        reason: "it is moved again and again".to_owned(),
                    });
                }
                Err(error) => error,
            };
            let doubled = 2u64.saturating_pow(n_failed);
            let wait = match &error {
                GitHubError::RateLimited { wait_s, .. } => {
                    Duration::from_secs(wait_s.unwrap_or(self.patience.rate_limit_s * doubled))
                }
                GitHubError::Passing { .. } => {
                    Duration::from_secs_f64(self.patience.retry_base_s * doubled as f64)
                }
                _ => return Err(error),
            };
            n_failed += 1;
            if n_failed > self.patience.max_retries || wait.as_secs() > self.patience.max_wait_s {
                return Err(error);
            }
            if wait.as_secs() > 0 {
                self.context
                    .progress
                    .note(&format!("{error}; waits {} s", wait.as_secs()));
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// One page: first its bytes, then its rows with the place to go on.
    fn store(
        &mut self,
        database: &mut Database,
        url: &str,
        page: Page,
        summary: &mut Summary,
    ) -> Result<()> {
        let raw = self.context.project.raw();
        raw_pages::store(&raw, &self.pass.repository, &page.bytes).kind(Kind::Environment)?;
        let pass = &mut self.pass;
        let is_first = pass.started_at.is_none();
        if is_first {
            let now = self.context.timestamp();
            pass.started_at = Some(page.date.clone().unwrap_or(now));
        }
        let known_as = pass.full_name.clone().unwrap_or(pass.repository.clone());
        let transaction = database.write()?;
        let mut name: Option<String> = None;
        for (idx, value) in page.rows.iter().enumerate() {
            let mut broken = |message: String| {
                summary
                    .broken
                    .push(format!("{url} row {}: {message}", idx + 1));
            };
            let row = match issue_form::row(value, Some(&known_as)) {
                Ok(row) => row,
                Err(message) => {
                    broken(message);
                    continue;
                }
            };
            let of_row = match &row {
                Row::Issue(issue) => &issue.key.repository,
                Row::PullRequest(key) => &key.repository,
            };
            match &name {
                Some(name) if name != of_row => {
                    broken(format!("belongs to {of_row}, the rows before to {name}"));
                    continue;
                }
                Some(_) => {}
                None => {
                    if *of_row != known_as {
                        issues::rename(&transaction, &known_as, of_row)?;
                        self.context
                            .progress
                            .note(&format!("{known_as} is called {of_row} now"));
                    }
                    pass.full_name = Some(of_row.clone());
                    name = Some(of_row.clone());
                }
            }
            match row {
                Row::PullRequest(key) => {
                    issues::store_pull_request(&transaction, &key)?;
                    summary.n_pull_requests += 1;
                }
                Row::Issue(issue) => {
                    let stored = issues::store(&transaction, &issue)?;
                    pass.has_changes |=
                        matches!(stored, issues::Stored::New | issues::Stored::Changed);
                    summary.count(stored);
                }
            }
        }
        if is_first {
            pass.etag = page.etag;
            pass.etag_url = Some(url.to_owned());
        }
        pass.next_url = page.next;
        if pass.next_url.is_none() {
            // Without a change the watermark stays, so that the same question can be answered by "not modified".
            if pass.has_changes || pass.watermark.is_none() {
                pass.watermark = pass.started_at.as_deref().map(with_overlap);
            }
            pass.started_at = None;
        }
        github_passes::put(&transaction, pass)?;
        transaction.commit()?;
        summary.n_pages += 1;
        self.context.progress.advance(page.rows.len() as u64);
        Ok(())
    }
}

fn with_overlap(time: &str) -> String {
    match DateTime::parse_from_rfc3339(time) {
        Ok(time) => (time.to_utc() - OVERLAP).to_rfc3339_opts(SecondsFormat::Secs, true),
        Err(_) => time.to_owned(),
    }
}

fn failure(error: GitHubError) -> Failure {
    let (kind, hint) = match &error {
        GitHubError::NotFound { .. } => (
            Kind::User,
            Some("check owner/name; a private repository needs GITHUB_TOKEN"),
        ),
        GitHubError::Address(_) => (Kind::User, Some("pipeline collect --api-url https://HOST")),
        GitHubError::RateLimited { .. } => (
            Kind::Environment,
            Some(
                "run it again later: it goes on where it stopped; a GITHUB_TOKEN raises the limit",
            ),
        ),
        GitHubError::InClear { .. } => (Kind::User, Some("use https, or unset GITHUB_TOKEN")),
        GitHubError::Unauthorized => (
            Kind::Environment,
            Some("set GITHUB_TOKEN to a valid token, or unset it"),
        ),
        GitHubError::Passing { .. } => (
            Kind::Environment,
            Some("run it again: it goes on where it stopped"),
        ),
        _ => (Kind::Environment, None),
    };
    let failure = Err::<(), _>(error).kind(kind).expect_err("it is an error");
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
