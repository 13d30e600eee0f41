//! `pipeline filter`.

use super::{ExitCode, Output, output, review};
use crate::domain::decision::{Subject, SubjectKind, Verb};
use crate::domain::visible::{shortened, visible_line};
use crate::stages::filter::{self, Config, Dropped, Listing, Summary};
use crate::stages::{Context, Failure, Result};

/// Drop clusters that overlap or cannot become a case
///
/// Nothing is lost: what was dropped stays stored with its rule and the facts, `--list` shows it, `--restore` takes it
/// back, and the material of a cluster that overlaps another is shown with that one. The rules are a closed list: the
/// topics of pipeline/topics.toml that pipeline/filter.toml names, no-clause, covered, overlap.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Filter although nothing changed since the last run
    #[arg(long)]
    again: bool,
    /// List what was dropped and why, without filtering again
    #[arg(long, conflicts_with_all = ["again", "restore"])]
    list: bool,
    /// Keep a cluster that was dropped wrongly, and filter again; `pipeline review undo drop:CLUSTER` takes that back
    #[arg(long, value_name = "CLUSTER", requires = "why")]
    restore: Option<String>,
    /// The reason of a restoration
    #[arg(long, value_name = "TEXT", requires = "restore")]
    why: Option<String>,
    /// Who restores; git's user.name unless said
    #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
    by: Option<String>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        again: args.again,
        ..Config::read(&context.project)?
    };
    if args.list {
        output.result(&filter::list(context, &config)?, listed)?;
        return Ok(ExitCode::Done);
    }
    if let Some(cluster) = &args.restore {
        let listing = filter::list(context, &config)?;
        let is_dropped = |dropped: &Dropped| dropped.outcome.cluster == *cluster;
        if !listing.dropped.iter().any(is_dropped) {
            return Err(
                Failure::user(format!("{cluster:?} is no cluster that was dropped"))
                    .hint("pipeline filter --list"),
            );
        }
        let subject = Subject {
            kind: SubjectKind::Drop,
            id: cluster.clone(),
        };
        review::decide(context, subject, Verb::Reject, args.by, args.why)?;
    }
    output.result(&filter::run(context, &config)?, words)?;
    Ok(ExitCode::Done)
}

fn words(summary: &Summary) -> String {
    let mut text = format!(
        "{} of {} clusters kept for approval{}\n",
        summary.n_kept,
        summary.n_clusters,
        if summary.unchanged {
            "; nothing changed"
        } else {
            ""
        }
    );
    for (rule, n) in &summary.dropped {
        text += &format!("{n:>6} dropped: {rule}\n");
    }
    if !summary.dropped.is_empty() {
        text += "\nwhy, and how to restore one: pipeline filter --list";
    }
    text
}

fn listed(listing: &Listing) -> String {
    let mut text = format!(
        "{} of {} clusters dropped, {} restored\n",
        listing.dropped.len(),
        listing.n_clusters,
        listing.restored.len()
    );
    for (heading, list) in [
        ("dropped", &listing.dropped),
        ("restored", &listing.restored),
    ] {
        if list.is_empty() {
            continue;
        }
        let rows = list.iter().map(|one| {
            let outcome = &one.outcome;
            vec![
                outcome.cluster.clone(),
                one.n_issues.to_string(),
                outcome.rule.map_or("-".to_owned(), |rule| rule.to_string()),
                outcome.counterpart.clone().unwrap_or("-".to_owned()),
                shortened(&visible_line(&outcome.reason), 110).into_owned(),
            ]
        });
        let header = [heading, "issues", "rule", "against", "reason"];
        text += &format!("\n{}\n", output::table(&header, rows));
    }
    if !listing.rules.is_empty() {
        text += "\n";
    }
    for (rule, about) in &listing.rules {
        text += &format!("{rule:<13}  {about}\n");
    }
    if let Some(first) = listing.dropped.first() {
        text += &format!(
            "\nmaterial: pipeline review show drop:{0}\nrestore:  pipeline filter --restore {0} --why TEXT\n",
            first.outcome.cluster
        );
    }
    if let Some(first) = listing.restored.first() {
        text += &format!(
            "undo:     pipeline review undo drop:{}\n",
            first.outcome.cluster
        );
    }
    text
}
