//! A run's folder: a frozen plan, an append-only log of outcomes, and evidence by content.
//!
//! ```text
//! data/runs/ID/plan.json            what is run, by digest; written once, before anything runs
//! data/runs/ID/outcomes.jsonl       one line a finished unit, flushed to disk; a torn last line is ignored
//! data/runs/ID/evidence/ab/….json.gz  evidence by SHA-256 of its JSON; written before the outcome names it
//! ```
//! Verdicts are never stored: they are the gating of outcomes, computed by [`Run::verdicts`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::domain::case::{CaseId, Category};
use crate::domain::clause::{ClauseId, Scenario};
use crate::domain::evidence::Evidence;
use crate::domain::results::{CaseFacts, Facts};
use crate::domain::verdict::{Outcome, Verdict};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("there is no run {0:?}")]
    Missing(String),
    #[error("the run {0:?} is there already")]
    Exists(String),
    #[error("another process works on the run {0:?}")]
    Busy(String),
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the disk is full: {path} could not be written")]
    DiskFull { path: PathBuf },
    #[error("{path} is broken: {message}")]
    Broken { path: PathBuf, message: String },
    #[error("no evidence {digest} in {run}")]
    NoEvidence { run: String, digest: String },
}

/// Everything that a run is about, fixed before it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub format: u32,
    pub run: String,
    /// RFC 3339.
    pub created_at: String,
    pub tool_version: String,
    pub sandbox: String,
    /// Nonces are drawn from it.
    pub seed: String,
    /// Digest over the files of all cases.
    pub suite: String,
    pub candidates: Vec<PlannedCandidate>,
    /// Cases and the controls that gate them, ordered by id.
    pub cases: Vec<PlannedCase>,
}

pub const PLAN_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCandidate {
    pub name: String,
    /// Where its tree came from, as it was named: a name below `candidates/` or a path.
    pub source: String,
    /// Digest of its tree.
    pub digest: String,
}

/// What a report needs to know of a case without its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    pub id: CaseId,
    pub title: String,
    pub clause: ClauseId,
    /// None for a control.
    pub category: Option<Category>,
    pub scenario: Option<Scenario>,
    /// Ids of the controls that gate it.
    pub controls: Vec<CaseId>,
    /// Digest of its file.
    pub digest: String,
    /// Digest of its fixture and launches: evidence belongs to these.
    pub scenario_digest: String,
}

/// One finished unit: a case or control run once for a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitOutcome {
    pub candidate: String,
    pub case: CaseId,
    /// From 1; a later attempt replaces an earlier one.
    pub attempt: u32,
    pub outcome: Outcome,
    /// None when it broke before there was any.
    pub evidence: Option<String>,
    pub duration_ms: u64,
    /// Of the candidate's processes.
    pub cpu_ms: u64,
}

impl Plan {
    /// Whether a run of the one would tell what a run of the other tells.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        let about = |plan: &Self| {
            (
                plan.tool_version.clone(),
                plan.sandbox.clone(),
                plan.suite.clone(),
                plan.candidates.clone(),
                plan.cases.clone(),
            )
        };
        about(self) == about(other)
    }

    /// What tables and reports need to know of the test cases; each case is a family of its own.
    pub fn facts(&self) -> Facts {
        self.cases
            .iter()
            .filter_map(|case| {
                let facts = CaseFacts {
                    category: case.category?,
                    scenario: case.scenario.unwrap_or(Scenario::Ordinary),
                    title: case.title.clone(),
                    clause: case.clause.clone(),
                    controls: case.controls.iter().map(|id| id.name().into()).collect(),
                    family: case.id.clone(),
                };
                Some((case.id.clone(), facts))
            })
            .collect()
    }
}

/// A run that is read, or written by this process alone.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    pub plan: Plan,
    log: Option<File>,
}

