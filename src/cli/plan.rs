//! `pipeline plan`.

use std::path::PathBuf;

use super::output::table;
use super::{ExitCode, Output};
use crate::stages::evaluate::{Config as Evaluation, TakeUp};
use crate::stages::plan::{self, Config, Summary};
use crate::stages::sandboxes::{SandboxKind, Settings};
use crate::stages::{Context, Result};

/// Freeze a run on many machines, and deal it to shards
///
/// Freezes what is run on many machines into one file: the suite and the candidates by digest, limits, version, build,
/// seed, and which shard runs which unit. `pipeline evaluate --plan FILE --shard 3/8` runs a shard of it, on any machine that has
/// the same suite and candidates, and `pipeline merge FILE` makes one run of what the shards left: the run that one
/// machine would have made. Ten to thirty minutes a shard, and two to four shards for each place where one can run, are a
/// good number.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Candidates: names below candidates/ (`reference`, `mutants/NAME`) or paths
    #[arg(long = "candidate", short = 'c', value_name = "NAME", required = true)]
    candidates: Vec<String>,
    /// Into so many shards
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    shards: u32,
    /// Only these cases: ids, categories, or prefixes with a final *
    #[arg(long = "case", value_name = "ID")]
    cases: Vec<String>,
    /// Where candidates run; from pipeline/evaluate.toml unless said
    #[arg(long)]
    sandbox: Option<SandboxKind>,
    /// Run each case and control so many times
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Draw the values to look for from this text, to repeat a run to the byte
    #[arg(long, value_name = "TEXT")]
    nonce_seed: Option<String>,
    /// Let any build of this version run shards, not only the one that plans
    #[arg(long)]
    any_build: bool,
    /// Name the merged run; the day and a part of the plan's digest unless said
    #[arg(long, value_name = "ID", value_parser = super::evaluate::run_id)]
    run: Option<String>,
    /// Write the plan into this file; named by its digest below data/plans/ unless said
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let settings = Settings::read(context)?;
    let config = Config {
        evaluation: Evaluation {
            candidates: args.candidates,
            cases: args.cases,
            sandbox: args.sandbox.unwrap_or(settings.sandbox),
            jobs: settings.jobs(),
            repeat: args.repeat,
            run: args.run,
            resume: None,
            take_up: TakeUp::Nothing,
            seed: args.nonce_seed,
            shuffle: None,
            known: Vec::new(),
            settings,
        },
        n_shards: args.shards,
        any_build: args.any_build,
        out: args.out,
    };
    let summary = plan::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    Ok(ExitCode::Done)
}

/// Shards shown one by one; of more, the ends of the range are told.
const SHOWN: usize = 12;

fn words(summary: &Summary, context: &Context) -> String {
    let n = summary.shards.len();
    let minutes = |ms: u64| format!("{:.1}", ms as f64 / 60_000.0);
    let shards = match n <= SHOWN {
        true => {
            let rows = summary.shards.iter().enumerate().map(|(idx, shard)| {
                vec![
                    format!("{}/{n}", idx + 1),
                    shard.n_units.to_string(),
                    shard.n_candidates.to_string(),
                    minutes(shard.expected_ms),
                ]
            });
            table(&["shard", "units", "candidates", "expected min"], rows)
        }
        false => {
            let expected = || summary.shards.iter().map(|shard| shard.expected_ms);
            format!(
                "{n} shards of {} to {} expected minutes each",
                minutes(expected().min().unwrap_or(0)),
                minutes(expected().max().unwrap_or(0))
            )
        }
    };
    let file = context.project.shown(&summary.file);
    format!(
        "{shards}\n\n{} units, candidates {}; expected: one after the other, as in earlier runs, else the time limits\n\
         plan {} in {file}\n\
         each shard:  pipeline evaluate --plan {file} --shard 1/{n}\n\
         then:        pipeline merge {file}, which writes the run {}",
        summary.n_units, summary.n_candidates, summary.digest, summary.run
    )
}
