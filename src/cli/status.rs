//! `pipeline status`.

use std::fmt::Write;

use super::{ExitCode, Output, output};
use crate::methods::{rounds, yields};
use crate::stages::status::{self, Summary};
use crate::stages::{Context, Result};

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let summary = status::run(context)?;
    output.result(&summary, words)?;
    Ok(ExitCode::Done)
}

/// Clauses without a case that are named.
const N_CLAUSES: usize = 5;

fn words(summary: &Summary) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        writeln!(out, "{name:<9} {text}").expect("a string takes everything");
    };
    line("issues", format!("{} collected", summary.issues));
    for (stage, at) in &summary.finished {
        line("", format!("{stage} finished {at}"));
    }
    let waiting: Vec<String> = summary
        .waiting
        .iter()
        .map(|(kind, n)| format!("{kind} {n}"))
        .collect();
    line("waiting", waiting.join(" · "));
    if let Some(reading) = &summary.reading {
        line("reading", reading.clone());
    }
    let suite = &summary.suite;
    let categories: Vec<String> = suite
        .by_category
        .iter()
        .map(|(category, n)| format!("{category} {n}"))
        .collect();
    line(
        "suite",
        format!("{} cases, {} controls", suite.n_cases, suite.n_controls),
    );
    line("", categories.join(" · "));
    let without: Vec<&str> = suite
        .clauses_without_case
        .iter()
        .take(N_CLAUSES)
        .map(|id| id.as_str())
        .collect();
    line(
        "clauses",
        format!(
            "{} of {} without a case{}{}",
            suite.clauses_without_case.len(),
            suite.n_clauses,
            if without.is_empty() { "" } else { ": " },
            match suite.clauses_without_case.len() > N_CLAUSES {
                true => format!("{} … (--json lists all)", without.join(", ")),
                false => without.join(", "),
            }
        ),
    );
    for run in &summary.runs {
        let passed: Vec<String> = run
            .passed
            .iter()
            .map(|(name, (passed, counted))| format!("{name} {passed}/{counted}"))
            .collect();
        let state = match (run.n_missing, run.n_invalid) {
            (0, _) => String::new(),
            (missing, 0) => format!(" · {missing} of {} units missing", run.n_units),
            (missing, invalid) => {
                format!(
                    " · {missing} of {} units missing, {invalid} invalid",
                    run.n_units
                )
            }
        };
        line("run", format!("{}  {}{state}", run.run, passed.join(" · ")));
    }
    for stale in &summary.stale {
        line("stale", stale.clone());
    }
    for round in &summary.rounds {
        let mut text = format!(
            "round {}: {} cases of {} seeds, {} of them apart from their seeds",
            round.round, round.n_cases, round.n_seeds, round.n_apart
        );
        if round.n_unknown > 0 {
            text += &format!(", {} not certified yet", round.n_unknown);
        }
        if !round.too_close.is_empty() {
            let names: Vec<&str> = round.too_close.iter().map(|id| id.as_str()).collect();
            text += &format!(
                "; too close, as no candidate tells them from their seeds: {}",
                names.join(", ")
            );
        }
        line("expansion", text);
    }
    if let Some(advice) = rounds::advice(&summary.rounds) {
        line("expansion", advice);
    }
    let rows = summary.yields.iter().map(|one| {
        vec![
            yields::name(one.method).to_owned(),
            one.n_cases.to_string(),
            format!("{}/{}", one.n_approved, one.n_decided),
            one.rate
                .map_or("n/a".to_owned(), |rate| format!("{:.0} %", 100.0 * rate)),
            one.n_waiting.to_string(),
            one.n_alone.map_or("n/a".to_owned(), |n| n.to_string()),
        ]
    });
    let heads = [
        "method",
        "cases",
        "approved",
        "yield",
        "waiting",
        "mutants it alone kills",
    ];
    let table = output::table(&heads, rows);
    line("\n", String::new());
    out.truncate(out.trim_end().len());
    format!("{out}\n\n{table}\n\nnext: {}\n", summary.next)
}
