//! Plans of runs on many machines: a run's plan, the settings that decide verdicts, and which shard runs which unit, in
//! one file whose SHA-256 is carried by everything that comes after.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::runs::{Plan, Unit, hex, is_run_id};
use crate::domain::shard::ShardId;

/// What is run where, fixed before anything runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardPlan {
    pub format: u32,
    pub evidence_format: u32,
    /// The build of the program that alone runs shards; none where any build of the version may.
    pub build: Option<String>,
    /// The id of the image of Docker cells; none in another sandbox.
    pub image: Option<String>,
    pub run: Plan,
    /// What else decides verdicts, in the words of the stage that runs units.
    pub settings: Value,
    /// By shard, places of its units in [`Plan::units`], in the order in which they are started.
    pub shards: Vec<Vec<usize>>,
}

pub const SHARD_PLAN_FORMAT: u32 = 2;

/// A plan as it lies in its file.
#[derive(Debug, Clone)]
pub struct StoredPlan {
    pub plan: ShardPlan,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    units: Vec<Unit>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is no plan of shards: {message}")]
    Broken { path: PathBuf, message: String },
}

impl ShardPlan {
    /// As it is written into a file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("a plan is plain data with string keys");
        bytes.push(b'\n');
        bytes
    }

    /// SHA-256 of [`Self::bytes`], in hexadecimal.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.bytes()))
    }
}

impl StoredPlan {
    pub fn n_shards(&self) -> u32 {
        u32::try_from(self.plan.shards.len()).expect("a plan is read only if it has fewer shards")
    }

    /// All shards, the first first.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> {
        let n = self.n_shards();
        (1..=n).map(move |index| ShardId::new(index, n).expect("it is from 1 to n"))
    }

    /// Every unit of the plan, in the order of [`Plan::units`].
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Places of a shard's units in [`Self::units`], in the order in which they are started; none of a shard of another
    /// number of shards.
    pub fn places(&self, shard: ShardId) -> &[usize] {
        match shard.of() == self.n_shards() {
            true => &self.plan.shards[shard.index() as usize - 1],
            false => &[],
        }
    }

    /// The beginning of the digest, by which folders and jobs are named.
    pub fn name(&self) -> &str {
        name(&self.digest)
    }
}

/// The beginning of a digest, by which folders and jobs are named.
pub fn name(digest: &str) -> &str {
    &digest[..12]
}

/// Writes a plan, and the folder above it.
pub fn write(path: &Path, plan: &ShardPlan) -> Result<(), PlanError> {
    let write = || -> std::io::Result<()> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder)?;
        let draft = folder.join(format!(".{}.new", std::process::id()));
        let mut file = File::create(&draft)?;
        file.write_all(&plan.bytes())?;
        file.sync_data()?;
        std::fs::rename(draft, path)
    };
    write().map_err(|source| PlanError::File {
        path: path.to_path_buf(),
        source,
    })
}

/// Reads a plan. Its shards hold each unit exactly once.
pub fn read(path: &Path) -> Result<StoredPlan, PlanError> {
    let bytes = std::fs::read(path).map_err(|source| PlanError::File {
        path: path.to_path_buf(),
        source,
    })?;
    let broken = |message: String| PlanError::Broken {
        path: path.to_path_buf(),
        message,
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
    let format = value["format"].as_u64();
    if format.is_some_and(|format| format < SHARD_PLAN_FORMAT.into()) {
        return Err(broken(format!(
            "it is of an older version of pipeline (format {}, not {SHARD_PLAN_FORMAT}); plan anew with this one: \
             pipeline plan",
            value["format"]
        )));
    }
    let plan: ShardPlan =
        serde_json::from_value(value).map_err(|error| broken(error.to_string()))?;
    if plan.format != SHARD_PLAN_FORMAT {
        let message = format!("format {} is not {SHARD_PLAN_FORMAT}", plan.format);
        return Err(broken(message));
    }
    if !is_run_id(&plan.run.run) {
        return Err(broken(format!("{:?} cannot name a run", plan.run.run)));
    }
    let units: Vec<Unit> = plan.run.units().collect();
    let mut places = plan.shards.concat();
    places.sort_unstable();
    if !places.iter().copied().eq(0..units.len()) {
        let message = "its shards do not hold each unit exactly once".to_owned();
        return Err(broken(message));
    }
    if plan.shards.is_empty() || u32::try_from(plan.shards.len()).is_err() {
        return Err(broken(format!("{} shards", plan.shards.len())));
    }
    Ok(StoredPlan {
        digest: hex(&Sha256::digest(&bytes)),
        plan,
        units,
    })
}