impl Run {
    /// Makes the folder and freezes the plan.
    pub fn create(runs: &Path, plan: Plan) -> Result<Self, RunError> {
        let folder = runs.join(&plan.run);
        if folder.join("plan.json").exists() {
            return Err(RunError::Exists(plan.run));
        }
        let write = |folder: &Path| -> std::io::Result<()> {
            std::fs::create_dir_all(folder.join("evidence"))?;
            write_whole(
                &folder.join("plan.json"),
                &serde_json::to_vec_pretty(&plan)?,
            )
        };
        write(&folder).map_err(|source| file_error(&folder, source))?;
        Self::append_to(runs, &plan.run)
    }

    /// Opens a run for reading.
    pub fn open(runs: &Path, id: &str) -> Result<Self, RunError> {
        let plain = !id.is_empty() && !id.contains('/') && !id.starts_with('.');
        let folder = runs.join(id);
        let path = folder.join("plan.json");
        if !plain || !path.is_file() {
            return Err(RunError::Missing(id.to_owned()));
        }
        let text = std::fs::read(&path).map_err(|source| file_error(&path, source))?;
        let plan: Plan = serde_json::from_slice(&text).map_err(|error| RunError::Broken {
            path: path.clone(),
            message: error.to_string(),
        })?;
        if plan.format != PLAN_FORMAT {
            return Err(RunError::Broken {
                path,
                message: format!("format {} is not {PLAN_FORMAT}", plan.format),
            });
        }
        Ok(Self {
            folder,
            plan,
            log: None,
        })
    }

    /// Opens a run to go on with it; only one process may.
    pub fn append_to(runs: &Path, id: &str) -> Result<Self, RunError> {
        let mut run = Self::open(runs, id)?;
        let path = run.folder.join("outcomes.jsonl");
        let open = || -> std::io::Result<Option<File>> {
            let mut log = OpenOptions::new()
                .create(true)
                .read(true)
                .append(true)
                .open(&path)?;
            match log.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
            cut_torn_line(&mut log)?;
            Ok(Some(log))
        };
        match open().map_err(|source| file_error(&path, source))? {
            Some(log) => run.log = Some(log),
            None => return Err(RunError::Busy(id.to_owned())),
        }
        Ok(run)
    }

