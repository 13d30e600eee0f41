//! Attempts at shards as others left them. Nothing of them is believed: a file that is not as an attempt of this plan
//! writes it is refused by name, with the whole attempt; links are not followed, and nothing is read without a bound.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{CLAIM, Claim, MOST_LINE_BYTES, OUTCOMES, SEAL, SHARD_FORMAT, Seal};
use crate::domain::shard::ShardId;
use crate::domain::verdict::{Outcome, Reason};
use crate::domain::visible::{shortened, visible_line};
use crate::storage::plans::StoredPlan;
use crate::storage::runs::{
    EvidenceStore, RunError, UnitOutcome, file_error, hex, is_digest, is_hex,
};

/// A claim names a few hundred candidates at most, a seal a few attempts.
const MOST_FILE_BYTES: u64 = 1 << 20;
/// So much of what a stranger's file says is shown.
const SHOWN_CHARS: usize = 300;
/// Folders below the one that is named: plan, shard, attempt, and what a CI service puts around them.
const MOST_DEPTH: usize = 6;

/// An attempt that can be believed as far as its own files go; evidence is another matter.
#[derive(Debug, Clone)]
pub struct Found {
    pub folder: PathBuf,
    pub claim: Claim,
    pub is_sealed: bool,
    /// Places of units in [`StoredPlan::units`], each once, and how they ended.
    pub outcomes: Vec<(usize, UnitOutcome)>,
}

impl Found {
    pub fn evidence(&self) -> EvidenceStore {
        EvidenceStore::below(&self.folder)
    }
}

/// What is wrong with a file of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Refusal {
    pub path: PathBuf,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display().to_string();
        let (path, why) = (visible_line(&path), visible_line(&self.why));
        let why = shortened(&why, SHOWN_CHARS);
        match self.line {
            Some(line) => write!(f, "{path}:{line}: {why}"),
            None => write!(f, "{path}: {why}"),
        }
    }
}

impl Refusal {
    fn new(path: &Path, why: impl Into<String>) -> Self {
        Self {
            path: path.to_path_buf(),
            line: None,
            why: why.into(),
        }
    }
}

/// The folders of attempts below a folder, sorted, and what can be none: links, and folders that cannot be read. A folder
/// that is not there has none.
pub fn attempts(below: &Path) -> Result<(Vec<PathBuf>, Vec<Refusal>), RunError> {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let mut folders = vec![(below.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) if depth > 0 => {
                refused.push(Refusal::new(&folder, error.to_string()));
                continue;
            }
            other => other.map_err(|source| file_error(&folder, source))?,
        };
        let mut names = Vec::new();
        let mut deeper = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| file_error(&folder, source))?;
            let kind = entry
                .file_type()
                .map_err(|source| file_error(&entry.path(), source))?;
            if kind.is_dir() {
                deeper.push((entry.path(), depth + 1));
            } else if kind.is_symlink() {
                refused.push(Refusal::new(&entry.path(), "is a link"));
            }
            names.push(entry.file_name());
        }
        if names
            .iter()
            .any(|name| name == CLAIM || name == OUTCOMES || name == SEAL)
        {
            found.push(folder);
        } else if depth < MOST_DEPTH {
            folders.append(&mut deeper);
        }
    }
    found.sort();
    refused.sort();
    Ok((found, refused))
}

