//! `pipeline run`.

use super::{ExitCode, Output, output, summary as table};
use crate::methods::summary::summarise;
use crate::stages::line::{self, Config, Summary};
use crate::stages::{Context, Result};

/// collect → rank → cluster → filter → expand → queue → evaluate → report, on what pipeline/run.toml names; the bundled
/// sample unless you change it. Each step is done only when something that it reads has changed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Do every step, whatever has changed
    #[arg(long)]
    again: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        again: args.again,
        ..Config::read(context)?
    };
    let summary = line::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    // That wrong candidates fail is what they are bundled for.
    Ok(match summary.evaluation.n_invalid {
        0 => ExitCode::Done,
        _ => ExitCode::Invalid,
    })
}

fn words(summary: &Summary, context: &Context) -> String {
    let rows = summary.steps.iter().map(|step| {
        let state = match step.done {
            Some(true) => "done",
            Some(false) => "up to date",
            None => "",
        };
        vec![step.stage.to_owned(), state.to_owned(), step.words.clone()]
    });
    let steps = output::table(&["step", "state", "what"], rows);
    let evaluation = &summary.evaluation;
    let verdicts = table::words(&summarise(&evaluation.verdicts, &evaluation.plan.facts()));
    format!(
        "{steps}\n\n{verdicts}\n\nreport: {}\nnext: pipeline show {} · pipeline status · pipeline doctor",
        context.project.shown(&summary.report),
        evaluation.run
    )
}
