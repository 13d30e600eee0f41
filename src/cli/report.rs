//! `pipeline report`: writes the report of a run, and opens it when asked.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{ExitCode, Output};
use crate::stages::report::{Config, Summary};
use crate::stages::{Context, Failure, Result, report};

/// Writes report.html (one file that opens from disk), report.md, report.json and verdicts.csv.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run; the newest one unless said
    run: Option<String>,
    /// Compare with this earlier run; the exit code is 1 when a verdict got worse
    #[arg(long, value_name = "RUN")]
    baseline: Option<String>,
    /// Write into this folder; report/ in the run's folder unless said
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say how long things took too; without it, runs of one seed that ended alike give the same bytes
    #[arg(long)]
    times: bool,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        run: args.run,
        baseline: args.baseline,
        out: args.out,
        times: args.times,
    };
    let summary = report::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    if args.open {
        open(&summary.html)?;
    }
    Ok(match summary.n_regressions {
        Some(1..) => ExitCode::Found,
        _ => ExitCode::Done,
    })
}

fn words(summary: &Summary, context: &Context) -> String {
    let mut text = format!(
        "run {}: {} verdicts, {} failed, {} invalid",
        summary.run, summary.n_verdicts, summary.n_failed, summary.n_invalid
    );
    if summary.n_unfinished > 0 {
        text += &format!(", {} not there yet", summary.n_unfinished);
    }
    if let Some(n) = summary.n_regressions {
        text += &format!(", {n} regressions");
    }
    text + &format!("\nwrote {}", context.project.shown(&summary.html))
}

fn open(page: &Path) -> Result<()> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = Command::new(opener)
        .arg(page)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.map(drop).map_err(|error| {
        Failure::environment(format!("cannot start {opener}: {error}"))
            .hint(format!("open the file yourself: {}", page.display()))
    })
}
