//! `pipeline doctor`.

use super::{ExitCode, Output, output};
use crate::stages::doctor::{self, Summary};
use crate::stages::{Context, Result};

/// Says of each promise of both sandboxes whether it holds, holds weaker, does not hold, or is not provable here.
/// Nothing is believed that settings only promise: cells are opened and misbehaved in.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let summary = doctor::run(context)?;
    output.result(&summary, words)?;
    Ok(if summary.ready {
        ExitCode::Done
    } else {
        ExitCode::Environment
    })
}

fn words(summary: &Summary) -> String {
    let rows = summary.parts.iter().flat_map(|part| {
        part.checks.iter().enumerate().map(move |(idx, check)| {
            let name = if idx == 0 { part.name } else { "" };
            let remedy = check
                .remedy
                .as_ref()
                .map_or(String::new(), |remedy| format!("; try: {remedy}"));
            vec![
                name.to_owned(),
                check.state.to_owned(),
                check.what.clone(),
                format!("{}{remedy}", check.detail),
            ]
        })
    });
    let table = output::table(&["where", "state", "what", "seen"], rows);
    let verdict = match summary.ready {
        true => "ready: pipeline run",
        false => "not ready: mend what does not hold where `pipeline run` needs it",
    };
    format!("{table}\n\n{verdict}")
}
