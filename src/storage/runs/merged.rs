//! Runs that were merged from the shards of a plan: the stamp that says so, and writing one, which appears whole.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use serde::{Deserialize, Serialize};

use super::{DRAFT, EvidenceStore, Plan, RunError, UnitOutcome, file_error, locked};

/// `merged.json`. Nothing in it depends on when, where or in which order the merge was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merged {
    pub format: u32,
    /// Digest of the plan.
    pub plan: String,
    /// Units without an outcome. A run with some is ranked by nobody.
    pub n_missing: usize,
    /// Units that ended differently on several machines.
    pub n_unstable: usize,
    /// Units that several attempts ran, and how many of these ended alike.
    pub n_repeated: usize,
    pub n_agreed: usize,
    /// Attempts of which outcomes were taken.
    pub attempts: BTreeSet<String>,
    /// Builds of the program that made these outcomes; older runs lack it.
    #[serde(default)]
    pub builds: BTreeSet<String>,
}

pub const MERGED_FORMAT: u32 = 1;

/// What became of the folder of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stored {
    New,
    /// It took the place of an earlier merge of the same plan.
    Replaced,
    /// It was there already, the same to the byte.
    Same,
}

const STAMP: &str = "merged.json";

pub(super) fn read(folder: &Path) -> Result<Option<Merged>, RunError> {
    let path = folder.join(STAMP);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(file_error(&path, source)),
    };
    let merged: Merged = serde_json::from_slice(&text).map_err(|error| RunError::Broken {
        path: path.clone(),
        message: error.to_string(),
    })?;
    match merged.format {
        MERGED_FORMAT => Ok(Some(merged)),
        format => Err(RunError::Broken {
            path,
            message: format!("format {format} is not {MERGED_FORMAT}"),
        }),
    }
}

/// Writes a merged run. `evidence` says where each digest that the outcomes name is kept.
///
/// Another merge of the same plan is replaced, unless it has more units; a run that is something else is not touched.
pub fn store_merged(
    runs: &Path,
    plan: &Plan,
    merged: &Merged,
    outcomes: &[UnitOutcome],
    evidence: &[(EvidenceStore, String)],
) -> Result<Stored, RunError> {
    let folder = runs.join(&plan.run);
    let mut lines = Vec::new();
    for unit in outcomes {
        serde_json::to_writer(&mut lines, unit).expect("an outcome is plain data");
        lines.push(b'\n');
    }
    let files = [
        ("plan.json", json(plan)),
        ("outcomes.jsonl", lines),
        (STAMP, json(merged)),
    ];
    let failed = |source| file_error(&folder, source);
    let _lock = locked(runs).map_err(failed)?;
    let is_there = folder.exists();
    if is_there {
        match read(&folder)? {
            // What is whole is not given up for a part.
            Some(old) if old.plan == merged.plan && old.n_missing >= merged.n_missing => {}
            _ => return Err(RunError::Exists(plan.run.clone())),
        }
        let kept = EvidenceStore::below(&folder);
        let is_same = files
            .iter()
            .all(|(name, bytes)| std::fs::read(folder.join(name)).is_ok_and(|old| old == *bytes))
            && evidence
                .iter()
                .all(|(_, digest)| kept.verify(digest).is_ok());
        if is_same {
            return Ok(Stored::Same);
        }
    }
    let draft = runs.join(DRAFT);
    let write = || -> std::io::Result<()> {
        if draft.exists() {
            std::fs::remove_dir_all(&draft)?;
        }
        std::fs::create_dir_all(draft.join("evidence"))?;
        let store = EvidenceStore::below(&draft);
        for (from, digest) in evidence {
            store.take(from, digest)?;
        }
        for (name, bytes) in &files {
            File::create(draft.join(name))?.write_all(bytes)?;
        }
        // One flush for all files.
        nix::unistd::syncfs(File::open(&draft)?)?;
        if !is_there {
            return std::fs::rename(&draft, &folder);
        }
        let exchanged = renameat2(
            AT_FDCWD,
            &draft,
            AT_FDCWD,
            &folder,
            RenameFlags::RENAME_EXCHANGE,
        );
        if exchanged.is_err() {
            // A file system that cannot do it in one step.
            std::fs::remove_dir_all(&folder)?;
            return std::fs::rename(&draft, &folder);
        }
        std::fs::remove_dir_all(&draft)
    };
    write().map_err(failed)?;
    Ok(match is_there {
        true => Stored::Replaced,
        false => Stored::New,
    })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("it is plain data with string keys");
    bytes.push(b'\n');
    bytes
}
