//! `pipeline submit`.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::{ExitCode, Output, merge};
use crate::adapters::http;
use crate::stages::submit::{self, Cluster, Config, On, Submitted, Summary};
use crate::stages::{Context, Result};

/// Run the shards of a plan on a cluster, follow them, and merge
///
/// Submits the shards that are neither sealed nor queued as one array, and with Slurm a merge that begins when the array
/// is over, however it ended. Then it follows until no task is left, and tells what the merge tells. Whoever stops
/// following loses nothing: the same command goes on, on any machine that sees the same folders, and submits what is
/// missing. The project, its data/ and this program must be there under the same names on all nodes.
///
/// Kubernetes is unproven on a live cluster: its manifest is made of typed structures, and the rest was tried on a server
/// that a test plays. It needs a program built with `cargo build --release --features kubernetes`.
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
    /// Slurm: an option of sbatch that the site wants: --sbatch-arg=--partition=long, --sbatch-arg=--mem=4G
    #[arg(long = "sbatch-arg", value_name = "OPTION", value_parser = option, allow_hyphen_values = true)]
    options: Vec<String>,
    /// Kubernetes: the image that holds this very build of pipeline on its PATH, python3, and /bin/sh
    #[arg(long, value_name = "IMAGE", required_if_eq("engine", "kubernetes"))]
    image: Option<String>,
    /// Kubernetes: the PersistentVolumeClaim whose volume is the project's folder, which this machine sees too
    #[arg(long, value_name = "NAME", required_if_eq("engine", "kubernetes"))]
    claim: Option<String>,
    /// Kubernetes: the namespace of the Job
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// Kubernetes: the API server as `kubectl proxy` shows it
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8001", value_parser = server)]
    api: Url,
    /// Keep what shards leave below this folder, which all nodes see; data/shards unless said
    #[arg(long, value_name = "DIR")]
    shards: Option<PathBuf>,
    /// Print the scripts, or the manifest for `kubectl create -f -`, and submit nothing
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
    /// An Indexed Job of Kubernetes 1.33 or later; unproven on a live cluster
    Kubernetes,
}

/// An option is a line of the script.
fn option(text: &str) -> std::result::Result<String, String> {
    match text.starts_with('-') && !text.contains('\n') {
        true => Ok(text.to_owned()),
        false => Err("is no option of sbatch: --sbatch-arg=--mem=4G".to_owned()),
    }
}

fn server(text: &str) -> std::result::Result<Url, String> {
    http::address(text).ok_or_else(|| "is no server: http://127.0.0.1:8001".to_owned())
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let shards = args.shards;
    let config = Config {
        plan: args.plan,
        shards: shards.unwrap_or_else(|| context.project.shards()),
        on: match args.engine {
            Engine::Slurm => On::Slurm {
                options: args.options,
            },
            Engine::Kubernetes => On::Kubernetes(Cluster {
                api: args.api,
                namespace: args.namespace,
                image: args.image.expect("it is required for this engine"),
                claim: args.claim.expect("it is required for this engine"),
            }),
        },
        cpus: args.cpus,
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
        Summary::Manifest(manifest) => format!("{manifest:#}"),
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
