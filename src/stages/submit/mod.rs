//! Gives the shards of a plan to an engine and follows them. The truth is what lies in the folders of the shards; what
//! the engine says only explains why something is not there yet. So whoever follows may leave, and anybody who sees the
//! same folders goes on.

mod engine;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod logs;
mod places;
mod script;
mod slurm;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::interrupt::told_to_stop;
use super::{Classify, Context, Failure, Kind, Result, evaluate, merge, plan};
use crate::domain::shard::ranges;
use crate::storage::plans::StoredPlan;
use engine::{Blind, Engine, Queue};
use places::Places;

#[derive(Debug, Clone)]
pub struct Config {
    pub plan: PathBuf,
    /// Where attempts are kept; every machine must see it under this name.
    pub shards: PathBuf,
    pub on: On,
    /// Trials at the same time in a task, and cores that are asked for.
    pub cpus: u32,
    /// Submit and leave.
    pub detach: bool,
    /// Between two looks.
    pub poll: Duration,
}

/// What runs the shards, and what it has to be told.
#[derive(Debug, Clone)]
pub enum On {
    Slurm {
        /// Of `sbatch`.
        options: Vec<String>,
    },
    Kubernetes(Cluster),
}

/// A cluster of Kubernetes.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The API server, as `kubectl proxy` shows it.
    pub api: Url,
    pub namespace: String,
    /// The image that holds the program.
    pub image: String,
    /// The claim of the volume that holds the project.
    pub claim: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Summary {
    /// Nothing was submitted.
    Scripts {
        array: String,
        merge: String,
    },
    /// Nothing was submitted.
    Manifest(serde_json::Value),
    Submitted(Submitted),
    /// All tasks are over.
    Merged(Box<merge::Summary>),
}

#[derive(Debug, Clone, Serialize)]
pub struct Submitted {
    pub n_sealed: usize,
    /// Shards that are waiting or running already.
    pub queued: String,
    /// Shards that were submitted now, and the names of the array and of the merge.
    pub submitted: Option<Job>,
}

/// What was submitted; the newest is `submission.json` in the folder of the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    pub at: String,
    pub engine: String,
    pub shards: String,
    /// The number of an array of Slurm, the name of a Job of Kubernetes.
    pub array: String,
    /// The job of Slurm that merges; none until it is submitted too, and where only the follower merges.
    pub merge: Option<String>,
}

/// What would be submitted for all shards that are not sealed.
pub fn dry_run(context: &Context, config: &Config) -> Result<Summary> {
    let plan = plan::read(&config.plan)?;
    let places = Places::new(context, config, &plan)?;
    let open = places.open(&plan, &BTreeSet::new());
    match &config.on {
        On::Slurm { options } => Ok(slurm::Slurm::new(&places, config, options)?.scripts(&open)),
        #[cfg(feature = "kubernetes")]
        On::Kubernetes(cluster) => {
            let engine = kubernetes::Kubernetes::new(&places, config, cluster, &plan)?;
            let manifest = serde_json::to_value(engine.manifest(&open, 1)?)?;
            Ok(Summary::Manifest(manifest))
        }
        #[cfg(not(feature = "kubernetes"))]
        On::Kubernetes(_) => Err(not_built()),
    }
}

/// Submits what is neither sealed nor queued, then follows until no task is left, and merges.
pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let plan = plan::read(&config.plan)?;
    let places = Places::new(context, config, &plan)?;
    let submitted = match &config.on {
        On::Slurm { options } => {
            let engine = slurm::Slurm::new(&places, config, options)?;
            evaluate::runtime(1, go(context, config, &plan, &places, &engine))
        }
        #[cfg(feature = "kubernetes")]
        On::Kubernetes(cluster) => {
            let engine = kubernetes::Kubernetes::new(&places, config, cluster, &plan)?;
            evaluate::runtime(1, go(context, config, &plan, &places, &engine))
        }
        #[cfg(not(feature = "kubernetes"))]
        On::Kubernetes(_) => Err(not_built()),
    }?;
    if let Some(submitted) = submitted {
        return Ok(Summary::Submitted(submitted));
    }
    let merge = merge::Config {
        plan: config.plan.clone(),
        folders: vec![places.folder],
        partial: false,
        run: None,
    };
    Ok(Summary::Merged(Box::new(merge::run(context, &merge)?)))
}

#[cfg(not(feature = "kubernetes"))]
fn not_built() -> Failure {
    Failure::user("this program was built without Kubernetes")
        .hint("cargo build --release --features kubernetes")
}

