//! What the machines that run a plan leave: a folder for each attempt at a shard, appended to and then sealed.
//!
//! ```text
//! data/shards/PLAN/3-of-8/ATTEMPT/claim.json      what was measured on the machine; there before anything else
//! data/shards/PLAN/3-of-8/ATTEMPT/outcomes.jsonl  one line a finished unit, flushed to disk
//! data/shards/PLAN/3-of-8/ATTEMPT/evidence/ab/…   evidence by content, written before the line that names it
//! data/shards/PLAN/3-of-8/ATTEMPT/seal.json       nothing is to come; written last of all
//! ```
//! Attempts have random names and know nothing of each other, so two of the same shard, on two machines of which each
//! believes that the other one is dead, do no harm. There is no lock, which a shared disk would not keep anyway.

mod attempt;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use attempt::Attempt;
pub use read::{Finished, Found, Refusal, attempts, finished, read};

use super::plans::{ShardPlan, StoredPlan};
use crate::domain::shard::ShardId;

pub const SHARD_FORMAT: u32 = 2;

const CLAIM: &str = "claim.json";
const OUTCOMES: &str = "outcomes.jsonl";
const SEAL: &str = "seal.json";
/// A longer line is nobody's outcome.
const MOST_LINE_BYTES: u64 = 1 << 20;

/// What an attempt says of itself before it runs anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub format: u32,
    /// Its name: 32 hexadecimal digits, drawn at random.
    pub attempt: String,
    pub shard: ShardId,
    pub measured: Measured,
    pub machine: Machine,
}

/// What verdicts depend on, as it was found on the machine; nothing of it is copied from the plan but its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    pub plan: String,
    pub tool_version: String,
    pub build: String,
    pub evidence_format: u32,
    pub sandbox: String,
    /// The id of the image of Docker cells.
    pub image: Option<String>,
    /// Digest over the cases of the plan.
    pub suite: String,
    /// Digests of the trees of the shard's candidates.
    pub candidates: BTreeMap<String, String>,
}

/// Where and when; no result depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub host: String,
    pub kernel: String,
    pub pid: u32,
    /// RFC 3339, by the machine's own clock.
    pub started_at: String,
    /// What the engine that started it says: job, task, restarts.
    pub engine: BTreeMap<String, String>,
}

/// That an attempt is over, and that every unit of its shard has a valid outcome, here or in an earlier attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    format: u32,
    plan: String,
    attempt: String,
    shard: ShardId,
    n_outcomes: usize,
    /// SHA-256 of `outcomes.jsonl`.
    outcomes: String,
    /// Earlier attempts, and how many units were taken from each.
    kept: BTreeMap<String, usize>,
}

/// Where the attempts at a plan lie.
pub fn folder_of_plan(shards: &Path, plan: &StoredPlan) -> PathBuf {
    shards.join(plan.name())
}

/// Where the attempts at a shard lie.
pub fn folder_of_shard(shards: &Path, plan: &StoredPlan, shard: ShardId) -> PathBuf {
    folder_of_plan(shards, plan).join(shard.folder())
}

/// Whether an attempt at a shard left a seal. What it seals is looked at by whoever merges.
pub fn is_sealed(folder_of_shard: &Path) -> bool {
    let attempts = std::fs::read_dir(folder_of_shard).into_iter().flatten();
    attempts.flatten().any(|entry| {
        let seal = entry.path().join(SEAL).symlink_metadata();
        seal.is_ok_and(|about| about.is_file())
    })
}

impl Measured {
    /// What differs from a plan, in words; none when nothing does.
    pub fn difference(&self, plan: &StoredPlan) -> Option<String> {
        let ShardPlan {
            evidence_format,
            build,
            image,
            run,
            ..
        } = &plan.plan;
        let differs = |what: &str, wanted: &str, found: &str| {
            (wanted != found).then(|| format!("{what} is {found}, the plan has {wanted}"))
        };
        let or_none = |image: &Option<String>| image.clone().unwrap_or_else(|| "none".to_owned());
        differs("the plan", &plan.digest, &self.plan)
            .or_else(|| {
                let what = "the version of pipeline";
                differs(what, &run.tool_version, &self.tool_version)
            })
            .or_else(|| {
                let wanted = build.as_ref()?;
                differs("the build of pipeline", wanted, &self.build)
            })
            .or_else(|| {
                let (wanted, found) = (evidence_format, self.evidence_format);
                differs(
                    "the format of evidence",
                    &wanted.to_string(),
                    &found.to_string(),
                )
            })
            .or_else(|| differs("the sandbox", &run.sandbox, &self.sandbox))
            .or_else(|| differs("the image", &or_none(image), &or_none(&self.image)))
            .or_else(|| differs("the suite", &run.suite, &self.suite))
            .or_else(|| {
                self.candidates.iter().find_map(|(name, found)| {
                    let planned = run.candidates.iter().find(|planned| planned.name == *name);
                    match planned {
                        Some(planned) => {
                            differs(&format!("the candidate {name}"), &planned.digest, found)
                        }
                        None => Some(format!("the plan has no candidate {name:?}")),
                    }
                })
            })
    }
}
