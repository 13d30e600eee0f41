//! `pipeline collect`.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{ExitCode, Output, output};
use crate::domain::secret::Secret;
use crate::stages::collect::{self, Config, Settings, Source, Summary};
use crate::stages::{Context, Failure, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read issues from files or folders of files instead of GitHub
    ///
    /// JSON lines or arrays of REST objects, what `gh issue list --json` prints, event files of GH Archive, or what
    /// --export wrote; `.gz` is unpacked.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    from: Vec<PathBuf>,
    /// Collect these repositories instead of those in pipeline/collect.toml
    ///
    /// With --from: the repository of rows that do not name theirs.
    #[arg(long, value_name = "OWNER/NAME", num_args = 1..)]
    repository: Vec<String>,
    /// Ask this server instead of GitHub
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://api.github.com",
        conflicts_with = "from"
    )]
    api_url: String,
    /// Leave out what was created later than this; RFC 3339, such as 2026-11-30T00:00:00Z
    ///
    /// Makes a collection repeatable. Texts are those of today: GitHub does not give older ones.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "from")]
    as_of: Option<DateTime<Utc>>,
    /// Collect the comments too, by one list for each repository
    #[arg(long, conflicts_with = "from")]
    comments: bool,
    /// Walk all there is again, and ask what became of each issue that is not listed any more
    ///
    /// Issues that were deleted or moved to another repository are taken out; an increment cannot see them.
    #[arg(long, conflicts_with = "from")]
    reconcile: bool,
    /// Write all that was collected to this file, and collect nothing
    ///
    /// JSON lines, packed when the name ends in .gz; --from reads them again.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["from", "repository", "as_of", "comments", "reconcile"]
    )]
    export: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    if let Some(path) = &args.export {
        let exported = Exported {
            file: path.clone(),
            n_rows: collect::export(context, path)?,
        };
        output.result(&exported, |exported| {
            format!("{} rows in {}", exported.n_rows, exported.file.display())
        })?;
        return Ok(ExitCode::Done);
    }
    for name in &args.repository {
        if name.split('/').filter(|part| !part.is_empty()).count() != 2
            || name.matches('/').count() != 1
        {
            return Err(Failure::user(format!(
                "{name:?} is no repository: write owner/name"
            )));
        }
    }
    let from_files = !args.from.is_empty();
    let source = if from_files {
        files(args, context)?
    } else {
        github(args, context)?
    };
    let summary = collect::run(context, Config { source })?;
    output.result(&summary, words)?;
    Ok(match (summary.broken.is_empty(), from_files) {
        (true, _) => ExitCode::Done,
        // Files are written by people; what GitHub sends is not.
        (false, true) => ExitCode::Settings,
        (false, false) => ExitCode::Invalid,
    })
}

fn time(text: &str) -> std::result::Result<DateTime<Utc>, String> {
    text.parse()
        .map_err(|_| "write a time such as 2026-11-30T00:00:00Z".to_owned())
}

#[derive(Serialize)]
struct Exported {
    file: PathBuf,
    n_rows: u64,
}

fn files(args: Args, context: &Context) -> Result<Source> {
    if args.repository.len() > 1 {
        return Err(Failure::user(
            "with --from, rows without a repository can belong to one --repository only",
        ));
    }
    Ok(Source::Files {
        paths: args.from,
        repository: args.repository.into_iter().next(),
        names: Settings::read(&context.project)?.names(),
    })
}

fn github(args: Args, context: &Context) -> Result<Source> {
    let settings = Settings::read(&context.project)?;
    let repositories = if args.repository.is_empty() {
        settings
            .repository
            .into_iter()
            .map(|repository| repository.name)
            .collect()
    } else {
        args.repository
    };
    Ok(Source::GitHub {
        repositories,
        token: token()?,
        api: args.api_url,
        as_of: args.as_of.or(settings.as_of),
        comments: args.comments,
        reconcile: args.reconcile,
        patience: settings.patience,
    })
}

/// The token is read from the environment only: arguments and files are seen by others.
fn token() -> Result<Option<Secret>> {
    let found = ["GITHUB_TOKEN", "GH_TOKEN"].into_iter().find_map(|name| {
        Some((
            name,
            std::env::var(name).ok().filter(|text| !text.is_empty())?,
        ))
    });
    let Some((name, text)) = found else {
        return Ok(None);
    };
    match Secret::new(&text) {
        Some(token) => Ok(Some(token)),
        None => Err(Failure::environment(format!(
            "{name} holds signs that no token has"
        ))),
    }
}

fn words(summary: &Summary) -> String {
    let mut text = format!(
        "{} new issues, {} changed, {} as before; {} pull requests left out\n",
        summary.n_new, summary.n_changed, summary.n_same, summary.n_pull_requests
    );
    if summary.n_older > 0 {
        text += &format!(
            "{} rows are older than what is stored, left\n",
            summary.n_older
        );
    }
    let others = [
        (
            summary.n_later,
            "are later than the date that was asked for, left out",
        ),
        (
            summary.n_buried,
            "are of issues known to be deleted or moved, left out",
        ),
        (summary.n_new_comments, "are new or changed comments"),
    ];
    for (n, what) in others.iter().filter(|(n, _)| *n > 0) {
        text += &format!("{n} rows {what}\n");
    }
    if summary.n_gone > 0 {
        text += &format!(
            "{} issues were deleted or moved, taken out\n",
            summary.n_gone
        );
    }
    if summary.n_repeated > 0 {
        text += &format!("{} rows repeat an issue read before\n", summary.n_repeated);
    }
    if !summary.broken.is_empty() {
        text += &format!("{} rows cannot be read:\n", summary.broken.len());
        for line in summary.broken.iter().take(SHOWN) {
            text += &format!("  {line}\n");
        }
        if summary.broken.len() > SHOWN {
            text += &format!(
                "  and {} more (--json lists all)\n",
                summary.broken.len() - SHOWN
            );
        }
    }
    text += "\n";
    text += &output::table(
        &["repository", "issues", "pull requests"],
        summary.repositories.iter().map(|(name, count)| {
            vec![
                name.clone(),
                count.n_issues.to_string(),
                count.n_pull_requests.to_string(),
            ]
        }),
    );
    text
}

/// Broken rows that are listed for people.
const SHOWN: usize = 20;
