//! `pipeline merge`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use super::evaluate::code_of;
use super::{ExitCode, Output, summary as table};
use crate::domain::verdict::Verdict;
use crate::domain::visible::visible_line;
use crate::methods::summary::summarise;
use crate::stages::merge::{self, Config, Summary};
use crate::stages::{Context, Result};
use crate::storage::runs::Stored;

/// Make one run of the shards of a plan
///
/// Makes one run of what the shards of a plan have left. The run is the same to the byte in whatever order and however
/// often attempts are given. A unit that ended differently on two machines is invalid ("unstable"), with both evidences
/// kept. What belongs to another plan, version, suite or candidate, or is broken, is refused by name and not used. While
/// units are missing nothing is written (exit code 75, or 3 when something was refused), and it is said which shards to
/// run again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan of `pipeline plan`
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Folders in which attempts at shards lie, up to six deep; those below data/shards/ unless said
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Write what there is, also when units are missing; such a run is shown, but nothing ranks or compares it
    #[arg(long)]
    partial: bool,
    /// Name the run otherwise than the plan does
    #[arg(long, value_name = "ID", value_parser = super::evaluate::run_id)]
    run: Option<String>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = Config {
        plan: args.plan,
        folders: args.folders,
        partial: args.partial,
        run: args.run,
    };
    let summary = merge::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    Ok(code(&summary))
}

/// What is missing outweighs what our side broke, and that outweighs a failed verdict.
pub(super) fn code(summary: &Summary) -> ExitCode {
    if !summary.missing.is_empty() {
        match summary.refused.is_empty() && summary.dropped.is_empty() {
            true => ExitCode::Again,
            false => ExitCode::Settings,
        }
    } else {
        let is_flaky = summary.verdicts.iter().any(Verdict::is_flaky);
        code_of(summary.n_invalid, &summary.verdicts, is_flaky)
    }
}

/// Of each kind, told one by one; the rest is told by number.
const SHOWN: usize = 12;

pub(super) fn words(summary: &Summary, context: &Context) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes everything");
    let several = |line: &mut dyn FnMut(String), head: &str, all: Vec<String>| {
        for text in all.iter().take(SHOWN) {
            line(format!("{head}  {text}"));
        }
        if all.len() > SHOWN {
            line(format!("{head}  … and {} more", all.len() - SHOWN));
        }
    };
    let refused = summary.refused.iter().map(ToString::to_string).collect();
    several(&mut line, "refused ", refused);
    let dropped = summary.dropped.iter();
    let dropped = dropped.map(|one| {
        let why = visible_line(&one.why);
        format!("{} {}: {why}", one.candidate, one.case)
    });
    several(&mut line, "dropped ", dropped.collect());
    let unstable = summary.unstable.iter().map(|one| {
        let seen = one.seen.each_ref().map(|(attempt, ended, evidence)| {
            let evidence = evidence.as_deref().unwrap_or("none");
            format!("{ended} (attempt {attempt}, evidence {evidence})")
        });
        format!("{} {}: {}", one.candidate, one.case, seen.join(" and "))
    });
    several(&mut line, "unstable", unstable.collect());
    let mut missing: BTreeMap<u32, usize> = BTreeMap::new();
    for unit in &summary.missing {
        *missing.entry(unit.shard).or_default() += 1;
    }
    let missing_units = summary
        .missing
        .iter()
        .map(|unit| format!("{} {} (shard {})", unit.candidate, unit.case, unit.shard));
    several(&mut line, "missing ", missing_units.collect());
    if summary.stored.is_some() {
        line(table::words(&summarise(
            &summary.verdicts,
            &summary.plan.facts(),
        )));
    }
    if summary.n_repeated > 0 {
        line(format!(
            "{} units ran on several machines, {} of them ended alike",
            summary.n_repeated, summary.n_agreed
        ));
    }
    if summary.builds.len() > 1 {
        let builds: Vec<String> = summary.builds.iter().cloned().collect();
        line(format!("outcomes of several builds: {}", builds.join(", ")));
    }
    let of = format!(
        "{} units of {} attempts",
        summary.n_units, summary.n_attempts
    );
    let folder = context.project.shown(&summary.folder);
    let n_missing = summary.missing.len();
    line(match (summary.stored, n_missing) {
        (None, _) => format!("nothing was written: {n_missing} of {of} are missing"),
        (Some(_), 1..) => format!(
            "run {} in {folder} is a part: {n_missing} of {of} are missing; nothing ranks it",
            summary.run
        ),
        (Some(Stored::Same), _) => format!("run {} in {folder} is as it was: {of}", summary.run),
        (Some(Stored::Replaced), _) => format!(
            "run {} in {folder}: {of}; it took the place of an earlier merge",
            summary.run
        ),
        (Some(Stored::New), _) => format!("run {} in {folder}: {of}", summary.run),
    });
    if !summary.again.is_empty() {
        line(format!(
            "shards to run again: {} (sbatch --array={0})",
            summary.again
        ));
    }
    out
}
