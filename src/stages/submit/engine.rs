//! What an engine does for a plan: tells which shards it has, takes more of them, and lets itself be looked at.

use std::collections::BTreeSet;

use crate::stages::{Failure, Result};

/// Something that runs shards as the tasks of arrays.
pub(super) trait Engine {
    /// As `--engine` and `submission.json` call it.
    const NAME: &'static str;

    async fn queue(&self) -> Result<Queue>;

    /// Submits shards as an array beside those of the queue, and returns its name.
    async fn submit(&self, shards: &[u32], queue: &Queue) -> Result<String>;

    /// Submits the merge that begins when these arrays are over, where the engine can.
    async fn submit_merge(&self, arrays: &BTreeSet<String>) -> Result<Option<String>>;

    async fn look(&self) -> std::result::Result<Seen, Blind>;

    /// What the newest task of a shard has said last, where it can be read when all is over.
    fn last_words(&self, shard: u32) -> Option<String>;
}

/// What an engine has of the plan.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Shards that are waiting or running.
    pub shards: BTreeSet<u32>,
    /// Names of arrays: of these shards, and of others that the engine still tells of.
    pub arrays: BTreeSet<String>,
}

/// What is seen of all tasks of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub n_running: usize,
    pub n_waiting: usize,
    /// No task will run any more.
    pub is_over: bool,
    /// What keeps tasks from running, and what to type.
    pub obstacles: Vec<String>,
}

/// Why nothing is seen.
#[derive(Debug)]
pub(super) enum Blind {
    /// The next look may see something.
    Now(String),
    Forever(Failure),
}
