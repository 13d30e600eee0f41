//! The command line: one file a subcommand, which turns arguments and settings into a stage's `Config`,
//! and its `Summary` into words. Stdout is data; everything for people goes to stderr.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

mod error;
mod output;
mod progress;
pub mod summary;

mod analyze;
mod build;
mod case;
mod certify;
mod check;
mod cluster;
mod collect;
mod compare;
mod completions;
mod doctor;
mod document;
mod draft;
mod evaluate;
mod expand;
mod filter;
mod leaderboard;
mod man;
mod merge;
mod plan;
mod prepare;
mod rank;
mod rejudge;
mod report;
mod review;
mod run;
mod shard;
mod show;
mod status;
mod submit;

pub use error::{ExitCode, report};
pub use output::Output;

use crate::paths::Project;
use crate::stages::{Context, Failure, Result};

/// Mine, build, prove and run a conformance suite for coding-agent harnesses
#[derive(Debug, Parser)]
#[command(name = "pipeline", version, propagate_version = true, after_help = error::EXIT_CODES_HELP)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Work in this project instead of the one around the current folder
    #[arg(long, global = true, value_name = "DIR", env = "PIPELINE_PROJECT")]
    project: Option<PathBuf>,
    /// Print the result as JSON on standard output
    #[arg(long, global = true)]
    json: bool,
    /// Print no progress
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Walk the whole line, doing only what is stale
    Run(run::Args),
    /// Say what each stage holds, what is stale and what to do next
    Status(status::Args),
    /// Say what this machine can and cannot do, and what to type
    Doctor(doctor::Args),
    /// Collect issues from GitHub or from files
    Collect(collect::Args),
    /// Rank issues by relevance to the document
    Rank(rank::Args),
    /// List, show and decide what waits for a reviewer
    Review(review::Args),
    /// Group relevant issues by the phenomenon they report
    Cluster(cluster::Args),
    Filter(filter::Args),
    Draft(draft::Args),
    /// Compare a candidate's source with a target's, module by module
    Compare(compare::Args),
    /// Derive variants of a case, one variable at a time
    Expand(expand::Args),
    /// Install the packages of shipping harnesses
    Prepare(prepare::Args),
    /// Look at the cases: find faults, or read one
    Case(case::Args),
    /// Run the suite against candidates
    Evaluate(evaluate::Args),
    Plan(plan::Args),
    Merge(merge::Args),
    Submit(submit::Args),
    /// Judge the stored evidence of a run again
    Rejudge(rejudge::Args),
    /// Show the verdict and the evidence of one case
    Show(show::Args),
    /// Write the report of a run
    Report(report::Args),
    /// Print the statistics of a run
    Analyze(analyze::Args),
    /// Check or render the development document
    Document(document::Args),
    /// Check that a candidate keeps the contract, and freeze it
    Check(check::Args),
    Build(build::Args),
    Leaderboard(leaderboard::Args),
    /// Prove the suite with the reference and the mutants
    Certify(certify::Args),
    /// Print a shell's completions
    Completions(completions::Args),
    /// Print the manual page
    Man(man::Args),
}

/// Parses the arguments, runs the command, reports what went wrong.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let failed = error.use_stderr();
            // A closed pipe is no reason to fail.
            let _ = error.print();
            return if failed {
                ExitCode::Usage
            } else {
                ExitCode::Done
            };
        }
    };
    let output = Output::new(cli.global.json);
    let project = project(cli.global.project.as_deref());
    let root = project
        .as_ref()
        .ok()
        .map(|project| project.root().to_path_buf());
    let quiet = cli.global.quiet;
    let context = move || -> Result<Context> {
        Ok(Context {
            project: project?,
            progress: progress::choose(quiet),
            now: now()?,
        })
    };
    match dispatch(cli.command, context, &output) {
        Ok(code) => code,
        Err(failure) => report(&failure, &output, root.as_deref()),
    }
}

/// The project that is named, or the one around the current folder.
fn project(named: Option<&Path>) -> Result<Project> {
    let start = named.unwrap_or(Path::new("."));
    let start = start.canonicalize().map_err(|error| {
        Failure::user(format!(
            "cannot find the folder {}: {error}",
            start.display()
        ))
    })?;
    Project::find(&start).ok_or_else(|| {
        Failure::user(format!(
            "{} is not inside a Doc2Harness project",
            start.display()
        ))
        .hint("go to a checkout, or name one: pipeline --project DIR …")
    })
}

fn dispatch(
    command: Command,
    context: impl FnOnce() -> Result<Context>,
    output: &Output,
) -> Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args, &context()?, output),
        Command::Status(args) => status::run(args, &context()?, output),
        Command::Doctor(args) => doctor::run(args, &context()?, output),
        Command::Collect(args) => collect::run(args, &context()?, output),
        Command::Rank(args) => rank::run(args, &context()?, output),
        Command::Review(args) => review::run(args, &context()?, output),
        Command::Cluster(args) => cluster::run(args, &context()?, output),
        Command::Filter(args) => filter::run(args, &context()?, output),
        Command::Draft(args) => draft::run(args, &context()?, output),
        Command::Compare(args) => compare::run(args, &context()?, output),
        Command::Expand(args) => expand::run(args, &context()?, output),
        Command::Prepare(args) => prepare::run(args, &context()?, output),
        Command::Case(args) => case::run(args, &context()?, output),
        Command::Evaluate(args) => evaluate::run(args, &context()?, output),
        Command::Plan(args) => plan::run(args, &context()?, output),
        Command::Merge(args) => merge::run(args, &context()?, output),
        Command::Submit(args) => submit::run(args, &context()?, output),
        Command::Rejudge(args) => rejudge::run(args, &context()?, output),
        Command::Show(args) => show::run(args, &context()?, output),
        Command::Report(args) => report::run(args, &context()?, output),
        Command::Analyze(args) => analyze::run(args, &context()?, output),
        Command::Document(args) => document::run(args, &context()?, output),
        Command::Check(args) => check::run(args, &context()?, output),
        Command::Build(args) => build::run(args, &context()?, output),
        Command::Leaderboard(args) => leaderboard::run(args, &context()?, output),
        Command::Certify(args) => certify::run(args, &context()?, output),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

/// The clock; `PIPELINE_NOW` (RFC 3339) fixes it, for tests and repeatable runs.
fn now() -> Result<chrono::DateTime<chrono::Utc>> {
    match std::env::var("PIPELINE_NOW") {
        Ok(text) => text
            .parse()
            .map_err(|_| Failure::user(format!("PIPELINE_NOW={text:?} is no RFC 3339 time"))),
        Err(_) => Ok(chrono::Utc::now()),
    }
}
