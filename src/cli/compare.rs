//! `pipeline compare`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::domain::difference::{Difference, Side, Sight};
use crate::domain::visible::shortened;
use crate::methods::comparison::judged::{Figures, Met, NEAR, Sampled};
use crate::stages::compare::{self, Config, Placed, ReadingShown, Summary};
use crate::stages::{Classify, Context, Kind, Result};
use crate::storage::settings;

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Both trees are partitioned by the features of the document. --partition shows how; pipeline/partition.toml corrects it \
for either side, and the next comparison reads it again.

A difference is either \"missing\" (the target handles it, the candidate does not) or \"differs\" (both do, with other \
limits, defaults, conditions or endings). It is traced to the clause whose words, names and numbers it shares most; the \
score is 0 to 1. The trace is a proposal: traced differences wait in `pipeline review list --kind difference`, with \
the places on both sides. What only the candidate has is listed with --all and never queued.

Much of what differs has no condition, message or number of its own. --functions lists the functions of the target \
that serve a clause, each with the one of the candidate to read beside it.

--judge is a measure: do the cases that came from comparing these two sources find their clause again, at the places \
that they cite? And of the differences that readers judged in data/comparison-judged.jsonl, how many are right?")]
pub struct Args {
    /// The candidate: a name below candidates/ or a folder
    #[arg(long, value_name = "NAME")]
    candidate: String,
    /// The folder with the source of the mature harness
    #[arg(long, value_name = "DIR")]
    target: PathBuf,
    /// What to call the target; from its package or its folder when left out
    #[arg(long, value_name = "NAME")]
    target_name: Option<String>,
    /// Show one group of the partition only, such as tools.read
    #[arg(long, value_name = "GROUP")]
    module: Option<String>,
    /// Show the partition instead: each function with its groups and the tokens that decided
    #[arg(long)]
    partition: bool,
    /// Show instead which functions to read beside each other, with the clauses that they serve
    #[arg(long, conflicts_with = "partition")]
    functions: bool,
    /// Show instead how well the differences meet what people found by reading
    #[arg(long, conflicts_with_all = ["partition", "functions"])]
    judge: bool,
    /// List what follows from no clause and what only the candidate has, too
    #[arg(long)]
    all: bool,
    /// The most differences to list; all of them are in --json
    #[arg(long, value_name = "N", default_value_t = 40)]
    top: usize,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let corrections = context.project.settings("partition");
    let config = Config {
        settings: settings::read(&context.project.settings("compare")).kind(Kind::Settings)?,
        candidate: args.candidate.clone(),
        target: args.target.clone(),
        target_name: args.target_name.clone(),
        judge: args.judge,
        corrections: if corrections.exists() {
            settings::read(&corrections).kind(Kind::Settings)?
        } else {
            Default::default()
        },
    };
    let summary = compare::run(context, &config)?;
    output.result(&summary, |summary| {
        if args.partition {
            return partition(summary, &args);
        }
        if args.functions {
            return functions(summary, &args);
        }
        match &summary.judged {
            Some(figures) => judged(summary, figures),
            None => words(summary, &args),
        }
    })?;
    Ok(ExitCode::Done)
}

fn words(summary: &Summary, args: &Args) -> String {
    let size = |n: usize| {
        if n == 0 {
            "-".to_owned()
        } else {
            n.to_string()
        }
    };
    let modules = output::table(
        &[
            "module",
            "lines",
            "target lines",
            "missing",
            "differs",
            "traced",
            "extra",
        ],
        summary
            .modules
            .iter()
            .filter(|module| module.candidate.n_units + module.target.n_units > 0)
            .filter(|module| {
                args.module
                    .as_ref()
                    .is_none_or(|name| *name == module.module)
            })
            .map(|module| {
                vec![
                    module.module.clone(),
                    size(module.candidate.n_lines),
                    size(module.target.n_lines),
                    size(module.n_missing),
                    size(module.n_differs),
                    size(module.n_traced),
                    size(module.n_extra),
                ]
            }),
    );
    let listed: Vec<&Difference> = summary
        .differences
        .iter()
        .filter(|difference| {
            args.module
                .as_ref()
                .is_none_or(|name| *name == difference.module)
        })
        .filter(|difference| {
            args.all || (difference.side != Side::Extra && difference.trace.is_some())
        })
        .collect();
    let n_hidden = listed.len().saturating_sub(args.top);
    let rows = output::table(
        &["clause", "score", "difference", "target", "candidate"],
        listed.iter().take(args.top).map(|difference| {
            let (clause, score) = match &difference.trace {
                Some(trace) => (trace.clause.to_string(), format!("{:.2}", trace.score)),
                None => ("not derivable".to_owned(), "-".to_owned()),
            };
            let place = |sight: &Option<Sight>| {
                sight
                    .as_ref()
                    .map_or("-".to_owned(), |sight| sight.place.clone())
            };
            vec![
                clause,
                score,
                shortened(&difference.title, 90).into_owned(),
                place(&difference.target),
                place(&difference.candidate),
            ]
        }),
    );
    let more = hidden(n_hidden);
    format!(
        "{} against {}: {} differences follow from a clause ({} new), {} are further ones of the same clauses, {} follow \
         from none; {} are only in the candidate\n\n{modules}\n\n{rows}{more}",
        summary.candidate,
        summary.target,
        summary.n_traced,
        summary.n_new,
        summary.n_further,
        summary.n_not_derivable,
        summary.n_extra,
    )
}

