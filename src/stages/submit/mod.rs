//! Gives the shards of a plan to an engine and follows them. The truth is what lies in the folders of the shards; what
//! the engine says only explains why something is not there yet. So whoever follows may leave, and anybody who sees the
//! same folders goes on.

mod script;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::interrupt::told_to_stop;
use super::{Classify, Context, Failure, Kind, Result, evaluate, merge, plan};
use crate::adapters::slurm::{self, SlurmError, Task};
use crate::domain::shard::ranges;
use crate::storage::plans::StoredPlan;
use crate::storage::shards;
use script::Scripts;

#[derive(Debug, Clone)]
pub struct Config {
    pub plan: PathBuf,
    /// Where attempts are kept; every machine must see it under this name.
    pub shards: PathBuf,
    /// Trials at the same time in a task, and cores that are asked for.
    pub cpus: u32,
    /// Options of `sbatch`.
    pub options: Vec<String>,
    /// Submit and leave.
    pub detach: bool,
    /// Between two looks.
    pub poll: Duration,
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Summary {
    /// Nothing was submitted.
    Scripts {
        array: String,
        merge: String,
    },
    Submitted(Submitted),
    /// All tasks are over.
    Merged(Box<merge::Summary>),
}

#[derive(Debug, Clone, Serialize)]
pub struct Submitted {
    pub n_sealed: usize,
    /// Shards that are waiting or running already.
    pub queued: String,
    /// Shards that were submitted now, and the numbers of the array and of the merge.
    pub submitted: Option<Job>,
}

/// What was submitted; the newest is `submission.json` in the folder of the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    pub at: String,
    pub engine: String,
    pub shards: String,
    pub array: String,
    /// None until it is submitted too.
    pub merge: Option<String>,
}

/// The scripts, as they would be submitted for all shards that are not sealed.
pub fn dry_run(context: &Context, config: &Config) -> Result<Summary> {
    let plan = plan::read(&config.plan)?;
    let places = Places::new(context, config, &plan)?;
    let scripts = places.scripts(config, &plan);
    let open = open_shards(config, &plan, &BTreeSet::new());
    Ok(Summary::Scripts {
        array: scripts.array(&ranges(&open)),
        merge: scripts.merge(&["ARRAY".to_owned()]),
    })
}

/// Submits what is neither sealed nor queued, then follows until no task is left, and merges.
pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let plan = plan::read(&config.plan)?;
    let places = Places::new(context, config, &plan)?;
    let submitted = submit(context, config, &plan, &places)?;
    if config.detach {
        return Ok(Summary::Submitted(submitted));
    }
    evaluate::runtime(1, async {
        let follow = follow(context, config, &plan, &places);
        tokio::select! {
            ended = follow => ended,
            _ = told_to_stop() => {
                let message = "no longer followed; the jobs go on";
                Err(Failure::new(Kind::Interrupted, message).hint(format!(
                    "follow them again, here or elsewhere: pipeline submit {}",
                    config.plan.display()
                )))
            }
        }
    })?;
    let merge = merge::Config {
        plan: config.plan.clone(),
        folders: vec![shards::folder_of_plan(&config.shards, &plan)],
        partial: false,
        run: None,
    };
    Ok(Summary::Merged(Box::new(merge::run(context, &merge)?)))
}

/// Paths that hold on other machines too.
struct Places {
    program: PathBuf,
    root: PathBuf,
    plan: PathBuf,
    /// Of the attempts at this plan.
    folder: PathBuf,
    logs: PathBuf,
    name: String,
}

impl Places {
    fn new(context: &Context, config: &Config, plan: &StoredPlan) -> Result<Self> {
        let folder = std::path::absolute(shards::folder_of_plan(&config.shards, plan))?;
        Ok(Self {
            program: std::env::current_exe()?,
            root: context.project.root().to_path_buf(),
            plan: std::path::absolute(&config.plan)?,
            logs: folder.join("logs"),
            folder,
            name: format!("doc2harness-{}", plan.name()),
        })
    }

    fn scripts<'a>(&'a self, config: &'a Config, plan: &StoredPlan) -> Scripts<'a> {
        Scripts {
            program: &self.program,
            root: &self.root,
            plan: &self.plan,
            shards: self
                .folder
                .parent()
                .expect("it is below the folder of shards"),
            folder: &self.folder,
            name: &self.name,
            n_shards: plan.n_shards(),
            cpus: config.cpus,
            options: &config.options,
            logs: &self.logs,
        }
    }
}

