//! A run's folder: a frozen plan, an append-only log of outcomes, and evidence by content.
//!
//! ```text
//! data/runs/ID/plan.json            what is run, by digest; written once, before anything runs
//! data/runs/ID/outcomes.jsonl       one line a finished unit, flushed to disk; a torn last line is ignored
//! data/runs/ID/evidence/ab/….json.gz  evidence by SHA-256 of its JSON; written before the outcome names it
//! data/runs/ID/merged.json          of a run that was merged from shards: from which plan, and whether anything is missing
//! ```
//! The folder appears at once with its plan in it, so a kill leaves a whole run or none. Verdicts are never stored:
//! they are the gating of outcomes, computed by [`Run::verdicts`].

mod evidence;
mod merged;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub use evidence::{EvidenceStore, is_digest, is_hex};
pub use merged::{MERGED_FORMAT, Merged, Stored, store_merged};
pub use plan::{PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Unit, UnitOutcome};

use crate::domain::case::CaseId;
use crate::domain::evidence::Evidence;
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
    #[error("no evidence {digest} in {folder}")]
    NoEvidence { folder: PathBuf, digest: String },
}

/// A run that is read, or written by this process alone.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    pub plan: Plan,
    /// Where it was merged from; none of a run of one machine.
    pub merged: Option<Merged>,
    log: Option<File>,
}

/// A run that is being made, below the folder of runs. Whoever holds [`LOCK`] makes one, so another one's is dead.
const DRAFT: &str = ".new";
const LOCK: &str = ".lock";

impl Run {
    /// Freezes the plan in a folder that appears whole or not at all.
    pub fn create(runs: &Path, plan: Plan) -> Result<Self, RunError> {
        let make = || -> std::io::Result<bool> {
            let _lock = locked(runs)?;
            let folder = runs.join(&plan.run);
            if folder.exists() {
                return Ok(false);
            }
            let draft = runs.join(DRAFT);
            if draft.exists() {
                std::fs::remove_dir_all(&draft)?;
            }
            std::fs::create_dir_all(draft.join("evidence"))?;
            let mut file = File::create(draft.join("plan.json"))?;
            file.write_all(&serde_json::to_vec_pretty(&plan)?)?;
            file.sync_data()?;
            std::fs::rename(draft, folder)?;
            Ok(true)
        };
        match make().map_err(|source| file_error(&runs.join(&plan.run), source))? {
            true => Self::append_to(runs, &plan.run),
            false => Err(RunError::Exists(plan.run)),
        }
    }

