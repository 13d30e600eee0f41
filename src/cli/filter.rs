//! `pipeline filter`.

use super::{ExitCode, Output, output};
use crate::stages::filter::{self, Config, Summary};
use crate::stages::{Context, Result};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Filter although nothing changed since the last run
    #[arg(long)]
    again: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        again: args.again,
        ..Config::read(&context.project)?
    };
    output.result(&filter::run(context, &config)?, words)?;
    Ok(ExitCode::Done)
}

fn words(summary: &Summary) -> String {
    let mut text = format!(
        "{} of {} clusters kept for approval{}\n",
        summary.n_kept,
        summary.n_clusters,
        if summary.unchanged {
            "; nothing changed"
        } else {
            ""
        }
    );
    if summary.n_kept < summary.n_clusters {
        text += "\n";
        let dropped = summary.outcomes.iter().filter(|outcome| !outcome.kept);
        text += &output::table(
            &["dropped", "rule", "against", "reason"],
            dropped.map(|outcome| {
                vec![
                    outcome.cluster.clone(),
                    outcome.rule.clone().unwrap_or_default(),
                    outcome.counterpart.clone().unwrap_or("-".to_owned()),
                    outcome.reason.clone(),
                ]
            }),
        );
        text += "\n\nA cluster that was dropped wrongly is named under [[keep]] in pipeline/filter.toml.";
    }
    text
}
