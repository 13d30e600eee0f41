//! `pipeline prepare`.

use super::{ExitCode, Output};
use crate::stages::prepare::{self, Config, Summary};
use crate::stages::{Context, Result};

/// Installs the packages of shipping harnesses (`candidates/adapters/NAME`) from the package registries, pinned by hash.
/// It is the only command that does, and nothing of a package is run by it. Packages that are there are kept.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Adapters: names below candidates/ (`adapters/NAME`) or paths
    #[arg(value_name = "ADAPTER", required = true)]
    candidates: Vec<String>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        candidates: args.candidates,
    };
    let summary = prepare::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    Ok(ExitCode::Done)
}

fn words(summary: &Summary, context: &Context) -> String {
    let lines = summary.prepared.iter().map(|one| {
        let state = match (&one.folder, one.known) {
            (None, _) => "needs no packages".to_owned(),
            (Some(folder), true) => format!("is there, {}", context.project.shown(folder)),
            (Some(folder), false) => format!("installed, {}", context.project.shown(folder)),
        };
        format!("{}: {} {} {state}", one.candidate, one.harness, one.version)
    });
    lines.collect::<Vec<_>>().join("\n")
}
