//! Where a plan and what its shards leave lie, in paths that hold on other machines too.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Config;
use super::script::quoted;
use crate::stages::{Context, Result};
use crate::storage::plans::StoredPlan;
use crate::storage::shards;

pub(super) struct Places {
    pub root: PathBuf,
    pub plan: PathBuf,
    /// Of the attempts at all plans, and of those at this one.
    pub shards: PathBuf,
    pub folder: PathBuf,
    /// By which arrays are found again.
    pub name: String,
    pub n_shards: u32,
}

impl Places {
    pub fn new(context: &Context, config: &Config, plan: &StoredPlan) -> Result<Self> {
        let shards = std::path::absolute(&config.shards)?;
        Ok(Self {
            root: context.project.root().to_path_buf(),
            plan: std::path::absolute(&config.plan)?,
            folder: shards::folder_of_plan(&shards, plan),
            shards,
            name: format!("doc2harness-{}", plan.name()),
            n_shards: plan.n_shards(),
        })
    }

    /// Shards that are not sealed, but for these.
    pub fn open(&self, plan: &StoredPlan, but: &BTreeSet<u32>) -> Vec<u32> {
        let shards = plan.shards().filter(|shard| {
            let folder = shards::folder_of_shard(&self.shards, plan, *shard);
            !but.contains(&shard.index()) && !shards::is_sealed(&folder)
        });
        shards.map(|shard| shard.index()).collect()
    }

    /// Where the output of jobs of Slurm goes.
    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// The words of `pipeline` that run a shard, whose number a shell fills in.
    pub fn evaluate(&self, number: &str, cpus: u32) -> String {
        format!(
            "evaluate --plan {} --shard \"{number}/{}\" --shards {} --jobs {cpus}",
            quoted(&self.plan),
            self.n_shards,
            quoted(&self.shards)
        )
    }

    pub fn n_sealed(&self, plan: &StoredPlan) -> usize {
        self.n_shards as usize - self.open(plan, &BTreeSet::new()).len()
    }
}
