//! `pipeline certify`.

use std::fmt::Write;

use super::{ExitCode, Output};
use crate::stages::certify::{self, Config, Summary};
use crate::stages::sandboxes::{SandboxKind, Settings};
use crate::stages::{Context, Result};

/// Runs the reference and every mutant on every case and control, and writes cases/CERTIFICATE.json. Only what
/// changed since the last certificate is run, and a mutant only on cases that reach the code it changes: elsewhere it
/// fares as the reference does. What a case reaches is seen by candidates/reach.toml.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write nothing: say whether the certificate is current and proves the suite
    #[arg(long, conflicts_with = "again")]
    check: bool,
    /// With --check: run so many units, drawn by the certificate's digest, to see whether they end as it says
    #[arg(long, value_name = "N", default_value_t = 0, requires = "check")]
    sample: usize,
    /// Run everything, also what has not changed
    #[arg(long)]
    again: bool,
    /// Run mutants also on cases that do not reach the code they change
    #[arg(long, conflicts_with = "check")]
    unreached: bool,
    /// Where candidates run; from pipeline/evaluate.toml unless said
    #[arg(long)]
    sandbox: Option<SandboxKind>,
    /// Cores to keep busy; from pipeline/evaluate.toml unless said
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let settings = Settings::read(context)?;
    let config = Config {
        sandbox: args.sandbox.unwrap_or(settings.sandbox),
        jobs: args.jobs.unwrap_or_else(|| settings.jobs()),
        again: args.again,
        unreached: args.unreached,
        settings,
    };
    let summary = match args.check {
        true => certify::check_by_sample(context, &config, args.sample)?,
        false => certify::run(context, &config)?,
    };
    output.result(&summary, words)?;
    Ok(
        match (&summary.n_invalid, summary.proof.findings.is_empty()) {
            (0, true) => ExitCode::Done,
            (0, false) => ExitCode::Found,
            _ => ExitCode::Invalid,
        },
    )
}

fn words(summary: &Summary) -> String {
    let proof = &summary.proof;
    let list = |counts: &std::collections::BTreeMap<String, usize>| {
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, n)| format!("{name} {n}"))
            .collect();
        parts.join(" · ")
    };
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        writeln!(out, "{name:<10}{text}").expect("a string takes everything");
    };
    line(
        "cases",
        format!(
            "{}, of them boundary {}; controls {}",
            proof.n_cases, proof.n_boundary, proof.n_controls
        ),
    );
    line("", list(&proof.by_category));
    line("origin", list(&proof.by_origin));
    line(
        "absence",
        format!(
            "{} of {} assertions gated",
            proof.n_absence_gated, proof.n_absence
        ),
    );
    line(
        "mutants",
        format!(
            "{} of {} killed, {} of them by one case alone",
            proof.n_killed, proof.n_mutants, proof.n_killed_once
        ),
    );
    let n_kills: usize = proof.kills.values().sum();
    if proof.n_cases > 0 {
        line(
            "kills",
            format!("{:.1} a case", n_kills as f64 / proof.n_cases as f64),
        );
    }
    for group in &proof.equal {
        let ids: Vec<&str> = group.iter().map(|id| id.as_str()).collect();
        line("equal", format!("the same mutants fail {}", ids.join(", ")));
    }
    line(
        "units",
        format!(
            "{} run, {} not reached, {} known",
            summary.n_run,
            summary.n_unreached,
            summary.n_units - summary.n_run - summary.n_unreached
        ),
    );
    if summary.n_invalid > 0 {
        line(
            "invalid",
            format!(
                "{} units: our side broke, no certificate was written",
                summary.n_invalid
            ),
        );
    }
    match proof.findings.is_empty() {
        true => line("proven", "the suite is proven".to_owned()),
        false => {
            for finding in &proof.findings {
                line("missing", finding.clone());
            }
        }
    }
    out
}
