//! `pipeline report`: writes the report of a run, and opens it when asked.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::output::table;
use super::{ExitCode, Output};
use crate::domain::visible::visible_line;
use crate::methods::report::Comparison;
use crate::stages::report::{Config, Summary};
use crate::stages::{Context, Failure, Result, report};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes report.html (one file that opens from disk), report.md, report.json and verdicts.csv. The
page says of each failure what was expected and what was seen, and of each case that failed what
it does, why, and the clause that it tests. A case or clause that is not as it was when the run
was made is not told: what it says today is not what was run.")]
pub struct Args {
    /// The run; the newest one unless said
    run: Option<String>,
    /// Compare with this earlier run; the exit code is 1 when a verdict got worse or does not count any more
    #[arg(long, value_name = "RUN")]
    baseline: Option<String>,
    /// Write into this folder; report/ in the run's folder unless said
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say how long things took too; without it, runs of one seed that ended alike give the same bytes
    #[arg(long)]
    times: bool,
    /// Write the verdicts as JUnit XML too; with a baseline only what got worse fails in it
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
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
        junit: args.junit,
    };
    let summary = report::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    if args.open {
        open(&summary.html)?;
    }
    let comparison = summary.comparison.as_ref();
    Ok(match comparison.is_some_and(Comparison::is_worse) {
        true => ExitCode::Found,
        false => ExitCode::Done,
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
    if summary.n_flaky > 0 {
        text += &format!(", {} flaky", summary.n_flaky);
    }
    if let Some(comparison) = &summary.comparison {
        text += &changes(comparison);
    }
    text + &format!("\nwrote {}", context.project.shown(&summary.html))
}

/// Changes of a kind that are told one by one.
const SHOWN: usize = 12;

fn changes(comparison: &Comparison) -> String {
    let mut text = format!(
        "\n\nagainst {}: {} compared, {} regressions, {} fixes, {} lost (invalid, flaky, not asked or not run here)\n",
        comparison.baseline,
        comparison.n_compared,
        comparison.regressions.len(),
        comparison.fixes.len(),
        comparison.lost.len()
    );
    if !comparison.categories.is_empty() {
        let rows = comparison.categories.iter().map(|(category, changes)| {
            let numbers = [changes.regressions, changes.fixes, changes.lost];
            let numbers = numbers.iter().map(usize::to_string);
            std::iter::once(category.to_string())
                .chain(numbers)
                .collect()
        });
        text += &table(&["category", "regressions", "fixes", "lost"], rows);
        text += "\n";
    }
    for (name, changes) in [
        ("regression", &comparison.regressions),
        ("fix", &comparison.fixes),
        ("lost", &comparison.lost),
    ] {
        for change in changes.iter().take(SHOWN) {
            let note = match change.case_changed {
                true => " (the case has changed)",
                false => "",
            };
            text += &format!(
                "{name:<10} {} · {}: {} → {}{note}\n",
                visible_line(&change.candidate),
                change.case,
                change.was,
                change.is
            );
        }
        if changes.len() > SHOWN {
            text += &format!("{name:<10} … and {} more\n", changes.len() - SHOWN);
        }
    }
    text
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
