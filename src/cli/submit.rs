//! `pipeline submit`.

use std::path::PathBuf;
use std::time::Duration;

use super::{ExitCode, Output, merge};
use crate::stages::submit::{self, Config, Submitted, Summary};
use crate::stages::{Context, Result};

/// Run the shards of a plan on a cluster, follow them, and merge
///
/// Submits the shards that are neither sealed nor queued as one array, and a merge that begins when the array is over,
/// however it ended. Then it follows until no task is left, and tells what the merge tells. Whoever stops following loses
/// nothing: the same command goes on, on any machine that sees the same folders, and submits what is missing. The
/// project, its data/ and this program must be there under the same names on all nodes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan of `pipeline plan`
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// What runs the shards
    #[arg(long, value_enum)]
    engine: Engine,
    /// Cores of a task, and trials at the same time in it
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    cpus: u32,
    /// An option of sbatch that the site wants: --sbatch-arg=--partition=long, --sbatch-arg=--mem=4G
    #[arg(long = "sbatch-arg", value_name = "OPTION", value_parser = option, allow_hyphen_values = true)]
    options: Vec<String>,
    /// Keep what shards leave below this folder, which all nodes see; data/shards unless said
    #[arg(long, value_name = "DIR")]
    shards: Option<PathBuf>,
    /// Print the scripts and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Submit and do not follow
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    poll: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Engine {
    /// A Slurm cluster, by its sbatch and squeue
    Slurm,
}

/// An option is a line of the script.
fn option(text: &str) -> std::result::Result<String, String> {
    match text.starts_with('-') && !text.contains('\n') {
        true => Ok(text.to_owned()),
        false => Err("is no option of sbatch: --sbatch-arg=--mem=4G".to_owned()),
    }
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let Engine::Slurm = args.engine;
    let shards = args.shards;
    let config = Config {
        plan: args.plan,
        shards: shards.unwrap_or_else(|| context.project.shards()),
        cpus: args.cpus,
        options: args.options,
        detach: args.detach,
        poll: Duration::from_secs(args.poll),
    };
    let summary = match args.dry_run {
        true => submit::dry_run(context, &config)?,
        false => submit::run(context, &config)?,
    };
    output.result(&summary, |summary| match summary {
        Summary::Scripts { array, merge } => {
            format!("{array}\n# After it; ARRAY is the number that sbatch printed:\n{merge}")
        }
        Summary::Submitted(submitted) => words(submitted),
        Summary::Merged(merged) => merge::words(merged, context),
    })?;
    Ok(match &summary {
        Summary::Merged(merged) => merge::code(merged),
        _ => ExitCode::Done,
    })
}

fn words(submitted: &Submitted) -> String {
    let queued = match submitted.queued.as_str() {
        "" => "none",
        shards => shards,
    };
    let now = match &submitted.submitted {
        Some(job) => format!("submitted now: {} as the array {}", job.shards, job.array),
        None => "nothing to submit".to_owned(),
    };
    format!(
        "{} shards sealed; waiting or running: {queued}; {now}",
        submitted.n_sealed
    )
}