    /// Ids of all runs, oldest first by the time they were made.
    pub fn list(runs: &Path) -> Result<Vec<String>, RunError> {
        let entries = match std::fs::read_dir(runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(file_error(runs, source)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| file_error(runs, source))?;
            let id = entry.file_name().to_string_lossy().into_owned();
            if let Ok(run) = Self::open(runs, &id) {
                found.push((run.plan.created_at, id));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    pub fn id(&self) -> &str {
        &self.plan.run
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores evidence by content and returns its digest; the same evidence is stored once.
    pub fn store_evidence(&self, evidence: &Evidence) -> Result<String, RunError> {
        let json = serde_json::to_vec(evidence).map_err(|error| RunError::Broken {
            path: self.folder.clone(),
            message: error.to_string(),
        })?;
        let digest = hex(&Sha256::digest(&json));
        let path = self.evidence_path(&digest);
        if path.exists() {
            return Ok(digest);
        }
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(path.parent().expect("evidence lies in a folder"))?;
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&json)?;
            write_whole(&path, &packed.finish()?)
        };
        write().map_err(|source| file_error(&path, source))?;
        Ok(digest)
    }

    pub fn evidence(&self, digest: &str) -> Result<Evidence, RunError> {
        let plain = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = self.evidence_path(if plain { digest } else { "none" });
        let packed = std::fs::read(&path).map_err(|_| RunError::NoEvidence {
            run: self.plan.run.clone(),
            digest: digest.to_owned(),
        })?;
        let broken = |message: String| RunError::Broken {
            path: path.clone(),
            message,
        };
        let mut json = Vec::new();
        GzDecoder::new(&packed[..])
            .read_to_end(&mut json)
            .map_err(|error| broken(error.to_string()))?;
        if hex(&Sha256::digest(&json)) != digest {
            return Err(broken("its content does not have this digest".to_owned()));
        }
        serde_json::from_slice(&json).map_err(|error| broken(error.to_string()))
    }

    /// Appends an outcome and returns when it is on the disk. The evidence it names is there already.
    pub fn record(&mut self, unit: &UnitOutcome) -> Result<(), RunError> {
        let path = self.folder.join("outcomes.jsonl");
        let log = self
            .log
            .as_mut()
            .expect("only a run opened for appending records");
        let mut line = serde_json::to_vec(unit).map_err(|error| RunError::Broken {
            path: path.clone(),
            message: error.to_string(),
        })?;
        line.push(b'\n');
        log.write_all(&line)
            .and_then(|()| log.sync_data())
            .map_err(|source| file_error(&path, source))
    }

    /// The last outcome of each unit, ordered by candidate and case.
    pub fn outcomes(&self) -> Result<Vec<UnitOutcome>, RunError> {
        let path = self.folder.join("outcomes.jsonl");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(file_error(&path, source)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut last: BTreeMap<(String, CaseId), UnitOutcome> = BTreeMap::new();
        for (idx, line) in whole.lines().enumerate() {
            let unit: UnitOutcome =
                serde_json::from_str(line).map_err(|error| RunError::Broken {
                    path: path.clone(),
                    message: format!("line {}: {error}", idx + 1),
                })?;
            last.insert((unit.candidate.clone(), unit.case.clone()), unit);
        }
        Ok(last.into_values().collect())
    }

    /// The gated verdicts of all cases whose own outcome and whose controls' outcomes are there.
    ///
    /// Ordered by candidate as planned, then by case. A case whose controls are not all run yet has no verdict.
    pub fn verdicts(&self) -> Result<Vec<Verdict>, RunError> {
        let outcomes: BTreeMap<(String, CaseId), Outcome> = self
            .outcomes()?
            .into_iter()
            .map(|unit| ((unit.candidate, unit.case), unit.outcome))
            .collect();
        let mut verdicts = Vec::new();
        for candidate in &self.plan.candidates {
            let outcome = |case: &CaseId| outcomes.get(&(candidate.name.clone(), case.clone()));
            for case in self
                .plan
                .cases
                .iter()
                .filter(|case| case.category.is_some())
            {
                let controls: Option<Vec<(String, Outcome)>> = case
                    .controls
                    .iter()
                    .map(|id| Some((id.name().to_owned(), outcome(id)?.clone())))
                    .collect();
                if let (Some(own), Some(controls)) = (outcome(&case.id), controls) {
                    let verdict = Verdict::gated(&candidate.name, &case.id, own.clone(), controls);
                    verdicts.push(verdict);
                }
            }
        }
        Ok(verdicts)
    }

    /// Units of the plan without an outcome, or with one that is to be tried again.
    pub fn missing(&self) -> Result<Vec<(String, CaseId)>, RunError> {
        let done: BTreeSet<(String, CaseId)> = self
            .outcomes()?
            .into_iter()
            .filter(|unit| !matches!(unit.outcome, Outcome::Invalid(_)))
            .map(|unit| (unit.candidate, unit.case))
            .collect();
        let units = self.plan.candidates.iter().flat_map(|candidate| {
            self.plan
                .cases
                .iter()
                .map(|case| (candidate.name.clone(), case.id.clone()))
        });
        Ok(units.filter(|unit| !done.contains(unit)).collect())
    }

    fn evidence_path(&self, digest: &str) -> PathBuf {
        let shelf = digest.get(..2).unwrap_or("no");
        self.folder
            .join("evidence")
            .join(shelf)
            .join(format!("{digest}.json.gz"))
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file so that it is there whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().expect("a file lies in a folder");
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path)?;
    Ok(())
}

/// A crash can leave half a line at the end; it was never promised to anybody.
fn cut_torn_line(log: &mut File) -> std::io::Result<()> {
    let mut text = Vec::new();
    log.seek(SeekFrom::Start(0))?;
    log.read_to_end(&mut text)?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    if whole < text.len() {
        log.set_len(whole as u64)?;
    }
    Ok(())
}

fn file_error(path: &Path, source: std::io::Error) -> RunError {
    let path = path.to_path_buf();
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            RunError::DiskFull { path }
        }
        _ => RunError::File { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::Bindings;
    use crate::domain::evidence::EVIDENCE_FORMAT;
    use crate::domain::verdict::Reason;

    fn plan() -> Plan {
        let case = |id: &str, category, controls: &[&str]| PlannedCase {
            id: CaseId::new(id),
            title: id.into(),
            clause: "tools.read.range".parse().expect("a clause id"),
            category,
            scenario: None,
            controls: controls.iter().map(|id| CaseId::new(*id)).collect(),
            digest: "d".into(),
            scenario_digest: "d".into(),
        };
        Plan {
            format: PLAN_FORMAT,
            run: "r".into(),
            created_at: "2026-12-01T00:00:00Z".into(),
            tool_version: "0".into(),
            sandbox: "namespace".into(),
            seed: "s".into(),
            suite: "s".into(),
            candidates: vec![PlannedCandidate {
                name: "a".into(),
                source: "a".into(),
                digest: "d".into(),
            }],
            cases: vec![
                case("controls/c", None, &[]),
                case("headless/x", Some(Category::Headless), &["controls/c"]),
            ],
        }
    }

    fn unit(case: &str, outcome: Outcome) -> UnitOutcome {
        UnitOutcome {
            candidate: "a".into(),
            case: CaseId::new(case),
            attempt: 1,
            outcome,
            evidence: None,
            duration_ms: 1,
            cpu_ms: 1,
        }
    }

    #[test]
    fn a_torn_line_is_cut_and_the_run_goes_on() {
        let runs = tempfile::tempdir().expect("a folder");
        let mut run = Run::create(runs.path(), plan()).expect("creates");
        run.record(&unit("headless/x", Outcome::Passed))
            .expect("records");
        drop(run);
        let path = runs.path().join("r/outcomes.jsonl");
        let mut text = std::fs::read_to_string(&path).expect("reads");
        text.push_str("{\"candidate\":\"a\",\"ca");
        std::fs::write(&path, text).expect("writes");

        let run = Run::open(runs.path(), "r").expect("opens");
        assert_eq!(run.outcomes().expect("reads").len(), 1);
        let mut run = Run::append_to(runs.path(), "r").expect("opens");
        assert_eq!(
            run.missing().expect("reads"),
            [("a".into(), CaseId::new("controls/c"))]
        );
        assert!(
            run.verdicts().expect("reads").is_empty(),
            "its control is not run yet"
        );
        run.record(&unit("controls/c", Outcome::failed(Reason::Assertion)))
            .expect("records");
        let verdicts = run.verdicts().expect("reads");
        assert_eq!(verdicts[0].outcome.reason(), "control");
    }

    #[test]
    fn only_one_process_appends() {
        let runs = tempfile::tempdir().expect("a folder");
        let _run = Run::create(runs.path(), plan()).expect("creates");
        assert!(matches!(
            Run::append_to(runs.path(), "r"),
            Err(RunError::Busy(_))
        ));
        assert!(matches!(
            Run::create(runs.path(), plan()),
            Err(RunError::Exists(_))
        ));
        assert!(matches!(
            Run::open(runs.path(), "../r"),
            Err(RunError::Missing(_))
        ));
    }

    #[test]
    fn evidence_is_kept_by_content() {
        let runs = tempfile::tempdir().expect("a folder");
        let run = Run::create(runs.path(), plan()).expect("creates");
        let evidence = Evidence {
            format: EVIDENCE_FORMAT,
            case: CaseId::new("headless/x"),
            bindings: Bindings::default(),
            launches: vec![],
            files_before: BTreeMap::new(),
            files_after: BTreeMap::new(),
            files_cut: false,
        };
        let digest = run.store_evidence(&evidence).expect("stores");
        assert_eq!(run.store_evidence(&evidence).expect("stores"), digest);
        assert_eq!(run.evidence(&digest).expect("reads"), evidence);
        assert!(matches!(
            run.evidence("../../x"),
            Err(RunError::NoEvidence { .. })
        ));
        std::fs::write(run.evidence_path(&digest), b"x").expect("writes");
        assert!(matches!(
            run.evidence(&digest),
            Err(RunError::Broken { .. })
        ));
    }
}
