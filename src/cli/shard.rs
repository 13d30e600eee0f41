//! `pipeline evaluate --plan FILE --shard I/N`.

use std::path::PathBuf;

use super::{ExitCode, Output};
use crate::domain::shard::ShardId;
use crate::stages::sandboxes::Settings;
use crate::stages::shard::{self, Config, Summary};
use crate::stages::{Context, Result};

/// A shard instead of a whole run.
#[derive(Debug, clap::Args)]
pub struct ShardArgs {
    /// Run a shard of this plan, of `pipeline plan`; exit code 0 when it is sealed, 75 when it should be tried again, 78
    /// when it can never be run here
    #[arg(long, value_name = "FILE", requires = "shard", conflicts_with_all = [
        "candidates", "cases", "sandbox", "run", "resume", "fresh", "nonce_seed", "shuffle", "repeat", "junit",
    ])]
    plan: Option<PathBuf>,
    /// Which shard: 3/8 is the third of eight
    #[arg(long, value_name = "I/N", requires = "plan")]
    shard: Option<ShardId>,
    /// Keep what the shard leaves below this folder; data/shards unless said
    #[arg(long, value_name = "DIR", requires = "plan")]
    shards: Option<PathBuf>,
}

impl ShardArgs {
    /// None when a whole run is asked for.
    pub fn config(
        &self,
        context: &Context,
        settings: &Settings,
        jobs: Option<usize>,
    ) -> Option<Config> {
        let shards = self.shards.clone();
        Some(Config {
            plan: self.plan.clone()?,
            shard: self.shard?,
            shards: shards.unwrap_or_else(|| context.project.shards()),
            jobs: jobs.unwrap_or_else(|| settings.jobs()),
            settings: settings.clone(),
        })
    }
}

pub fn run(config: &Config, context: &Context, output: &Output) -> Result<ExitCode> {
    let summary = shard::run(context, config)?;
    output.result(&summary, |summary| words(summary, context))?;
    Ok(match summary.sealed {
        true => ExitCode::Done,
        false => ExitCode::Again,
    })
}

fn words(summary: &Summary, context: &Context) -> String {
    let ended: Vec<String> = summary
        .ended
        .iter()
        .map(|(reason, n)| format!("{reason} {n}"))
        .collect();
    let place = match &summary.folder {
        Some(folder) => format!(" in {}", context.project.shown(folder)),
        None => " before".to_owned(),
    };
    let ended = match ended.is_empty() {
        true => String::new(),
        false => format!("; before any control gates: {}", ended.join(" · ")),
    };
    let state = match summary.sealed {
        true => format!("sealed{place}"),
        false => format!(
            "not sealed{place}: our side broke {} units, try again",
            summary.n_invalid
        ),
    };
    format!(
        "shard {}: {} units, {} run now{ended}\n{state}",
        summary.shard, summary.n_units, summary.n_run
    )
}