/// Reads an attempt at a shard of the plan.
pub fn read(folder: &Path, plan: &StoredPlan) -> Result<Found, Refusal> {
    let path = folder.join(CLAIM);
    let refuse = |why: String| Refusal::new(&path, why);
    let value: Value = json(&path)?;
    let format = value["format"].as_u64();
    if format.is_some_and(|format| format < SHARD_FORMAT.into()) {
        return Err(refuse(format!(
            "is of an older version of pipeline (format {}, not {SHARD_FORMAT}); plan anew with this one: pipeline plan",
            value["format"]
        )));
    }
    let claim: Claim = serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    if claim.format != SHARD_FORMAT {
        let message = format!("format {} is not {SHARD_FORMAT}", claim.format);
        return Err(refuse(message));
    }
    if claim.attempt.len() != 32 || !is_hex(&claim.attempt) {
        return Err(refuse(format!("{:?} names no attempt", claim.attempt)));
    }
    let measured = &claim.measured;
    if let Some(why) = measured.difference(plan) {
        return Err(refuse(why));
    }
    if !is_build(&measured.build) {
        return Err(refuse(format!("{:?} names no build", measured.build)));
    }
    if claim.shard.of() != plan.n_shards() {
        let n = plan.n_shards();
        return Err(refuse(format!(
            "shard {} of a plan of {n} shards",
            claim.shard
        )));
    }
    for part in ["evidence", SEAL, OUTCOMES] {
        let path = folder.join(part);
        if path.is_symlink() {
            return Err(Refusal::new(&path, "is a link"));
        }
    }
    let path = folder.join(SEAL);
    let seal: Option<Seal> = path.exists().then(|| json(&path)).transpose()?;
    let log = Log::read(&folder.join(OUTCOMES), &claim, plan, seal.is_some())?;
    if let Some(seal) = &seal {
        let is_same = seal.format == SHARD_FORMAT
            && (&seal.plan, &seal.attempt, seal.shard)
                == (&measured.plan, &claim.attempt, claim.shard)
            && (seal.n_outcomes, &seal.outcomes) == (log.outcomes.len(), &log.digest);
        if !is_same {
            return Err(Refusal::new(&path, "does not seal what lies beside it"));
        }
    }
    Ok(Found {
        folder: folder.to_path_buf(),
        is_sealed: seal.is_some(),
        outcomes: log.outcomes,
        claim,
    })
}

/// Whether a text names a build of a program: `build-id:` or `sha256:` and hexadecimal digits.
fn is_build(text: &str) -> bool {
    let digits = text
        .strip_prefix("build-id:")
        .or_else(|| text.strip_prefix("sha256:"));
    digits.is_some_and(|digits| (1..=128).contains(&digits.len()) && is_hex(digits))
}

/// What attempts at a shard have finished.
#[derive(Debug, Default)]
pub struct Finished {
    /// Places of units with a valid outcome whose evidence is there.
    pub done: BTreeSet<usize>,
    /// Attempts, and how many units are taken from each.
    pub kept: BTreeMap<String, usize>,
    /// One of them was sealed.
    pub is_sealed: bool,
    pub refused: Vec<Refusal>,
}

/// Looks through all attempts at a shard, however they ended.
pub fn finished(
    folder_of_shard: &Path,
    plan: &StoredPlan,
    shard: ShardId,
) -> Result<Finished, RunError> {
    let (folders, refused) = attempts(folder_of_shard)?;
    let mut finished = Finished {
        refused,
        ..Finished::default()
    };
    for folder in folders {
        let found = match read(&folder, plan) {
            Ok(found) if found.claim.shard == shard => found,
            Ok(_) => continue,
            Err(refusal) => {
                finished.refused.push(refusal);
                continue;
            }
        };
        finished.is_sealed |= found.is_sealed;
        let evidence = found.evidence();
        for (place, unit) in &found.outcomes {
            let digest = unit.evidence.as_deref();
            if unit.outcome.is_valid()
                && digest.is_none_or(|digest| evidence.verify(digest).is_ok())
                && finished.done.insert(*place)
            {
                let n_kept = finished.kept.entry(found.claim.attempt.clone());
                *n_kept.or_default() += 1;
            }
        }
    }
    Ok(finished)
}

struct Log {
    outcomes: Vec<(usize, UnitOutcome)>,
    /// SHA-256 of the file.
    digest: String,
}

