//! Runs the suite against candidates, one cell a case. Evidence is stored before the outcome that names it, so a run
//! that is killed at any point goes on with what is missing.

mod order;
mod pace;
mod plan;
mod queue;
mod ready;
mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::sandboxes::{self, SandboxKind, Settings};
use super::trial::Bench;
use super::{Context, Failure, Kind, Result, repetitions};
use crate::adapters::junit;
use crate::adapters::sandbox::Sandbox;
use crate::domain::case::CaseId;
use crate::domain::suite::Suite;
use crate::domain::verdict::Verdict;
use crate::methods::repetition::Unsteady;
use crate::methods::suite_check;
use crate::storage::runs::{Plan, Run, RunError, Unit, UnitOutcome, hex};
use crate::storage::{documents, suite};
use pace::{Paced, Slots};
use queue::{Queue, Waiting};
use units::Means;

pub(super) use order::Expected;
pub(super) use plan::{changed_case, drawn_seed, find, plan};
pub use units::Ledger;

#[derive(Debug, Clone)]
pub struct Config {
    /// Names below `candidates/`, or paths.
    pub candidates: Vec<String>,
    /// Ids, categories or prefixes of ids; everything when empty.
    pub cases: Vec<String>,
    pub sandbox: SandboxKind,
    pub jobs: usize,
    /// How often each case and control is run.
    pub repeat: u32,
    /// The id of the run; the day and a letter unless said.
    pub run: Option<String>,
    /// Go on with this run; candidates and cases are those of its plan.
    pub resume: Option<String>,
    pub take_up: TakeUp,
    /// Nonces are drawn from it; drawn itself unless said.
    pub seed: Option<String>,
    /// Run the units in an order drawn from this number instead of the longest first.
    pub shuffle: Option<u64>,
    /// Outcomes that are taken over instead of run.
    pub known: Vec<UnitOutcome>,
    pub settings: Settings,
}

/// Which run of the same cases on the same candidates in the same sandbox is gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeUp {
    /// None: a new one is begun.
    Nothing,
    /// The newest one, if it is not finished.
    Unfinished,
    /// The newest one.
    Newest,
}

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub run: String,
    pub folder: PathBuf,
    pub sandbox: String,
    /// Units of the plan: cases and controls, for each candidate.
    pub n_units: usize,
    /// Units that this call ran.
    pub n_run: usize,
    /// Units that our side broke, after all attempts; counted as neither.
    pub n_invalid: usize,
    /// Cases and controls whose repetitions ended differently, or ended alike but showed something else.
    pub unsteady: Vec<Unsteady>,
    pub duration_ms: u64,
    pub plan: Plan,
    pub verdicts: Vec<Verdict>,
}

/// Reads the suite and checks it against the document; findings are a fault of the files.
pub fn suite(context: &Context) -> Result<Suite> {
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let suite =
        suite::read(&context.project.cases()).map_err(|findings| Failure::findings(&findings))?;
    let findings = suite_check::check(&suite, &document);
    if findings.is_empty() {
        Ok(suite)
    } else {
        Err(Failure::findings(&findings))
    }
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let suite = suite(context)?;
    runtime(config.jobs, evaluate(context, config, &suite))
}

/// Runs `work` on as many threads as there are jobs.
pub(super) fn runtime<T>(jobs: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(jobs.max(1))
        .enable_all()
        .build()?;
    let result = runtime.block_on(work);
    // A blocked task of a cell that was dropped must not hold us.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

async fn evaluate(context: &Context, config: &Config, suite: &Suite) -> Result<Summary> {
    let began = Instant::now();
    let sandbox = sandboxes::open(context, config.sandbox, &config.settings.image).await?;
    let mut run = plan::opened(context, config, suite, sandbox.name())?;
    let mut units = run.missing().map_err(run_failure)?;
    let expected = Expected::read(context, suite)?;
    match config.shuffle {
        Some(number) => {
            units.sort_by_cached_key(|unit| hex(&Sha256::digest(format!("{number}\0{unit:?}"))));
        }
        None => expected.longest_first(&mut units),
    }
    let n_run = units.len();
    let work = Work {
        plan: &run.plan.clone(),
        suite,
        expected: config.shuffle.is_none().then_some(&expected),
        sandbox,
        settings: &config.settings,
        jobs: config.jobs,
    };
    run_units(context, work, units, &mut run).await?;
    let outcomes = run.outcomes().map_err(run_failure)?;
    Ok(Summary {
        run: run.id().to_owned(),
        folder: run.folder().to_path_buf(),
        sandbox: run.plan.sandbox.clone(),
        n_units: run.plan.n_units(),
        n_run,
        n_invalid: outcomes
            .iter()
            .filter(|unit| !unit.outcome.is_valid())
            .count(),
        unsteady: repetitions::unsteady(&run, &config.settings.normalise)?,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        verdicts: run.verdicts().map_err(run_failure)?,
        plan: run.plan,
    })
}

/// What units are run with.
pub(super) struct Work<'a> {
    pub plan: &'a Plan,
    pub suite: &'a Suite,
    /// Which units idle and are begun first; none where the order of the units is to be kept.
    pub expected: Option<&'a Expected<'a>>,
    pub sandbox: Arc<dyn Sandbox>,
    pub settings: &'a Settings,
    pub jobs: usize,
}

