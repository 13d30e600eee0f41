//! Collecting from GitHub: the lists are walked side by side, as many requests at a time as the settings allow, and one
//! place stores what they find.

use futures_util::future::join_all;
use tokio::sync::mpsc;

use super::asking::{Asking, Patience};
use super::keep::Keeper;
use super::walk::{Found, Walk};
use super::{Summary, intake};
use crate::adapters::github::{GitHub, GitHubError, Standing};
use crate::domain::issue::IssueKey;
use crate::domain::secret::Secret;
use crate::methods::issue_form::{self, Row};
use crate::stages::interrupt::told_to_stop;
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::database::Database;
use crate::storage::github_passes::{self, List, Pass};
use crate::storage::raw_pages;

pub(super) struct Request<'a> {
    pub repositories: &'a [String],
    pub api: &'a str,
    pub token: Option<&'a Secret>,
    pub patience: &'a Patience,
    /// RFC 3339 in UTC; what was created later is left out.
    pub as_of: Option<&'a str>,
    /// Comments too.
    pub comments: bool,
    /// Walk all there is, and ask for each stored issue that is not there any more.
    pub reconcile: bool,
}

pub(super) fn collect(
    context: &Context,
    database: &mut Database,
    request: &Request<'_>,
    summary: &mut Summary,
) -> Result<()> {
    // A worker of its own receives answers while this thread stores.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let github = GitHub::new(request.api, request.token).map_err(failure)?;
        tokio::select! {
            // First, so that it listens before anything is asked.
            biased;
            stop = told_to_stop() => {
                stop?;
                Err(Failure::new(Kind::Interrupted, "interrupted")
                    .hint("what came in is kept; go on with: pipeline collect"))
            }
            done = walk_all(context, database, request, &github, summary) => done,
        }
    })
}

async fn walk_all(
    context: &Context,
    database: &mut Database,
    request: &Request<'_>,
    github: &GitHub,
    summary: &mut Summary,
) -> Result<()> {
    let asking = Asking::new(github, request.patience, &*context.progress);
    let mut keepers = Vec::new();
    for repository in request.repositories {
        for list in [List::Issues, List::Comments] {
            if list == List::Comments && !request.comments {
                continue;
            }
            let mut pass = github_passes::get(database, repository, list)?;
            if pass.next_url.is_some() {
                context
                    .progress
                    .note(&format!("{repository}: goes on where it stopped"));
            }
            if request.reconcile && list == List::Issues {
                pass = all_of(pass);
            }
            let as_of = request.as_of.filter(|_| !request.reconcile);
            keepers.push(Keeper::new(context, pass, as_of));
        }
    }
    context.progress.begin("collect", None);
    let walks: Vec<Walk<'_>> = keepers
        .iter()
        .map(|keeper| Walk {
            asking: &asking,
            pass: keeper.pass.clone(),
            as_of: keeper.as_of,
        })
        .collect();
    // One page waits while another is stored: memory does not grow with the length of a list.
    let (sender, mut found) = mpsc::channel(1);
    let walking = async move {
        let sender = &sender;
        join_all(walks.into_iter().enumerate().map(|(idx, walk)| {
            walk.run(async move |found| {
                let sent = sender.send((idx, found)).await;
                sent.map_err(|_| mpsc::error::SendError(()))
            })
        }))
        .await;
    };
    let storing = async {
        let mut first_fault = None;
        while let Some((idx, found)) = found.recv().await {
            if let Some(fault) = take(database, &mut keepers[idx], found, summary)? {
                first_fault.get_or_insert(fault);
            }
        }
        Ok::<_, Failure>(first_fault)
    };
    let ((), fault) = tokio::join!(walking, storing);
    context.progress.end(&format!(
        "{} new issues, {} changed, {} pages",
        summary.n_new, summary.n_changed, summary.n_pages
    ));
    if let Some(fault) = fault? {
        return Err(fault);
    }
    if request.reconcile {
        for keeper in keepers
            .iter()
            .filter(|keeper| keeper.pass.list == List::Issues)
        {
            look_for_missing(context, database, &asking, keeper, summary).await?;
        }
    }
    Ok(())
}

/// The pass over a whole list, whatever was collected before.
fn all_of(pass: Pass) -> Pass {
    Pass {
        full_name: pass.full_name,
        repository_id: pass.repository_id,
        ..Pass::fresh(&pass.repository, pass.list)
    }
}

/// Stores one find; gives the fault that ended a walk. The other walks go on.
fn take(
    database: &mut Database,
    keeper: &mut Keeper<'_>,
    found: Found,
    summary: &mut Summary,
) -> Result<Option<Failure>> {
    match found {
        Found::Page { url, page } => keeper.store(database, &url, page, summary)?,
        Found::Anew { why } => {
            let progress = &keeper.context.progress;
            progress.note(&format!("{why}; the list is begun anew"));
            keeper.begin();
        }
        Found::End => {
            keeper.finish(database)?;
            if keeper.n_brought > 0 {
                keeper.context.progress.note(&format!(
                    "{}: {} new or changed {}",
                    keeper.pass.name(),
                    keeper.n_brought,
                    keeper.pass.list.name()
                ));
            }
        }
        Found::Circle { url } => {
            keeper.forget(database)?;
            let message = format!("GitHub's list goes round in circles at {url}");
            let hint = "pipeline collect (begins the list anew)";
            return Ok(Some(Failure::environment(message).hint(hint)));
        }
        Found::Fault(error) => return Ok(Some(failure(error))),
    }
    Ok(None)
}

/// Asks for each issue that the list does not have any more. What became of it is kept beside the pages, so that the
/// database built from them knows it too.
async fn look_for_missing(
    context: &Context,
    database: &mut Database,
    asking: &Asking<'_>,
    keeper: &Keeper<'_>,
    summary: &mut Summary,
) -> Result<()> {
    let missing = keeper.missing(database)?;
    if missing.is_empty() {
        return Ok(());
    }
    context
        .progress
        .begin("look for missing issues", Some(missing.len() as u64));
    for key in missing {
        let row = standing(asking, &key).await?;
        if let Some(row) = row {
            let bytes = issue_form::export(&row).to_string();
            let raw = context.project.raw();
            raw_pages::store(&raw, &keeper.pass.repository, bytes.as_bytes())
                .kind(Kind::Environment)?;
            let transaction = database.write()?;
            intake::store(&transaction, &row, summary)?;
            transaction.commit()?;
        }
        context.progress.advance(1);
    }
    context
        .progress
        .end(&format!("{} are deleted or moved", summary.n_gone));
    Ok(())
}

async fn standing(asking: &Asking<'_>, key: &IssueKey) -> Result<Option<Row>> {
    let github = asking.github;
    let found = asking
        .ask(&github.issue(key), async |url| {
            github.standing(url, key).await
        })
        .await
        .map_err(failure)?;
    let gone = |moved_to| {
        let key = key.clone();
        Some(Row::Gone { key, moved_to })
    };
    Ok(match found {
        Some(Standing::Gone) => gone(None),
        Some(Standing::Transferred(to)) => gone(Some(to)),
        Some(Standing::There) | None => None,
    })
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
