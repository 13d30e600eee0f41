//! `pipeline leaderboard`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::methods::report::Leaderboard;
use crate::stages::evaluate::TakeUp;
use crate::stages::leaderboard::{self, Config, Forecast, Settings, Summary};
use crate::stages::sandboxes::{self, SandboxKind};
use crate::stages::{Context, Result, analyze, build, contract, evaluate};

/// Build with several models, run the suite on what they built, and rank them
///
/// Makes the builds of each model that are missing (see `pipeline build`), runs the suite once on each candidate that
/// came of them, and writes the table. The same command goes on after a kill at whatever instant: builds that count are
/// kept, void and aborted ones are built again, a finished run is not run again, and the figures are renewed.
///
/// A model's rate is the mean over its delivered builds, those with a frozen candidate. A build that delivered none is
/// in the column of all builds with rate 0, and in no other. Void and aborted builds are in no figure.
///
/// Exit code 75 when builds are missing at the end, 6 when our side broke units of a run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The models [default: pipeline/leaderboard.toml]
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Where builders and candidates run [default: those of pipeline/build.toml and pipeline/evaluate.toml]
    #[arg(long)]
    sandbox: Option<SandboxKind>,
    /// Cores to keep busy; from pipeline/evaluate.toml unless said
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Run this command in the place of OpenCode; see `pipeline build`
    #[arg(long, value_name = "COMMAND")]
    builder: Option<String>,
    /// A folder of this machine that the command sees, read-only, as /shown/NAME with the last part of its path
    #[arg(long, value_name = "DIR", requires = "builder")]
    show: Vec<PathBuf>,
    /// Write the table here instead of data/leaderboard
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Draw the figures of `pipeline analyze` into this folder
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = config(&args, context)?;
    if args.dry_run {
        let forecast = leaderboard::forecast(context, &config)?;
        output.result(&forecast, forecast_words)?;
        return Ok(ExitCode::Done);
    }
    let summary = leaderboard::run(context, &config)?;
    output.result(&summary, words)?;
    Ok(match (summary.n_missing, summary.n_invalid) {
        (0, 0) => ExitCode::Done,
        (0, _) => ExitCode::Invalid,
        _ => ExitCode::Again,
    })
}

fn config(args: &Args, context: &Context) -> Result<Config> {
    let default = context.project.settings("leaderboard");
    let settings = Settings::read(args.models.as_deref().unwrap_or(&default))?;
    let building = build::Settings {
        model: settings.models(),
        ..build::Settings::read(context)?
    };
    let sandboxes = sandboxes::Settings::read(context)?;
    Ok(Config {
        build: build::Config {
            orders: settings.orders(),
            builder: args.builder.clone(),
            show: args.show.clone(),
            folder: context.project.builds(),
            sandbox: args.sandbox.unwrap_or(building.sandbox),
            settings: building,
            check: contract::Settings::read(context)?,
            sandboxes: sandboxes.clone(),
        },
        evaluation: evaluate::Config {
            candidates: Vec::new(),
            cases: settings.cases,
            sandbox: args.sandbox.unwrap_or(sandboxes.sandbox),
            jobs: args.jobs.unwrap_or_else(|| sandboxes.jobs()),
            repeat: 1,
            run: None,
            resume: None,
            take_up: TakeUp::Newest,
            seed: None,
            shuffle: None,
            known: Vec::new(),
            settings: sandboxes,
        },
        analysis: analyze::Settings::read(&context.project)?,
        out: args
            .out
            .clone()
            .unwrap_or_else(|| context.project.leaderboard()),
        figures: args.figures.clone(),
    })
}

fn words(summary: &Summary) -> String {
    let (heads, rows) = summary.leaderboard.table();
    let mut text = output::table(&heads, rows);
    text += &format!("\n{}\n\n", Leaderboard::LEGEND);
    if summary.n_missing > 0 {
        text += &format!(
            "{} builds are missing; the same command makes them\n",
            summary.n_missing
        );
    }
    if summary.n_invalid > 0 {
        text += &format!(
            "{} units are invalid, our side broke; the same command tries them again\n",
            summary.n_invalid
        );
    }
    text + &format!("written: {}", summary.files.join(", "))
}

fn forecast_words(forecast: &Forecast) -> String {
    let rows = forecast.models.iter().map(|model| {
        vec![
            model.model.clone(),
            model.name.clone(),
            model.endpoint.clone(),
            model.n_wanted.to_string(),
            match model.kept.is_empty() {
                true => "none".to_owned(),
                false => model.kept.join(", "),
            },
            model.n_missing.to_string(),
        ]
    });
    let heads = ["model", "name", "endpoint", "builds", "there", "to build"];
    format!(
        "{}\n\nto build: {}, of at most {:.1} hours all together\nto evaluate: {} candidates that are there and those to \
         come, on {} cases each; finished runs are not run again",
        output::table(&heads, rows),
        forecast.n_builds,
        forecast.at_most_hours,
        forecast.n_candidates,
        forecast.n_cases,
    )
}