/// Every unit with its groups.
fn partition(summary: &Summary, args: &Args) -> String {
    let is_wanted = |placed: &&Placed| match &args.module {
        Some(name) => placed.groups.iter().any(|group| group.name == *name),
        None => true,
    };
    output::table(
        &["side", "groups", "because", "lines", "unit"],
        summary.partition.iter().filter(is_wanted).map(|placed| {
            let groups: Vec<String> = placed
                .groups
                .iter()
                .map(|group| format!("{} {:.2}", group.name, group.score))
                .collect();
            let because = match placed.groups.first() {
                _ if placed.is_corrected => "corrected".to_owned(),
                Some(group) => group.because.join(" "),
                None => String::new(),
            };
            vec![
                placed.side.to_owned(),
                if groups.is_empty() {
                    "outside".to_owned()
                } else {
                    groups.join(", ")
                },
                because,
                placed.n_lines.to_string(),
                format!("{} {}", placed.place, placed.name),
            ]
        }),
    )
}

/// Functions of the target with those of the candidate, the surest first.
fn functions(summary: &Summary, args: &Args) -> String {
    let is_wanted = |reading: &&ReadingShown| match &args.module {
        Some(name) => reading.clauses[0].as_str().starts_with(&format!("{name}.")),
        None => true,
    };
    let wanted: Vec<&ReadingShown> = summary.readings.iter().filter(is_wanted).collect();
    let n_hidden = wanted.len().saturating_sub(args.top);
    let table = output::table(
        &[
            "score",
            "clauses",
            "differences",
            "target",
            "lines",
            "candidate",
        ],
        wanted.iter().take(args.top).map(|reading| {
            let clauses: Vec<&str> = reading.clauses.iter().map(|it| it.as_str()).collect();
            vec![
                format!("{:.2}", reading.score),
                clauses.join(" "),
                reading.differences.len().to_string(),
                reading.target.clone(),
                reading.n_lines.to_string(),
                reading.candidate.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        }),
    );
    format!("{table}{}", hidden(n_hidden))
}

fn hidden(n: usize) -> String {
    match n {
        0 => String::new(),
        n => format!("\n{n} more (--top N, --module MODULE, --json)"),
    }
}

fn judged(summary: &Summary, figures: &Figures) -> String {
    let mean = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let met = |what: &str, met: &Met| {
        vec![
            what.to_owned(),
            met.n_listed.to_string(),
            met.n_first.to_string(),
            met.n_among_3.to_string(),
            met.n_among_10.to_string(),
            met.n_feature_among_3.to_string(),
            mean(met.reciprocal_rank),
            mean(met.mean_listed),
        ]
    };
    let places = output::table(
        &[
            "by",
            "listed",
            "first",
            "of 3",
            "of 10",
            "feature of 3",
            "1/rank",
            "each",
        ],
        [
            met(
                &format!("differences within {NEAR} lines"),
                &figures.by_differences,
            ),
            met("the function around", &figures.by_functions),
        ],
    );
    let sampled = |what: &str, sampled: &Sampled| {
        vec![
            what.to_owned(),
            sampled.n.to_string(),
            sampled.n_judged.to_string(),
            sampled.n_right.to_string(),
        ]
    };
    let samples = output::table(
        &["differences", "sample", "judged", "right"],
        [
            sampled("by lot", &figures.by_lot),
            sampled("the surest", &figures.surest),
        ],
    );
    let waits = |id: &&String| summary.differences.iter().find(|one| one.id == **id);
    let waiting = figures.by_lot.waiting.iter().chain(&figures.surest.waiting);
    let waiting: BTreeSet<&String> = waiting.collect();
    let lines: String = waiting
        .iter()
        .filter_map(|id| {
            let one = waits(id)?;
            let clause = one.trace.as_ref()?.clause.as_str();
            let place = one.target.as_ref()?.place.as_str();
            Some(format!(
                "\n{}  {clause}  {place}  {}",
                one.id,
                shortened(&one.title, 90)
            ))
        })
        .collect();
    let wait = if lines.is_empty() {
        String::new()
    } else {
        format!("\n\nNot judged in data/comparison-judged.jsonl:\n{lines}")
    };
    format!(
        "{} against {}: the clauses of the cases that cite {} places of it\n\n{places}\n\n{samples}{wait}",
        summary.candidate, summary.target, figures.n_places
    )
}