/// Submits what is neither sealed nor queued, and follows; what was submitted is returned when nobody is to follow.
async fn go(
    context: &Context,
    config: &Config,
    plan: &StoredPlan,
    places: &Places,
    engine: &impl Engine,
) -> Result<Option<Submitted>> {
    std::fs::create_dir_all(&places.folder).kind(Kind::Environment)?;
    let submitted = submit(context, plan, places, engine).await?;
    if config.detach {
        return Ok(Some(submitted));
    }
    tokio::select! {
        ended = follow(context, config, plan, places, engine) => ended.map(|()| None),
        _ = told_to_stop() => {
            let message = "no longer followed; the jobs go on";
            Err(Failure::new(Kind::Interrupted, message).hint(format!(
                "follow them again, here or elsewhere: pipeline submit {}",
                config.plan.display()
            )))
        }
    }
}

async fn submit<E: Engine>(
    context: &Context,
    plan: &StoredPlan,
    places: &Places,
    engine: &E,
) -> Result<Submitted> {
    let queue = engine.queue().await?;
    let open = places.open(plan, &queue.shards);
    let mut submitted = Submitted {
        n_sealed: places.n_sealed(plan),
        queued: ranges(&queue.shards.iter().copied().collect::<Vec<u32>>()),
        submitted: None,
    };
    if open.is_empty() {
        if !queue.shards.is_empty() {
            submit_lost_merge(context, places, engine, &queue).await?;
        }
        return Ok(submitted);
    }
    // That of an array which is over has a merge, and says nothing of this one.
    forget(&places.folder)?;
    let mut job = Job {
        at: context.timestamp(),
        engine: E::NAME.to_owned(),
        shards: ranges(&open),
        array: engine.submit(&open, &queue).await?,
        merge: None,
    };
    // On the disk before anything else can go wrong; whoever finds the array without it finds it by its name.
    write(&places.folder, &job)?;
    // After those that somebody else has submitted too.
    let mut arrays = queue.arrays;
    arrays.insert(job.array.clone());
    job.merge = engine.submit_merge(&arrays).await?;
    write(&places.folder, &job)?;
    context.progress.note(&format!(
        "submitted shards {} as the array {}",
        job.shards, job.array
    ));
    submitted.submitted = Some(job);
    Ok(submitted)
}

/// Submits the merge of what is queued when whoever submitted that did not come so far.
async fn submit_lost_merge<E: Engine>(
    context: &Context,
    places: &Places,
    engine: &E,
    queue: &Queue,
) -> Result<()> {
    let mut job = match read(&places.folder)? {
        Some(job) if job.merge.is_some() => return Ok(()),
        Some(job) => job,
        None => Job {
            at: context.timestamp(),
            engine: E::NAME.to_owned(),
            shards: ranges(&queue.shards.iter().copied().collect::<Vec<u32>>()),
            array: queue.arrays.last().cloned().unwrap_or_default(),
            merge: None,
        },
    };
    if let Some(merge) = engine.submit_merge(&queue.arrays).await? {
        let text = format!("submitted the merge {merge}, which was missing");
        context.progress.note(&text);
        job.merge = Some(merge);
        write(&places.folder, &job)?;
    }
    Ok(())
}

const SUBMISSION: &str = "submission.json";

fn read(folder: &Path) -> Result<Option<Job>> {
    match std::fs::read(folder.join(SUBMISSION)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).kind(Kind::Environment),
    }
}

fn forget(folder: &Path) -> Result<()> {
    match std::fs::remove_file(folder.join(SUBMISSION)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).kind(Kind::Environment),
        _ => Ok(()),
    }
}

fn write(folder: &Path, job: &Job) -> Result<()> {
    let draft = folder.join(".submission.json.new");
    let text = serde_json::to_string_pretty(job)? + "\n";
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::File::open(&draft)?.sync_data())
        .and_then(|()| std::fs::rename(&draft, folder.join(SUBMISSION)))
        .kind(Kind::Environment)
}

/// Tells what happens until no task of the plan is waiting or running.
async fn follow(
    context: &Context,
    config: &Config,
    plan: &StoredPlan,
    places: &Places,
    engine: &impl Engine,
) -> Result<()> {
    let mut told = BTreeSet::new();
    loop {
        let (words, is_over) = match engine.look().await {
            Ok(seen) => {
                let count = format!(
                    "{} of {} shards sealed, {} running, {} waiting",
                    places.n_sealed(plan),
                    places.n_shards,
                    seen.n_running,
                    seen.n_waiting
                );
                ([vec![count], seen.obstacles].concat(), seen.is_over)
            }
            Err(Blind::Forever(failure)) => return Err(failure),
            // What is being started again answers later.
            Err(Blind::Now(why)) => (vec![why], false),
        };
        for text in words {
            if told.insert(text.clone()) {
                context.progress.note(&text);
            }
        }
        if is_over {
            let open = places.open(plan, &BTreeSet::new());
            for shard in open.into_iter().take(SHOWN) {
                if let Some(words) = engine.last_words(shard) {
                    let text = format!("shard {shard} is not sealed; {words}");
                    context.progress.note(&text);
                }
            }
            return Ok(());
        }
        tokio::time::sleep(config.poll).await;
    }
}

/// Shards whose last words are told one by one.
const SHOWN: usize = 12;