/// Runs units of a plan, the first ones first, and keeps each when it is finished.
pub(super) async fn run_units(
    context: &Context,
    work: Work<'_>,
    units: Vec<Unit>,
    ledger: &mut impl Ledger,
) -> Result<()> {
    let began = Instant::now();
    let Work {
        plan,
        suite,
        expected,
        sandbox,
        settings,
        jobs,
    } = work;
    let most = settings.most_cells.max(jobs);
    let paced = Arc::new(Paced::new(sandbox.clone(), jobs, most));
    let bench = Arc::new(Bench {
        sandbox: paced.clone(),
        run: plan.run.clone(),
        seed: plan.seed.clone(),
    });
    let n_run = units.len();
    context.progress.begin("evaluate", Some(n_run as u64));
    let asked: BTreeSet<&str> = units.iter().map(|unit| &*unit.candidate).collect();
    let ready = stream::iter(&plan.candidates)
        .filter(|planned| std::future::ready(asked.contains(&*planned.name)))
        .map(async |planned| {
            let one = ready::ready(context, settings, suite, &bench, plan, planned).await?;
            Ok::<_, Failure>((planned.name.clone(), one))
        })
        .buffer_unordered(jobs.max(1))
        .try_collect()
        .await?;
    let most_idling = most.saturating_sub(2 * jobs).max(most / 4);
    let mut queue = Queue::new(most_idling);
    for unit in units {
        let idles = expected.is_some_and(|expected| expected.idles(&unit));
        queue.push(Waiting::new(unit, idles));
    }
    let means = Means {
        suite,
        bench,
        slots: Slots::new(jobs.max(1), most, paced),
        ready,
    };
    let ended = units::run_units(context, settings, means, queue, ledger).await;
    context.progress.end(&match &ended {
        Ok(()) => format!("{n_run} units in {:.1} s", began.elapsed().as_secs_f64()),
        Err(failure) => failure.to_string(),
    });
    ended?;
    // The daemon may have made a container for a killed run after we had looked.
    sandboxes::sweep(context, &*sandbox).await
}

/// Writes the verdicts of a run as JUnit XML.
pub fn write_junit(context: &Context, id: &str, file: &Path) -> Result<()> {
    let run = Run::open(&context.project.runs(), id).map_err(run_failure)?;
    // Over all repetitions.
    let mut durations: BTreeMap<(String, CaseId), u64> = BTreeMap::new();
    for unit in run.outcomes().map_err(run_failure)? {
        *durations.entry((unit.candidate, unit.case)).or_default() += unit.duration_ms;
    }
    let verdicts = run.verdicts().map_err(run_failure)?;
    let xml = junit::xml(id, &verdicts, &run.plan.facts(), |candidate, case| {
        durations
            .get(&(candidate.to_owned(), case.clone()))
            .copied()
    })?;
    std::fs::write(file, xml)
        .map_err(|error| Failure::environment(format!("cannot write {}: {error}", file.display())))
}

/// Gives the errors of a run's folder their kinds.
pub fn run_failure(error: RunError) -> Failure {
    let kind = match &error {
        RunError::Missing(_) | RunError::Exists(_) | RunError::Busy(_) => Kind::User,
        RunError::File { .. } | RunError::DiskFull { .. } => Kind::Environment,
        RunError::Broken { .. } | RunError::NoEvidence { .. } => Kind::Settings,
    };
    let missing = matches!(error, RunError::Missing(_));
    let failure = Failure {
        kind,
        source: error.into(),
        hints: Vec::new(),
    };
    match missing {
        true => failure.hint("ls data/runs"),
        false => failure,
    }
}
