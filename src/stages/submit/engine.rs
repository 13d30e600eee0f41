//! What an engine does for a plan: tells which shards it has, takes more of them, and lets itself be looked at.

use std::collections::BTreeSet;

use crate::stages::{Failure, Result};

/// Something that runs shards as the tasks of arrays.
pub(super) trait Engine {
    /// As `--engine` and `submission.json` call it.
    const NAME: &'static str;

    /// Shards that are waiting or running.
    async fn queued(&self) -> Result<BTreeSet<u32>>;

    /// Submits shards as an array, and returns its name.
    async fn submit(&self, shards: &[u32]) -> Result<String>;

    /// Submits the merge that begins when all arrays are over, where the engine can.
    async fn submit_merge(&self, array: &str) -> Result<Option<String>>;

    async fn look(&self) -> std::result::Result<Seen, Blind>;

    /// What the newest task of a shard has said last, where it can be read when all is over.
    fn last_words(&self, shard: u32) -> Option<String>;
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