impl Log {
    /// A last line without an end was being written when its writer was killed; a sealed log has none.
    fn read(
        path: &Path,
        claim: &Claim,
        plan: &StoredPlan,
        is_sealed: bool,
    ) -> Result<Self, Refusal> {
        let mut log = Self {
            outcomes: Vec::new(),
            digest: String::new(),
        };
        if !path.exists() && !is_sealed {
            return Ok(log);
        }
        let places: BTreeMap<_, usize> = plan
            .places(claim.shard)
            .iter()
            .map(|place| (&plan.units()[*place], *place))
            .collect();
        let mut seen = BTreeSet::new();
        let mut digester = Sha256::new();
        let mut reader = BufReader::new(opened(path)?);
        for line_no in 1.. {
            let refuse = |why: String| Refusal {
                line: Some(line_no),
                ..Refusal::new(path, why)
            };
            let mut line = Vec::new();
            reader
                .by_ref()
                .take(MOST_LINE_BYTES + 1)
                .read_until(b'\n', &mut line)
                .map_err(|error| refuse(error.to_string()))?;
            if line.len() as u64 > MOST_LINE_BYTES {
                return Err(refuse(format!("is over {MOST_LINE_BYTES} bytes long")));
            }
            digester.update(&line);
            if !line.ends_with(b"\n") {
                if is_sealed && !line.is_empty() {
                    return Err(refuse("is torn".to_owned()));
                }
                break;
            }
            let unit: UnitOutcome =
                serde_json::from_slice(&line).map_err(|error| refuse(error.to_string()))?;
            let place = *places.get(&unit.unit()).ok_or_else(|| {
                let (candidate, case) = (&unit.candidate, &unit.case);
                refuse(format!(
                    "{candidate:?} {:?} is no unit of shard {}",
                    case.as_str(),
                    claim.shard
                ))
            })?;
            if !claim.measured.candidates.contains_key(&unit.candidate) {
                let why = format!("{} was not measured on the machine", unit.candidate);
                return Err(refuse(why));
            }
            if !seen.insert(place) {
                return Err(refuse(format!(
                    "{} {} is there twice",
                    unit.candidate, unit.case
                )));
            }
            check_evidence(&unit).map_err(refuse)?;
            log.outcomes.push((place, unit));
        }
        log.digest = hex(&digester.finalize());
        Ok(log)
    }
}

/// What was run has evidence, named by its digest.
fn check_evidence(unit: &UnitOutcome) -> Result<(), String> {
    let needs_none = match &unit.outcome {
        Outcome::Passed => false,
        Outcome::Failed(failure) => failure.reason == Reason::Contract,
        Outcome::Invalid(_) | Outcome::NotAsked { .. } => true,
    };
    match &unit.evidence {
        Some(digest) if !is_digest(digest) => Err(format!("{digest:?} is no digest")),
        None if !needs_none => Err(format!("{} without evidence", unit.outcome.word())),
        _ => Ok(()),
    }
}

/// A small file of JSON.
fn json<T: DeserializeOwned>(path: &Path) -> Result<T, Refusal> {
    let refuse = |why: String| Refusal::new(path, why);
    let mut text = Vec::new();
    opened(path)?
        .take(MOST_FILE_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MOST_FILE_BYTES {
        return Err(refuse(format!("is over {MOST_FILE_BYTES} bytes long")));
    }
    serde_json::from_slice(&text).map_err(|error| refuse(error.to_string()))
}

/// Opens a plain file, and nothing that blocks or leads elsewhere.
fn opened(path: &Path) -> Result<File, Refusal> {
    let refuse = |why: String| Refusal::new(path, why);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refuse("is a link".to_owned()),
            _ => refuse(error.to_string()),
        })?;
    match file.metadata() {
        Ok(about) if about.is_file() => Ok(file),
        Ok(_) => Err(refuse("is no plain file".to_owned())),
        Err(error) => Err(refuse(error.to_string())),
    }
}