fn submit(
    context: &Context,
    config: &Config,
    plan: &StoredPlan,
    places: &Places,
) -> Result<Submitted> {
    let queued = slurm::tasks(&places.name).map_err(slurm_failure)?;
    let running: BTreeSet<u32> = queued.iter().filter_map(Task::index).collect();
    let open = open_shards(config, plan, &running);
    let n_sealed = plan.n_shards() as usize - open_shards(config, plan, &BTreeSet::new()).len();
    let mut submitted = Submitted {
        n_sealed,
        queued: ranges(&running.into_iter().collect::<Vec<u32>>()),
        submitted: None,
    };
    if open.is_empty() {
        return Ok(submitted);
    }
    std::fs::create_dir_all(&places.logs).kind(Kind::Environment)?;
    let scripts = places.scripts(config, plan);
    let shards = ranges(&open);
    let array = slurm::submit(&scripts.array(&shards)).map_err(slurm_failure)?;
    let mut job = Job {
        at: context.timestamp(),
        engine: "slurm".to_owned(),
        shards,
        array,
        merge: None,
    };
    // On the disk before anything else can go wrong; whoever finds the array without it finds it by its name.
    write(&places.folder, &job)?;
    let mut before: BTreeSet<String> = queued.iter().map(|task| task.job().to_owned()).collect();
    before.insert(job.array.clone());
    let before: Vec<String> = before.into_iter().collect();
    job.merge = Some(slurm::submit(&scripts.merge(&before)).map_err(slurm_failure)?);
    write(&places.folder, &job)?;
    context.progress.note(&format!(
        "submitted shards {} as the array {}",
        job.shards, job.array
    ));
    submitted.submitted = Some(job);
    Ok(submitted)
}

fn write(folder: &Path, job: &Job) -> Result<()> {
    let draft = folder.join(".submission.json.new");
    let text = serde_json::to_string_pretty(job)? + "\n";
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::File::open(&draft)?.sync_data())
        .and_then(|()| std::fs::rename(&draft, folder.join("submission.json")))
        .kind(Kind::Environment)
}

/// Shards that are not sealed, but for these.
fn open_shards(config: &Config, plan: &StoredPlan, but: &BTreeSet<u32>) -> Vec<u32> {
    let shards = plan.shards().filter(|shard| {
        let folder = shards::folder_of_shard(&config.shards, plan, *shard);
        !but.contains(&shard.index()) && !shards::is_sealed(&folder)
    });
    shards.map(|shard| shard.index()).collect()
}

/// Tells what happens until no task of the plan is waiting or running.
async fn follow(
    context: &Context,
    config: &Config,
    plan: &StoredPlan,
    places: &Places,
) -> Result<()> {
    let mut told = BTreeSet::new();
    loop {
        let n = plan.n_shards() as usize;
        let n_sealed = n - open_shards(config, plan, &BTreeSet::new()).len();
        let (words, is_over) = match seen(&places.name) {
            Ok(seen) => {
                let (n_running, n_waiting) = (seen.n_running, seen.n_waiting);
                let count = format!(
                    "{n_sealed} of {n} shards sealed, {n_running} running, {n_waiting} waiting"
                );
                let is_over = n_running + n_waiting == 0;
                ([vec![count], seen.obstacles].concat(), is_over)
            }
            Err(error @ SlurmError::NotThere(_)) => return Err(slurm_failure(error)),
            // A controller that is being started again answers later.
            Err(error) => (vec![error.to_string()], false),
        };
        for text in words {
            if told.insert(text.clone()) {
                context.progress.note(&text);
            }
        }
        if is_over {
            return Ok(());
        }
        tokio::time::sleep(config.poll).await;
    }
}

struct Seen {
    n_running: usize,
    n_waiting: usize,
    /// What keeps tasks from running, and what to type.
    obstacles: Vec<String>,
}

fn seen(name: &str) -> std::result::Result<Seen, SlurmError> {
    let tasks = slurm::tasks(name)?;
    let n_waiting = tasks.iter().filter(|task| task.state == "PENDING").count();
    let held = tasks.iter().filter(|task| task.is_held()).map(|task| {
        format!(
            "task {0} is held ({1}) and waits for ever; type: scontrol release {0}",
            task.id, task.reason
        )
    });
    let mut obstacles: Vec<String> = held.collect();
    if n_waiting > 0 {
        let closed = slurm::closed_nodes()?;
        obstacles.extend(closed.into_iter().map(|node| {
            format!(
                "node {0} is {1} ({2}) and takes no jobs; an administrator types: scontrol update NodeName={0} \
                 State=RESUME",
                node.node, node.state, node.reason
            )
        }));
    }
    Ok(Seen {
        n_running: tasks.len() - n_waiting,
        n_waiting,
        obstacles,
    })
}

fn slurm_failure(error: SlurmError) -> Failure {
    Failure {
        kind: Kind::Environment,
        source: error.into(),
        hints: Vec::new(),
    }
}