    /// Removes a run that a killed process was making. Returns whether there was one.
    pub fn sweep(runs: &Path) -> Result<bool, RunError> {
        let draft = runs.join(DRAFT);
        let remove = || -> std::io::Result<bool> {
            let _lock = locked(runs)?;
            if draft.exists() {
                std::fs::remove_dir_all(&draft)?;
                return Ok(true);
            }
            Ok(false)
        };
        match draft.exists() {
            true => remove().map_err(|source| file_error(&draft, source)),
            false => Ok(false),
        }
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
            merged: merged::read(&folder)?,
            folder,
            plan,
            log: None,
        })
    }

    /// Opens a run to go on with it; only one process may. What a killed process left half written is removed.
    pub fn append_to(runs: &Path, id: &str) -> Result<Self, RunError> {
        let mut run = Self::open(runs, id)?;
        let path = run.log_path();
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
            run.evidence().sweep()?;
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

    pub fn evidence(&self) -> EvidenceStore {
        EvidenceStore::below(&self.folder)
    }

    pub fn store_evidence(&self, evidence: &Evidence) -> Result<String, RunError> {
        self.evidence().store(evidence)
    }

    /// Appends outcomes and returns when they are on the disk. The evidence that they name is there already.
    pub fn record(&mut self, units: &[UnitOutcome]) -> Result<(), RunError> {
        if units.is_empty() {
            return Ok(());
        }
        let path = self.log_path();
        let log = self
            .log
            .as_mut()
            .expect("only a run opened for appending records");
        let mut lines = Vec::new();
        for unit in units {
            serde_json::to_writer(&mut lines, unit).map_err(|error| RunError::Broken {
                path: path.clone(),
                message: error.to_string(),
            })?;
            lines.push(b'\n');
        }
        log.write_all(&lines)
            .and_then(|()| log.sync_data())
            .map_err(|source| file_error(&path, source))
    }

    /// The last outcome of each unit, ordered by candidate, case and repetition.
    pub fn outcomes(&self) -> Result<Vec<UnitOutcome>, RunError> {
        let path = self.log_path();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(file_error(&path, source)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut last: BTreeMap<Unit, UnitOutcome> = BTreeMap::new();
        for (idx, line) in whole.lines().enumerate() {
            let unit: UnitOutcome =
                serde_json::from_str(line).map_err(|error| RunError::Broken {
                    path: path.clone(),
                    message: format!("line {}: {error}", idx + 1),
                })?;
            last.insert(unit.unit(), unit);
        }
        Ok(last.into_values().collect())
    }

    /// The gated verdicts of all cases whose own outcomes and whose controls' outcomes are there.
    ///
    /// Ordered by candidate as planned, then by case. A case whose controls are not all run yet has no verdict, nor one
    /// of which a repetition is missing.
    pub fn verdicts(&self) -> Result<Vec<Verdict>, RunError> {
        let outcomes: BTreeMap<Unit, Outcome> = self
            .outcomes()?
            .into_iter()
            .map(|unit| (unit.unit(), unit.outcome))
            .collect();
        let tests = || {
            self.plan
                .cases
                .iter()
                .filter(|case| case.category.is_some())
        };
        let mut verdicts = Vec::new();
        for candidate in &self.plan.candidates {
            for case in tests() {
                let gated = (1..=self.plan.repeat).map(|repetition| {
                    let outcome = |case: &CaseId| {
                        outcomes.get(&Unit {
                            candidate: candidate.name.clone(),
                            case: case.clone(),
                            repetition,
                        })
                    };
                    let controls: Option<Vec<(String, Outcome)>> = case
                        .controls
                        .iter()
                        .map(|id| Some((id.name().to_owned(), outcome(id)?.clone())))
                        .collect();
                    let own = outcome(&case.id)?.clone();
                    Some(Verdict::gated(&candidate.name, &case.id, own, controls?))
                });
                if let Some(gated) = gated.collect::<Option<Vec<Verdict>>>() {
                    verdicts.extend(Verdict::of_repetitions(gated));
                }
            }
        }
        Ok(verdicts)
    }

    /// Units of the plan without an outcome, or with one that is to be tried again.
    pub fn missing(&self) -> Result<Vec<Unit>, RunError> {
        let done: BTreeSet<Unit> = self
            .outcomes()?
            .into_iter()
            .filter(|unit| unit.outcome.is_valid())
            .map(|unit| unit.unit())
            .collect();
        let units = self.plan.units();
        Ok(units.filter(|unit| !done.contains(unit)).collect())
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("outcomes.jsonl")
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text can name a run: it names a folder, and no path.
pub fn is_run_id(text: &str) -> bool {
    !(text.is_empty() || text.starts_with('.') || text.contains(['/', '\0']))
}

/// Waits until no other process makes a run.
fn locked(runs: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(runs)?;
    let lock = File::create(runs.join(LOCK))?;
    lock.lock()?;
    Ok(lock)
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

pub(super) fn file_error(path: &Path, source: std::io::Error) -> RunError {
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
    use crate::domain::case::{Bindings, Category};
    use crate::domain::evidence::EVIDENCE_FORMAT;
    use crate::domain::verdict::Reason;

    fn plan() -> Plan {
        let case = |id: &str, category, controls: &[&str]| PlannedCase {
            id: CaseId::new(id),
            title: id.into(),
            clause: "tools.read.range".parse().expect("a clause id"),
            category,
            scenario: None,
            family: None,
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
            repeat: 1,
            candidates: vec![PlannedCandidate {
                name: "a".into(),
                source: "a".into(),
                digest: "d".into(),
            }],
            cases: vec![
                case("controls/c", None, &[]),
                case("headless/x", Some(Category::Headless), &["controls/c"]),
            ],
            clauses: BTreeMap::new(),
        }
    }

    fn unit(case: &str, outcome: Outcome) -> UnitOutcome {
        UnitOutcome {
            candidate: "a".into(),
            case: CaseId::new(case),
            repetition: 1,
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
        run.record(&[unit("headless/x", Outcome::Passed)])
            .expect("records");
        drop(run);
        let path = runs.path().join("r/outcomes.jsonl");
        let mut text = std::fs::read_to_string(&path).expect("reads");
        text.push_str("{\"candidate\":\"a\",\"ca");
        std::fs::write(&path, text).expect("writes");

        let run = Run::open(runs.path(), "r").expect("opens");
        assert_eq!(run.outcomes().expect("reads").len(), 1);
        let mut run = Run::append_to(runs.path(), "r").expect("opens");
        let missing = run.missing().expect("reads");
        assert_eq!(missing, [unit("controls/c", Outcome::Passed).unit()]);
        assert!(
            run.verdicts().expect("reads").is_empty(),
            "its control is not run yet"
        );
        run.record(&[unit("controls/c", Outcome::failed(Reason::Assertion))])
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
    fn repetitions_that_disagree_are_flaky_and_one_that_lacks_leaves_no_verdict() {
        let runs = tempfile::tempdir().expect("a folder");
        let mut twice = plan();
        twice.repeat = 2;
        let mut run = Run::create(runs.path(), twice).expect("creates");
        let at = |case: &str, repetition: u32, outcome: Outcome| UnitOutcome {
            repetition,
            ..unit(case, outcome)
        };
        let failed = Outcome::failed(Reason::Assertion);
        run.record(&[
            at("controls/c", 1, Outcome::Passed),
            at("controls/c", 2, Outcome::Passed),
            at("headless/x", 1, Outcome::Passed),
        ])
        .expect("records");
        assert!(run.verdicts().expect("reads").is_empty());
        run.record(&[at("headless/x", 2, Outcome::Passed)])
            .expect("records");
        assert!(run.verdicts().expect("reads")[0].outcome.passed());
        run.record(&[at("controls/c", 2, failed)]).expect("records");
        let verdict = run.verdicts().expect("reads").remove(0);
        assert_eq!(verdict.outcome.reason(), "flaky");
        assert!(!verdict.outcome.rule().counted);
        assert!(run.missing().expect("reads").is_empty());
    }

    #[test]
    fn what_a_killed_process_was_writing_is_removed() {
        let runs = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(runs.path().join(".new/evidence")).expect("makes");
        assert!(Run::sweep(runs.path()).expect("sweeps"));
        std::fs::create_dir_all(runs.path().join(".new/evidence")).expect("makes");
        let run = Run::create(runs.path(), plan()).expect("creates");
        assert!(!Run::sweep(runs.path()).expect("sweeps"));
        assert_eq!(Run::list(runs.path()).expect("reads"), ["r"]);
        let draft = run.folder().join("evidence/.draft-x");
        std::fs::write(&draft, "half").expect("writes");
        drop(run);
        Run::append_to(runs.path(), "r").expect("opens");
        assert!(!draft.exists());
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
        assert_eq!(run.evidence().read(&digest).expect("reads"), evidence);
        assert!(matches!(
            run.evidence().read("../../x"),
            Err(RunError::NoEvidence { .. })
        ));
        std::fs::write(run.evidence().path(&digest), b"x").expect("writes");
        assert!(matches!(
            run.evidence().read(&digest),
            Err(RunError::Broken { .. })
        ));
    }
}
