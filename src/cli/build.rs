//! `pipeline build`.

use std::path::PathBuf;

use super::{ExitCode, Output};
use crate::stages::build::{self, Config, Summary};
use crate::stages::sandboxes::{self, SandboxKind};
use crate::stages::{Context, Failure, Result, contract};
use crate::storage::builds::State;

/// Runs a builder's command in a cell, in a folder that holds the contract skeleton and DOCUMENT.md. When it ends
/// with 0, the folder is a submission: the contract check is made, and what it finds is written to FINDINGS.md for
/// the next round. A submission that passes is frozen.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The builder, a command for /bin/sh
    #[arg(long, value_name = "COMMAND")]
    builder: String,
    /// Name the build and its candidate; the day and a letter unless said
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep builds here instead of data/builds
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A folder of this machine that the builder sees, read-only, as /shown/NAME with the last part of its path
    #[arg(long, value_name = "DIR")]
    show: Vec<PathBuf>,
    /// Where port 8400 of the cell leads to: the gateway of the builder's model; nowhere unless said
    #[arg(long, value_name = "HOST:PORT")]
    gateway: Option<String>,
    /// Where the builder runs; from pipeline/evaluate.toml unless said
    #[arg(long)]
    sandbox: Option<SandboxKind>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    if let Some(name) = &args.name
        && (name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']))
    {
        return Err(Failure::user(format!(
            "{name:?} cannot name a build: it is a folder's name"
        )));
    }
    let sandboxes = sandboxes::Settings::read(context)?;
    let config = Config {
        builder: args.builder,
        name: args.name,
        builds: args.out.unwrap_or_else(|| context.project.builds()),
        show: args.show,
        gateway: args.gateway,
        sandbox: args.sandbox.unwrap_or(sandboxes.sandbox),
        settings: build::Settings::read(context)?,
        check: contract::Settings::read(context)?,
        sandboxes,
    };
    let summary = build::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    Ok(match summary.build.state {
        State::Passed => ExitCode::Done,
        _ => ExitCode::Found,
    })
}

fn words(summary: &Summary, context: &Context) -> String {
    let build = &summary.build;
    let mut lines = Vec::new();
    for name in &summary.voided {
        lines.push(format!("{name}: void, its process had died"));
    }
    for (idx, round) in build.rounds.iter().enumerate() {
        lines.push(format!(
            "round {}: {} after {:.1} s, {} findings",
            idx + 1,
            round.ended,
            round.duration_ms as f64 / 1000.0,
            round.findings.len()
        ));
    }
    if let Some(round) = build.rounds.last() {
        lines.extend(round.findings.iter().map(|finding| format!("  {finding}")));
    }
    let folder = context.project.shown(&summary.folder);
    lines.push(match (&summary.candidate, build.state) {
        (Some(candidate), _) => format!(
            "{}: passes; evaluate it: pipeline evaluate --candidate {}",
            build.name,
            context.project.shown(candidate)
        ),
        (None, State::NotDelivered) => {
            format!("{}: nothing was submitted; see {folder}", build.name)
        }
        (None, _) => format!("{}: no submission passes; see {folder}", build.name),
    });
    lines.join("\n")
}
