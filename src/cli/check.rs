//! `pipeline check`.

use super::{ExitCode, Output};
use crate::stages::check::{self, Config, Summary};
use crate::stages::contract;
use crate::stages::sandboxes::{SandboxKind, Settings};
use crate::stages::{Context, Result};

/// Judges form, never behaviour: the tree and the three contracts are in place, no placeholder is left, it compiles
/// and installs without network, and every command answers. A candidate that passes is frozen: it is evaluated in
/// this state only.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Candidates: names below candidates/ (`reference`, `mutants/NAME`) or paths
    #[arg(value_name = "CANDIDATE", required = true)]
    candidates: Vec<String>,
    /// Where candidates run; from pipeline/evaluate.toml unless said
    #[arg(long)]
    sandbox: Option<SandboxKind>,
    /// Only check, and keep no record of those that pass
    #[arg(long)]
    no_freeze: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let sandboxes = Settings::read(context)?;
    let config = Config {
        candidates: args.candidates,
        sandbox: args.sandbox.unwrap_or(sandboxes.sandbox),
        freeze: !args.no_freeze,
        settings: contract::Settings::read(context)?,
        sandboxes,
    };
    let summary = check::run(context, &config)?;
    output.result(&summary, words)?;
    let passed = summary.candidates.iter().all(|report| report.passed);
    Ok(if passed {
        ExitCode::Done
    } else {
        ExitCode::Found
    })
}

fn words(summary: &Summary) -> String {
    let mut lines = Vec::new();
    for report in &summary.candidates {
        for found in &report.findings {
            lines.push(format!("{}/{found}", report.candidate));
        }
        lines.push(match (report.passed, summary.frozen) {
            (true, true) => format!(
                "{}: passes, frozen as {} ({} files, {} calls)",
                report.candidate,
                &report.digest[..12],
                report.n_files,
                report.n_calls
            ),
            (true, false) => format!("{}: passes", report.candidate),
            (false, _) => format!("{}: {} findings", report.candidate, report.findings.len()),
        });
    }
    lines.join("\n")
}
