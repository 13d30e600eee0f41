//! An attempt at a shard while it is written: claimed, appended to, sealed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{CLAIM, Claim, MOST_LINE_BYTES, OUTCOMES, SEAL, SHARD_FORMAT, Seal};
use crate::storage::runs::{EvidenceStore, RunError, UnitOutcome, file_error, hex};

#[derive(Debug)]
pub struct Attempt {
    folder: PathBuf,
    claim: Claim,
    log: File,
    /// Over what is in the log.
    digester: Sha256,
    n_outcomes: usize,
}

impl Attempt {
    /// Begins an attempt below the folder of its shard. Its claim is on the disk when this returns.
    pub fn begin(folder_of_shard: &Path, claim: Claim) -> Result<Self, RunError> {
        let folder = folder_of_shard.join(&claim.attempt);
        let begin = || -> std::io::Result<File> {
            std::fs::create_dir_all(folder_of_shard)?;
            std::fs::create_dir(&folder)?;
            write_whole(&folder, CLAIM, &claim)?;
            std::fs::create_dir(folder.join("evidence"))?;
            let path = folder.join(OUTCOMES);
            let log = OpenOptions::new()
                .create_new(true)
                .append(true)
                .open(path)?;
            File::open(&folder)?.sync_all()?;
            // Those above may be new too.
            for above in folder.ancestors().skip(1).take(3) {
                File::open(above)?.sync_all()?;
            }
            Ok(log)
        };
        let log = begin().map_err(|source| file_error(&folder, source))?;
        Ok(Self {
            folder,
            claim,
            log,
            digester: Sha256::new(),
            n_outcomes: 0,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn evidence(&self) -> EvidenceStore {
        EvidenceStore::below(&self.folder)
    }

    /// Appends outcomes and returns when they are on the disk. The evidence that they name is there already.
    pub fn record(&mut self, units: &[UnitOutcome]) -> Result<(), RunError> {
        let path = self.folder.join(OUTCOMES);
        let mut lines = Vec::new();
        for unit in units {
            let start = lines.len();
            serde_json::to_writer(&mut lines, unit).expect("an outcome is plain data");
            lines.push(b'\n');
            if (lines.len() - start) as u64 > MOST_LINE_BYTES {
                return Err(RunError::Broken {
                    path,
                    message: format!(
                        "the outcome of {} would be a longer line than is read",
                        unit.case
                    ),
                });
            }
        }
        self.log
            .write_all(&lines)
            .and_then(|()| self.log.sync_data())
            .map_err(|source| file_error(&path, source))?;
        self.digester.update(&lines);
        self.n_outcomes += units.len();
        Ok(())
    }

    /// Says that nothing is to come. `kept` are earlier attempts and how many units were taken from each.
    pub fn seal(self, kept: BTreeMap<String, usize>) -> Result<(), RunError> {
        let seal = Seal {
            format: SHARD_FORMAT,
            plan: self.claim.measured.plan,
            attempt: self.claim.attempt,
            shard: self.claim.shard,
            n_outcomes: self.n_outcomes,
            outcomes: hex(&self.digester.finalize()),
            kept,
        };
        write_whole(&self.folder, SEAL, &seal)
            .and_then(|()| File::open(&self.folder)?.sync_all())
            .map_err(|source| file_error(&self.folder.join(SEAL), source))
    }
}

/// Writes a file that is there whole or not at all.
fn write_whole(folder: &Path, name: &str, value: &impl Serialize) -> std::io::Result<()> {
    let draft = folder.join(format!(".{name}.new"));
    let mut file = File::create(&draft)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    file.write_all(b"\n")?;
    file.sync_data()?;
    std::fs::rename(draft, folder.join(name))
}
