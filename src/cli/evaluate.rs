//! `pipeline evaluate`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{ExitCode, Output, shard, summary as table};
use crate::domain::verdict::{Outcome, Verdict};
use crate::methods::summary::summarise;
use crate::stages::evaluate::{self, Config, Summary, TakeUp};
use crate::stages::sandboxes::{SandboxKind, Settings};
use crate::stages::{Context, Failure, Result};
use crate::storage::runs;

/// Runs each case in a cell of its own: no network but the mock model, no privileges, limits on everything. What was
/// seen is stored before it is judged. A run that was killed at whatever instant goes on with the same command; nothing
/// that is finished runs again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Candidates: names below candidates/ (`reference`, `mutants/NAME`) or paths
    #[arg(
        long = "candidate",
        short = 'c',
        value_name = "NAME",
        required_unless_present_any = ["resume", "plan", "shard"]
    )]
    candidates: Vec<String>,
    /// Only these cases: ids, categories, or prefixes with a final *
    #[arg(long = "case", value_name = "ID")]
    cases: Vec<String>,
    /// Where candidates run; from pipeline/evaluate.toml unless said
    #[arg(long)]
    sandbox: Option<SandboxKind>,
    /// Cores to keep busy; from pipeline/evaluate.toml unless said
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Name the run; the day and a letter unless said
    #[arg(long, value_name = "ID", value_parser = run_id)]
    run: Option<String>,
    /// Go on with this run, whatever has been asked for since
    #[arg(long, value_name = "RUN", conflicts_with_all = ["candidates", "cases", "run", "nonce_seed", "fresh", "repeat"])]
    resume: Option<String>,
    /// Begin a new run, also when one of the same is not finished
    #[arg(long)]
    fresh: bool,
    /// Draw the values to look for from this text, to repeat a run to the byte
    #[arg(long, value_name = "TEXT")]
    nonce_seed: Option<String>,
    /// Run in an order drawn from this number; verdicts do not depend on it
    #[arg(long, value_name = "N")]
    shuffle: Option<u64>,
    /// Run each case and control so many times: verdicts that differ are flaky, and what was seen is compared
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Write the verdicts as JUnit XML too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    shard: shard::ShardArgs,
}

/// The name of a run is that of a folder.
pub(super) fn run_id(id: &str) -> std::result::Result<String, String> {
    match runs::is_run_id(id) {
        true => Ok(id.to_owned()),
        false => Err("cannot name a run: it is a folder's name".to_owned()),
    }
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let settings = Settings::read(context)?;
    if let Some(config) = args.shard.config(context, &settings, args.jobs) {
        return shard::run(&config, context, output);
    }
    // Said before the run, not after it.
    if let Some(folder) = args.junit.as_deref().and_then(Path::parent)
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return Err(Failure::user(format!(
            "there is no folder {}",
            folder.display()
        )));
    }
    let config = Config {
        candidates: args.candidates,
        cases: args.cases,
        sandbox: args.sandbox.unwrap_or(settings.sandbox),
        jobs: args.jobs.unwrap_or_else(|| settings.jobs()),
        repeat: args.repeat,
        run: args.run,
        resume: args.resume,
        take_up: match args.fresh {
            true => TakeUp::Nothing,
            false => TakeUp::Unfinished,
        },
        seed: args.nonce_seed,
        shuffle: args.shuffle,
        known: Vec::new(),
        settings,
    };
    let summary = evaluate::run(context, &config)?;
    if let Some(file) = &args.junit {
        evaluate::write_junit(context, &summary.run, file)?;
    }
    output.result(&summary, |summary| words(summary, context))?;
    Ok(code(&summary))
}

/// A failed verdict is a finding; what our side broke outweighs it, since the result is not whole. A flaky verdict is
/// told where nothing is certain to be wrong.
pub(super) fn code(summary: &Summary) -> ExitCode {
    let is_flaky = summary.unsteady.iter().any(|unit| unit.flaky);
    code_of(summary.n_invalid, &summary.verdicts, is_flaky)
}

pub(super) fn code_of(n_invalid: usize, verdicts: &[Verdict], is_flaky: bool) -> ExitCode {
    let is_failed = |verdict: &Verdict| matches!(verdict.outcome, Outcome::Failed(_));
    if n_invalid > 0 {
        ExitCode::Invalid
    } else if verdicts.iter().any(is_failed) {
        ExitCode::Found
    } else if is_flaky {
        ExitCode::Flaky
    } else {
        ExitCode::Done
    }
}

/// Verdicts shown one by one; the rest is told by number.
const SHOWN: usize = 12;

pub(super) fn words(summary: &Summary, context: &Context) -> String {
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{text}").expect("a string takes everything");
    let bad: Vec<_> = summary
        .verdicts
        .iter()
        .filter(|verdict| verdict.outcome.is_finding())
        .collect();
    // With several candidates the failures of the wrong ones are many and expected.
    if summary.plan.candidates.len() == 1 {
        for verdict in bad.iter().take(SHOWN) {
            let more = format!("pipeline show {} {}", summary.run, verdict.case);
            line(&table::verdict(verdict, Some(&more)));
        }
        if bad.len() > SHOWN {
            line(&format!("… and {} more\n", bad.len() - SHOWN));
        }
    }
    line(&table::words(&summarise(
        &summary.verdicts,
        &summary.plan.facts(),
    )));
    if !summary.unsteady.is_empty() {
        line(&table::unsteady(&summary.unsteady));
    }
    let n_known = summary.n_units - summary.n_run;
    line(&format!(
        "run {} in {}: {} units, {n_known} of them finished before, {:.1} s",
        summary.run,
        context.project.shown(&summary.folder),
        summary.n_units,
        summary.duration_ms as f64 / 1000.0,
    ));
    if summary.n_invalid > 0 {
        line(&format!(
            "{} units are invalid, our side broke; try them again: pipeline evaluate --resume {}",
            summary.n_invalid, summary.run
        ));
    }
    if bad
        .iter()
        .any(|verdict| matches!(verdict.outcome, Outcome::Failed(_)))
    {
        line(&format!(
            "more: pipeline report {0} · pipeline show {0}",
            summary.run
        ));
    }
    out
}
