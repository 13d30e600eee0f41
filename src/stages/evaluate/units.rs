//! Running units: so many at a time, each in a task; a fault of ours is tried again, and one that no other unit could
//! escape ends the run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::plan::find;
use super::{Config, run_failure};
use crate::domain::case::CaseId;
use crate::domain::evidence::Evidence;
use crate::domain::suite::Suite;
use crate::domain::verdict::{Failure as Failed, Outcome, Reason};
use crate::methods::judge;
use crate::stages::install::{self, Installed};
use crate::stages::interrupt::told_to_stop;
use crate::stages::trial::{self, Bench, Broken};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::candidates;
use crate::storage::runs::{PlannedCandidate, Run, RunError, UnitOutcome};

/// The sealed tree of a planned candidate, installed when it is not there yet.
pub(super) async fn installed(
    context: &Context,
    config: &Config,
    bench: &Bench,
    planned: &PlannedCandidate,
) -> Result<Installed> {
    let frozen = context.project.frozen();
    let place = candidates::installed(&frozen, &planned.digest);
    if place.exists() {
        return Ok(Installed::Tree(place));
    }
    let candidate = find(context, &planned.source)?;
    if candidates::candidate_digest(&candidate).kind(Kind::Settings)? != planned.digest {
        return Err(Failure::user(format!(
            "{} has changed since the run was begun",
            planned.name
        ))
        .hint("begin a new run: pipeline evaluate"));
    }
    let limits = &config.settings.limits;
    install::install(
        &*bench.sandbox,
        limits,
        &frozen,
        &candidate,
        &planned.digest,
    )
    .await
}

/// What a task brings back.
struct Tried {
    candidate: String,
    case: CaseId,
    attempt: u32,
    result: std::result::Result<Evidence, Broken>,
}

pub(super) async fn run_units(
    context: &Context,
    config: &Config,
    suite: &Suite,
    bench: &Arc<Bench>,
    trees: &BTreeMap<String, Installed>,
    units: Vec<(String, CaseId)>,
    run: &mut Run,
) -> Result<()> {
    let mut waiting: VecDeque<(String, CaseId, u32)> = units
        .into_iter()
        .map(|(candidate, case)| (candidate, case, 1))
        .collect();
    let mut tasks = JoinSet::new();
    let interrupted = told_to_stop();
    tokio::pin!(interrupted);
    loop {
        while tasks.len() < config.jobs.max(1)
            && let Some((candidate, id, attempt)) = waiting.pop_front()
        {
            match &trees[&candidate] {
                Installed::Refused(why) => {
                    record(run, refused(candidate, id, why))?;
                    context.progress.advance(1);
                }
                Installed::Tree(tree) => {
                    let case = suite
                        .get(&id)
                        .expect("the plan was made from this suite")
                        .clone();
                    let (bench, tree) = (bench.clone(), tree.clone());
                    tasks.spawn(async move {
                        if attempt > 1 {
                            let pause = Duration::from_millis(200 << attempt.min(6));
                            tokio::time::sleep(pause).await;
                        }
                        let result = trial::run(&bench, &case, &tree).await;
                        Tried {
                            candidate,
                            case: id,
                            attempt,
                            result,
                        }
                    });
                }
            }
        }
        let tried = tokio::select! {
            joined = tasks.join_next() => match joined {
                Some(joined) => joined?,
                None => return Ok(()),
            },
            _ = &mut interrupted => {
                tasks.shutdown().await;
                return Err(resumable(Kind::Interrupted, "interrupted".into(), run.id()));
            }
        };
        match tried.result {
            Ok(evidence) => {
                let case = suite.get(&tried.case).expect("it was run from this suite");
                let kept = run.store_evidence(&evidence);
                let unit = UnitOutcome {
                    candidate: tried.candidate,
                    case: tried.case,
                    attempt: tried.attempt,
                    outcome: judge::judge(case, &evidence),
                    evidence: Some(kept.map_err(|error| not_kept(error, run.id()))?),
                    duration_ms: evidence
                        .launches
                        .iter()
                        .map(|launch| launch.duration_ms)
                        .sum(),
                    cpu_ms: evidence.launches.iter().map(|launch| launch.cpu_ms).sum(),
                };
                record(run, unit)?;
                context.progress.advance(1);
            }
            Err(broken) if broken.hopeless => {
                tasks.shutdown().await;
                return Err(resumable(Kind::Environment, broken.fault.message, run.id()));
            }
            Err(broken) => {
                let outcome = Outcome::Invalid(broken.fault);
                if outcome.rule().retried && tried.attempt < config.settings.attempts {
                    waiting.push_back((tried.candidate, tried.case, tried.attempt + 1));
                    continue;
                }
                let unit = UnitOutcome {
                    candidate: tried.candidate,
                    case: tried.case,
                    attempt: tried.attempt,
                    outcome,
                    evidence: None,
                    duration_ms: 0,
                    cpu_ms: 0,
                };
                record(run, unit)?;
                context.progress.advance(1);
            }
        }
    }
}

fn refused(candidate: String, case: CaseId, why: &str) -> UnitOutcome {
    UnitOutcome {
        candidate,
        case,
        attempt: 1,
        outcome: Outcome::Failed(Failed {
            reason: Reason::Contract,
            expected: "install.sh ends with 0".to_owned(),
            saw: why.to_owned(),
            place: "installation".to_owned(),
        }),
        evidence: None,
        duration_ms: 0,
        cpu_ms: 0,
    }
}

fn not_kept(error: RunError, run: &str) -> Failure {
    match error {
        RunError::DiskFull { .. } => resumable(Kind::Environment, error.to_string(), run),
        other => run_failure(other),
    }
}

fn record(run: &mut Run, unit: UnitOutcome) -> Result<()> {
    let recorded = run.record(&unit);
    recorded.map_err(|error| not_kept(error, run.id()))
}

fn resumable(kind: Kind, message: String, run: &str) -> Failure {
    Failure::new(kind, message).hint(format!(
        "what is finished is kept; go on with: pipeline evaluate --resume {run}"
    ))
}
