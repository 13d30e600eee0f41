//! Running units: each in a task that ends when its evidence is on the disk; a fault of ours is tried again, and one that
//! no other unit could escape ends the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::pace::{LOOK, Slots};
use super::queue::{Place, Queue, Waiting};
use super::ready::Ready;
use super::run_failure;
use crate::domain::case::Case;
use crate::domain::suite::Suite;
use crate::domain::verdict::Outcome;
use crate::methods::judge;
use crate::stages::interrupt::told_to_stop;
use crate::stages::sandboxes::Settings;
use crate::stages::trial::{self, Bench, Broken, Subject};
use crate::stages::{Context, Failure, Kind, Result};
use crate::storage::runs::{EvidenceStore, Run, RunError, Unit, UnitOutcome};

/// Where finished units are kept: a run, or an attempt at a shard.
pub trait Ledger {
    fn evidence(&self) -> EvidenceStore;
    /// Returns when they are on the disk.
    fn record(&mut self, units: &[UnitOutcome]) -> std::result::Result<(), RunError>;
    /// What to type to go on after a fault.
    fn goes_on_with(&self) -> String;
}

impl Ledger for Run {
    fn evidence(&self) -> EvidenceStore {
        Run::evidence(self)
    }

    fn record(&mut self, units: &[UnitOutcome]) -> std::result::Result<(), RunError> {
        Run::record(self, units)
    }

    fn goes_on_with(&self) -> String {
        format!("pipeline evaluate --resume {}", self.id())
    }
}

/// What units are run with.
pub(super) struct Means<'a> {
    pub(super) suite: &'a Suite,
    pub(super) bench: Arc<Bench>,
    pub(super) slots: Slots,
    /// Every candidate that has a unit.
    pub(super) ready: BTreeMap<String, Ready>,
}

/// Runs the units of a queue and records each when it is finished.
pub(super) async fn run_units(
    context: &Context,
    settings: &Settings,
    means: Means<'_>,
    mut queue: Queue,
    ledger: &mut impl Ledger,
) -> Result<()> {
    let Means {
        suite,
        bench,
        mut slots,
        ready,
    } = means;
    let mut decided = Vec::new();
    queue.retain(|Waiting { unit, attempt, .. }| {
        let outcome = ready[&unit.candidate].trial(suite, &unit.case).err();
        let is_kept = outcome.is_none();
        decided.extend(outcome.map(|outcome| unit_outcome(unit, *attempt, outcome)));
        is_kept
    });
    record(context, ledger, decided)?;
    let mut tasks: JoinSet<Ended> = JoinSet::new();
    let mut finished: Vec<UnitOutcome> = Vec::new();
    let interrupted = told_to_stop();
    tokio::pin!(interrupted);
    loop {
        while !queue.is_empty()
            && slots.is_free(tasks.len())
            && let Some((next, place)) = queue.next()
        {
            let (subject, case) = ready[&next.unit.candidate]
                .trial(suite, &next.unit.case)
                .expect("a unit that waits is to be run");
            let trial = trial(
                bench.clone(),
                ledger.evidence(),
                case.clone(),
                subject.clone(),
                next,
                place,
            );
            tasks.spawn(trial);
        }
        // Others have started already while the disk is waited for.
        record(context, ledger, std::mem::take(&mut finished))?;
        if tasks.is_empty() && queue.is_empty() {
            return Ok(());
        }
        let ended = tokio::select! {
            Some(joined) = tasks.join_next() => joined?,
            // A unit may have begun to wait, or the time of one that is tried again may have come.
            () = tokio::time::sleep(LOOK), if !queue.is_empty() => continue,
            _ = &mut interrupted => {
                tasks.shutdown().await;
                return Err(resumable(Kind::Interrupted, "interrupted".into(), ledger));
            }
        };
        let mut ended = Some(ended);
        while let Some(one) = ended {
            match one {
                Ended::Outcome(unit) => finished.push(unit),
                Ended::Broken(tried, broken) => {
                    if broken.hopeless {
                        tasks.shutdown().await;
                        record(context, ledger, finished)?;
                        let message = broken.fault.message;
                        return Err(resumable(Kind::Environment, message, ledger));
                    }
                    let outcome = Outcome::Invalid(broken.fault);
                    if outcome.rule().retried && tried.attempt < settings.attempts {
                        queue.push(tried.again());
                    } else {
                        finished.push(unit_outcome(&tried.unit, tried.attempt, outcome));
                    }
                }
                Ended::NotStored(error) => {
                    tasks.shutdown().await;
                    return Err(not_stored(error, ledger));
                }
            }
            // Whatever else has ended meanwhile is flushed to the disk together.
            ended = tasks.try_join_next().transpose()?;
        }
    }
}

/// What a task brings back.
enum Ended {
    /// Its evidence is on the disk.
    Outcome(UnitOutcome),
    Broken(Waiting, Broken),
    NotStored(RunError),
}

async fn trial(
    bench: Arc<Bench>,
    store: EvidenceStore,
    case: Case,
    subject: Arc<Subject>,
    waiting: Waiting,
    _place: Place,
) -> Ended {
    let evidence = match trial::run(&bench, &case, &subject).await {
        Ok(evidence) => evidence,
        Err(broken) => return Ended::Broken(waiting, broken),
    };
    let stored = tokio::task::spawn_blocking(move || {
        let digest = store.store(&evidence)?;
        let launches = &evidence.launches;
        let outcome = judge::judge(&case, &evidence);
        Ok(UnitOutcome {
            evidence: Some(digest),
            duration_ms: launches.iter().map(|launch| launch.duration_ms).sum(),
            cpu_ms: launches.iter().map(|launch| launch.cpu_ms).sum(),
            ..unit_outcome(&waiting.unit, waiting.attempt, outcome)
        })
    });
    match stored.await.expect("judging does not panic") {
        Ok(unit) => Ended::Outcome(unit),
        Err(error) => Ended::NotStored(error),
    }
}

/// An outcome without evidence.
fn unit_outcome(unit: &Unit, attempt: u32, outcome: Outcome) -> UnitOutcome {
    UnitOutcome {
        candidate: unit.candidate.clone(),
        case: unit.case.clone(),
        repetition: unit.repetition,
        attempt,
        outcome,
        evidence: None,
        duration_ms: 0,
        cpu_ms: 0,
    }
}

fn record(context: &Context, ledger: &mut impl Ledger, units: Vec<UnitOutcome>) -> Result<()> {
    if units.is_empty() {
        return Ok(());
    }
    if let Err(error) = ledger.record(&units) {
        return Err(not_stored(error, ledger));
    }
    context.progress.advance(units.len() as u64);
    Ok(())
}

fn not_stored(error: RunError, ledger: &impl Ledger) -> Failure {
    match error {
        RunError::DiskFull { .. } => resumable(Kind::Environment, error.to_string(), ledger),
        other => run_failure(other),
    }
}

fn resumable(kind: Kind, message: String, ledger: &impl Ledger) -> Failure {
    Failure::new(kind, message).hint(format!(
        "what is finished is kept; go on with: {}",
        ledger.goes_on_with()
    ))
}
