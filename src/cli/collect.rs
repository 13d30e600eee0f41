//! `pipeline collect`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::stages::collect::{self, Config, Source, Summary};
use crate::stages::{Context, Failure, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read issues from files or folders of files instead of GitHub
    ///
    /// JSON lines or arrays of REST objects, or what `gh issue list --json` prints; `.gz` is unpacked.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    from: Vec<PathBuf>,
    /// With --from: the repository of rows that do not name theirs
    #[arg(long, value_name = "OWNER/NAME")]
    repository: Vec<String>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    if args.from.is_empty() {
        return Err(Failure::user("nothing to collect from").hint("pipeline collect --from PATH"));
    }
    if args.repository.len() > 1 {
        return Err(Failure::user(
            "with --from, rows without a repository can belong to one --repository only",
        ));
    }
    let summary = collect::run(
        context,
        Config {
            source: Source::Files {
                paths: args.from,
                repository: args.repository.into_iter().next(),
            },
        },
    )?;
    output.result(&summary, words)?;
    Ok(if summary.broken.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::Settings
    })
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
