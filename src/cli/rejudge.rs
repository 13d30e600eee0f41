//! `pipeline rejudge`.

use std::fmt::Write;

use super::{ExitCode, Output, summary as table};
use crate::methods::summary::summarise;
use crate::stages::rejudge::{self, Config, Summary};
use crate::stages::{Context, Result};

/// Judges what was seen with the assertions as they are now. Cases whose fixture or launches have changed are left
/// out, since the evidence is not theirs any more.
#[derive(Debug, clap::Args)]
pub struct Args {
    run: String,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let summary = rejudge::run(context, &Config { run: args.run })?;
    output.result(&summary, words)?;
    let found = summary
        .verdicts
        .iter()
        .any(|verdict| verdict.outcome.is_finding());
    Ok(if found {
        ExitCode::Found
    } else {
        ExitCode::Done
    })
}

fn words(summary: &Summary) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes everything");
    for unit in &summary.changed {
        line(format!(
            "{} · {}: {} → {}",
            unit.candidate, unit.case, unit.was, unit.is
        ));
    }
    for unit in &summary.left_out {
        line(format!(
            "{} · {}: left out, {}",
            unit.candidate, unit.case, unit.why
        ));
    }
    line(table::words(&summarise(
        &summary.verdicts,
        &summary.plan.facts(),
    )));
    line(format!(
        "{} judged again, {} changed, {} left out",
        summary.n_judged,
        summary.changed.len(),
        summary.left_out.len()
    ));
    out
}
