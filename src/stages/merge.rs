//! Merges what the machines that ran a plan have left into one run. The run is a function of the plan and of the set of
//! attempts: where they lie, in which order they are given and how often makes no difference to a byte of it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::evaluate::run_failure;
use super::{Context, Failure, Result, plan};
use crate::domain::case::CaseId;
use crate::domain::shard::ranges;
use crate::domain::verdict::{Fault, FaultKind, Outcome, Verdict};
use crate::methods::merging::{Choice, choose};
use crate::storage::plans::StoredPlan;
use crate::storage::runs::{
    EvidenceStore, MERGED_FORMAT, Merged, Plan, Run, RunError, Stored, UnitOutcome, store_merged,
};
use crate::storage::shards::{self, Refusal};

#[derive(Debug, Clone)]
pub struct Config {
    pub plan: PathBuf,
    /// Where attempts lie, at whatever depth; `data/shards/PLAN` when none is named.
    pub folders: Vec<PathBuf>,
    /// Write what there is, also when units are missing.
    pub partial: bool,
    /// Name the run otherwise than the plan does.
    pub run: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Digest of the plan.
    pub digest: String,
    pub run: String,
    pub folder: PathBuf,
    /// None when nothing was written, since units are missing.
    pub stored: Option<Stored>,
    pub n_units: usize,
    pub n_attempts: usize,
    /// Of the program, whose outcomes were taken; one, unless the plan lets any build run shards.
    pub builds: BTreeSet<String>,
    /// Files that are not as an attempt at this plan writes them; nothing of their attempts is used.
    pub refused: Vec<Refusal>,
    /// Outcomes whose evidence is missing or has another digest; they are not used.
    pub dropped: Vec<Dropped>,
    pub missing: Vec<Missing>,
    /// The shards that lack units, or have units that our side broke, as an engine writes the tasks of an array.
    pub again: String,
    pub unstable: Vec<Unstable>,
    /// Units that several attempts ran, and how many of these ended alike.
    pub n_repeated: usize,
    pub n_agreed: usize,
    /// Units that our side broke, the unstable ones among them.
    pub n_invalid: usize,
    /// Of the run; empty when nothing was written.
    pub verdicts: Vec<Verdict>,
    pub plan: Plan,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Dropped {
    pub candidate: String,
    pub case: CaseId,
    pub attempt: String,
    pub why: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Missing {
    pub candidate: String,
    pub case: CaseId,
    pub repetition: u32,
    /// From 1.
    pub shard: u32,
}

/// A unit that ended differently on several machines.
#[derive(Debug, Clone, Serialize)]
pub struct Unstable {
    pub candidate: String,
    pub case: CaseId,
    pub repetition: u32,
    /// Attempt, how it ended there, and the digest of the evidence.
    pub seen: [(String, String, Option<String>); 2],
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let plan = plan::read(&config.plan)?;
    let found = Found::read(context, config, &plan)?;
    let merge = merged(&plan, &found.told);
    let mut run = plan.plan.run.clone();
    if let Some(id) = &config.run {
        run.run.clone_from(id);
    }
    let runs = context.project.runs();
    let stamp = Merged {
        format: MERGED_FORMAT,
        plan: plan.digest.clone(),
        n_missing: merge.missing.len(),
        n_unstable: merge.unstable.len(),
        n_repeated: merge.n_repeated,
        n_agreed: merge.n_agreed,
        attempts: merge.attempts,
        builds: merge.builds,
    };
    let (mut stored, mut verdicts) = (None, Vec::new());
    if merge.missing.is_empty() || config.partial {
        let written = store_merged(&runs, &run, &stamp, &merge.outcomes, &merge.evidence);
        stored = Some(written.map_err(not_stored)?);
        verdicts = Run::open(&runs, &run.run)
            .and_then(|run| run.verdicts())
            .map_err(run_failure)?;
    }
    let is_invalid = |unit: &&UnitOutcome| !unit.outcome.is_valid();
    Ok(Summary {
        digest: plan.digest,
        folder: runs.join(&run.run),
        run: run.run.clone(),
        stored,
        n_units: run.n_units(),
        n_attempts: found.n_attempts,
        builds: stamp.builds,
        refused: found.refused,
        dropped: found.dropped,
        missing: merge.missing,
        again: merge.again,
        unstable: merge.unstable,
        n_repeated: stamp.n_repeated,
        n_agreed: stamp.n_agreed,
        n_invalid: merge.outcomes.iter().filter(is_invalid).count(),
        verdicts,
        plan: run,
    })
}

fn not_stored(error: RunError) -> Failure {
    let exists = matches!(error, RunError::Exists(_));
    match exists {
        true => run_failure(error).hint("give the merged run another name: --run ID"),
        false => run_failure(error),
    }
}

/// An outcome that an attempt tells.
struct Told {
    /// Of the unit, in the plan.
    place: usize,
    attempt: String,
    build: String,
    unit: UnitOutcome,
    evidence: EvidenceStore,
}

struct Found {
    /// Sorted by unit, then by attempt; each once. Their evidence is there.
    told: Vec<Told>,
    n_attempts: usize,
    refused: Vec<Refusal>,
    dropped: Vec<Dropped>,
}

impl Found {
    fn read(context: &Context, config: &Config, plan: &StoredPlan) -> Result<Self> {
        let mut folders = BTreeSet::new();
        let mut refused = BTreeSet::new();
        let named = match config.folders.is_empty() {
            true => vec![shards::folder_of_plan(&context.project.shards(), plan)],
            false => config.folders.clone(),
        };
        for folder in named {
            if !config.folders.is_empty() && !folder.is_dir() {
                let message = format!("there is no folder {}", folder.display());
                return Err(Failure::user(message));
            }
            // Named twice, or by a link, it is still one folder.
            let folder = folder.canonicalize().unwrap_or(folder);
            let (attempts, links) = shards::attempts(&folder).map_err(run_failure)?;
            folders.extend(attempts);
            refused.extend(links);
        }
        let mut told = Vec::new();
        let mut attempts = BTreeSet::new();
        for folder in folders {
            let found = match shards::read(&folder, plan) {
                Ok(found) => found,
                Err(refusal) => {
                    refused.insert(refusal);
                    continue;
                }
            };
            let evidence = found.evidence();
            attempts.insert(found.claim.attempt.clone());
            told.extend(found.outcomes.into_iter().map(|(place, unit)| Told {
                place,
                attempt: found.claim.attempt.clone(),
                build: found.claim.measured.build.clone(),
                unit,
                evidence: evidence.clone(),
            }));
        }
        let (mut told, dropped) = verified(told);
        // A copy of an attempt tells nothing new. Where two copies differ, the text decides, not where they lie.
        let line =
            |told: &Told| serde_json::to_string(&told.unit).expect("an outcome is plain data");
        told.sort_by(|a, b| {
            (a.place, &a.attempt, &a.build)
                .cmp(&(b.place, &b.attempt, &b.build))
                .then_with(|| line(a).cmp(&line(b)))
                .then_with(|| match &a.unit.evidence {
                    Some(digest) => a.evidence.compare(&b.evidence, digest),
                    None => Ordering::Equal,
                })
        });
        told.dedup_by(|a, b| (a.place, &a.attempt, &a.unit) == (b.place, &b.attempt, &b.unit));
        Ok(Self {
            told,
            n_attempts: attempts.len(),
            refused: refused.into_iter().collect(),
            dropped: dropped.into_iter().collect(),
        })
    }
}

/// Sets those aside whose evidence is not there or is something else; as many at a time as there are cores.
fn verified(told: Vec<Told>) -> (Vec<Told>, BTreeSet<Dropped>) {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = told.len().div_ceil(n_threads).max(1);
    let wrong: Vec<Option<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = told
            .chunks(part)
            .map(|told| {
                scope.spawn(|| {
                    let wrong = told.iter().map(|one| {
                        let digest = one.unit.evidence.as_deref()?;
                        one.evidence.verify(digest).err()
                    });
                    wrong.collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("reading does not panic"))
            .collect()
    });
    let mut dropped = BTreeSet::new();
    let mut good = Vec::new();
    for (one, wrong) in told.into_iter().zip(wrong) {
        match wrong {
            None => good.push(one),
            Some(why) => {
                dropped.insert(Dropped {
                    candidate: one.unit.candidate,
                    case: one.unit.case,
                    attempt: one.attempt,
                    why,
                });
            }
        }
    }
    (good, dropped)
}

struct Merge {
    /// In the order of the plan's units.
    outcomes: Vec<UnitOutcome>,
    evidence: Vec<(EvidenceStore, String)>,
    missing: Vec<Missing>,
    again: String,
    unstable: Vec<Unstable>,
    n_repeated: usize,
    n_agreed: usize,
    attempts: BTreeSet<String>,
    builds: BTreeSet<String>,
}

/// `told` is sorted.
fn merged(plan: &StoredPlan, told: &[Told]) -> Merge {
    let mut merge = Merge {
        outcomes: Vec::new(),
        evidence: Vec::new(),
        missing: Vec::new(),
        again: String::new(),
        unstable: Vec::new(),
        n_repeated: 0,
        n_agreed: 0,
        attempts: BTreeSet::new(),
        builds: BTreeSet::new(),
    };
    let mut shard_of = vec![0; plan.units().len()];
    for shard in plan.shards() {
        for place in plan.places(shard) {
            shard_of[*place] = shard.index();
        }
    }
    let mut again = BTreeSet::new();
    let mut rest = told;
    for (place, unit) in plan.units().iter().enumerate() {
        let n = rest.iter().take_while(|one| one.place == place).count();
        let (own, others) = rest.split_at(n);
        rest = others;
        let outcomes: Vec<&Outcome> = own.iter().map(|one| &one.unit.outcome).collect();
        let n_valid = outcomes.iter().filter(|outcome| outcome.is_valid()).count();
        let choice = choose(&outcomes);
        if n_valid > 1 {
            merge.n_repeated += 1;
            merge.n_agreed += usize::from(matches!(choice, Some(Choice::Agreed(_))));
        }
        match choice {
            None => {
                again.insert(shard_of[place]);
                merge.missing.push(Missing {
                    candidate: unit.candidate.clone(),
                    case: unit.case.clone(),
                    repetition: unit.repetition,
                    shard: shard_of[place],
                });
            }
            Some(Choice::Agreed(idx)) => {
                if !outcomes[idx].is_valid() {
                    again.insert(shard_of[place]);
                }
                merge.take(&own[idx]);
                merge.outcomes.push(own[idx].unit.clone());
            }
            Some(Choice::Unstable(one, other)) => {
                let (one, other) = (&own[one], &own[other]);
                merge.take(one);
                merge.take(other);
                merge.outcomes.push(unstable(one, other));
                let seen = |told: &Told| {
                    let ended = told.unit.outcome.reason().to_owned();
                    (told.attempt.clone(), ended, told.unit.evidence.clone())
                };
                merge.unstable.push(Unstable {
                    candidate: unit.candidate.clone(),
                    case: unit.case.clone(),
                    repetition: unit.repetition,
                    seen: [seen(one), seen(other)],
                });
            }
        }
    }
    merge.again = ranges(&again.into_iter().collect::<Vec<u32>>());
    merge
}

impl Merge {
    fn take(&mut self, told: &Told) {
        self.attempts.insert(told.attempt.clone());
        self.builds.insert(told.build.clone());
        if let Some(digest) = &told.unit.evidence {
            self.evidence.push((told.evidence.clone(), digest.clone()));
        }
    }
}

/// Our side cannot say how the unit ends; what was seen on both machines is kept.
fn unstable(one: &Told, other: &Told) -> UnitOutcome {
    let said = |told: &Told| {
        let evidence = told.unit.evidence.as_deref().unwrap_or("none");
        format!("{} (evidence {evidence})", told.unit.outcome.reason())
    };
    UnitOutcome {
        outcome: Outcome::Invalid(Fault {
            kind: FaultKind::Unstable,
            message: format!("two attempts ended {} and {}", said(one), said(other)),
        }),
        ..one.unit.clone()
    }
}
