//! Slurm as an engine: an array with a task a shard, and a job that merges after it.

use std::collections::BTreeSet;

use super::engine::{Blind, Engine, Queue, Seen};
use super::places::Places;
use super::script::Scripts;
use super::{Config, Summary, logs};
use crate::adapters::slurm::{self, SlurmError, Task};
use crate::domain::shard::ranges;
use crate::stages::{Classify, Failure, Kind, Result};

pub(super) struct Slurm<'a> {
    places: &'a Places,
    scripts: Scripts<'a>,
}

impl<'a> Slurm<'a> {
    pub fn new(places: &'a Places, config: &Config, options: &'a [String]) -> Result<Self> {
        let scripts = Scripts {
            program: std::env::current_exe()?,
            places,
            cpus: config.cpus,
            options,
        };
        Ok(Self { places, scripts })
    }

    /// What would be submitted for these shards.
    pub fn scripts(&self, open: &[u32]) -> Summary {
        Summary::Scripts {
            array: self.scripts.array(&ranges(open)),
            merge: self.scripts.merge(["ARRAY"]),
        }
    }

    fn tasks(&self) -> std::result::Result<Vec<Task>, SlurmError> {
        slurm::tasks(&self.places.name)
    }

    fn seen(&self) -> std::result::Result<Seen, SlurmError> {
        let tasks = self.tasks()?;
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
                    "node {0} is {1} ({2}) and takes no jobs; an administrator types: scontrol update \
                     NodeName={0} State=RESUME",
                    node.node, node.state, node.reason
                )
            }));
        }
        Ok(Seen {
            n_running: tasks.len() - n_waiting,
            n_waiting,
            is_over: tasks.is_empty(),
            obstacles,
        })
    }
}

impl Engine for Slurm<'_> {
    const NAME: &'static str = "slurm";

    async fn queue(&self) -> Result<Queue> {
        let tasks = self.tasks().map_err(failure)?;
        Ok(Queue {
            shards: tasks.iter().filter_map(Task::index).collect(),
            arrays: tasks.iter().map(|task| task.job().to_owned()).collect(),
        })
    }

    async fn submit(&self, shards: &[u32], _queue: &Queue) -> Result<String> {
        std::fs::create_dir_all(self.places.logs()).kind(Kind::Environment)?;
        slurm::submit(&self.scripts.array(&ranges(shards))).map_err(failure)
    }

    async fn submit_merge(&self, arrays: &BTreeSet<String>) -> Result<Option<String>> {
        let script = self.scripts.merge(arrays.iter().map(String::as_str));
        let merge = slurm::submit(&script).map_err(failure)?;
        Ok(Some(merge))
    }

    async fn look(&self) -> std::result::Result<Seen, Blind> {
        self.seen().map_err(|error| match error {
            SlurmError::NotThere(_) => Blind::Forever(failure(error)),
            // A controller that is being started again answers later.
            error => Blind::Now(error.to_string()),
        })
    }

    fn last_words(&self, shard: u32) -> Option<String> {
        let (log, words) = logs::last_words(&self.places.logs(), shard)?;
        let log = log.strip_prefix(&self.places.root).unwrap_or(&log);
        Some(format!("{} ends: {words}", log.display()))
    }
}

fn failure(error: SlurmError) -> Failure {
    Failure {
        kind: Kind::Environment,
        source: error.into(),
        hints: Vec::new(),
    }
}
