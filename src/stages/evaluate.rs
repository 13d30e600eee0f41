//! Runs the suite against candidates, one cell a case. Evidence is stored before the outcome that names it, so a run
//! that is killed at any point goes on with what is missing.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::install::{self, Installed};
use super::sandboxes::{self, SandboxKind, Settings};
use super::trial::{self, Bench, Broken};
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::junit;
use crate::domain::candidate::Candidate;
use crate::domain::case::{Case, CaseId};
use crate::domain::evidence::Evidence;
use crate::domain::suite::Suite;
use crate::domain::verdict::{Failure as Failed, Outcome, Reason, Verdict};
use crate::methods::{judge, suite_check};
use crate::storage::runs::{
    PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Run, RunError, UnitOutcome, hex,
};
use crate::storage::{candidates, documents, suite};

#[derive(Debug, Clone)]
pub struct Config {
    /// Names below `candidates/`, or paths.
    pub candidates: Vec<String>,
    /// Ids, categories or prefixes of ids; everything when empty.
    pub cases: Vec<String>,
    pub sandbox: SandboxKind,
    pub jobs: usize,
    /// The id of the new run; the day and a letter unless said.
    pub run: Option<String>,
    /// Go on with this run instead; candidates and cases are those of its plan.
    pub resume: Option<String>,
    /// Nonces are drawn from it; drawn itself unless said.
    pub seed: Option<String>,
    /// Run the units in an order drawn from this number instead of by id.
    pub shuffle: Option<u64>,
    /// Outcomes that are taken over instead of run.
    pub known: Vec<UnitOutcome>,
    pub settings: Settings,
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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.jobs.max(1))
        .enable_all()
        .build()?;
    let result = runtime.block_on(evaluate(context, config, &suite));
    // A blocked task of a cell that was dropped must not hold us.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

/// The newest run of the same cases on the same candidates in the same sandbox, gone on with when it is not whole;
/// a new run when there is none, or when `anew` says so.
pub fn again(context: &Context, config: &Config, anew: bool) -> Result<Summary> {
    let suite = suite(context)?;
    let wanted = plan(context, config, &suite, config.sandbox.as_str())?;
    let runs = context.project.runs();
    let mut same = None;
    for id in Run::list(&runs).map_err(run_failure)?.into_iter().rev() {
        let run = Run::open(&runs, &id).map_err(run_failure)?;
        if !anew && run.plan.is_about_the_same(&wanted) {
            same = Some(id);
            break;
        }
    }
    run(
        context,
        &Config {
            resume: same,
            ..config.clone()
        },
    )
}

async fn evaluate(context: &Context, config: &Config, suite: &Suite) -> Result<Summary> {
    let began = Instant::now();
    let sandbox = sandboxes::open(context, config.sandbox, &config.settings.image).await?;
    let mut run = match &config.resume {
        Some(id) => resumed(context, id, suite, sandbox.name())?,
        None => {
            let plan = plan(context, config, suite, sandbox.name())?;
            let mut run = Run::create(&context.project.runs(), plan).map_err(run_failure)?;
            for unit in &config.known {
                run.record(unit).map_err(run_failure)?;
            }
            run
        }
    };
    let bench = Arc::new(Bench {
        sandbox: sandbox.clone(),
        limits: config.settings.limits.clone(),
        cells: sandboxes::cells(context, &config.settings.cells)?,
        run: run.id().to_owned(),
        seed: run.plan.seed.clone(),
    });
    let mut units = run.missing().map_err(run_failure)?;
    if let Some(number) = config.shuffle {
        units.sort_by_cached_key(|(candidate, case)| {
            hex(&Sha256::digest(format!("{number}\0{candidate}\0{case}")))
        });
    }
    context.progress.begin("evaluate", Some(units.len() as u64));
    let n_run = units.len();
    let mut trees = BTreeMap::new();
    for planned in &run.plan.candidates {
        if units.iter().any(|(name, _)| *name == planned.name) {
            let tree = installed(context, config, &bench, planned).await?;
            trees.insert(planned.name.clone(), tree);
        }
    }
    let ended = run_units(context, config, suite, &bench, &trees, units, &mut run).await;
    context.progress.end(&match &ended {
        Ok(()) => format!("{n_run} units in {:.1} s", began.elapsed().as_secs_f64()),
        Err(failure) => failure.to_string(),
    });
    ended?;
    let outcomes = run.outcomes().map_err(run_failure)?;
    Ok(Summary {
        run: run.id().to_owned(),
        folder: run.folder().to_path_buf(),
        sandbox: run.plan.sandbox.clone(),
        n_units: run.plan.candidates.len() * run.plan.cases.len(),
        n_run,
        n_invalid: outcomes
            .iter()
            .filter(|unit| matches!(unit.outcome, Outcome::Invalid(_)))
            .count(),
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        verdicts: run.verdicts().map_err(run_failure)?,
        plan: run.plan,
    })
}

/// Freezes what is run: candidates by digest, cases by digest, and the controls that gate them.
fn plan(context: &Context, config: &Config, suite: &Suite, sandbox: &str) -> Result<Plan> {
    let selected = select(suite, &config.cases)?;
    let mut names = std::collections::BTreeSet::new();
    let mut planned = Vec::new();
    for name in &config.candidates {
        let candidate = find(context, name)?;
        let digest = candidates::candidate_digest(&candidate).kind(Kind::Settings)?;
        unchanged(context, &candidate, &digest)?;
        if !names.insert(candidate.name.clone()) {
            return Err(Failure::user(format!("{} is named twice", candidate.name)));
        }
        planned.push(PlannedCandidate {
            name: candidate.name,
            source: name.clone(),
            digest,
        });
    }
    let seed = match &config.seed {
        Some(seed) => seed.clone(),
        None => drawn_seed()?,
    };
    Ok(Plan {
        format: PLAN_FORMAT,
        run: match &config.run {
            Some(id) => id.clone(),
            None => new_id(context)?,
        },
        created_at: context.timestamp(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        sandbox: sandbox.to_owned(),
        seed,
        suite: suite::digest(selected.iter().copied()),
        candidates: planned,
        cases: selected
            .iter()
            .map(|case| PlannedCase {
                id: case.id.clone(),
                title: case.title.clone(),
                clause: case.clause.clone(),
                category: case.category(),
                scenario: case.scenario(),
                controls: suite
                    .gating(case)
                    .map(|control| control.id.clone())
                    .collect(),
                digest: suite::case_digest(case),
                scenario_digest: suite::scenario_digest(case),
            })
            .collect(),
    })
}

/// The cases asked for and the controls that gate them, by id.
fn select<'a>(suite: &'a Suite, asked: &[String]) -> Result<Vec<&'a Case>> {
    let mut chosen: BTreeMap<&CaseId, &Case> = BTreeMap::new();
    let mut add = |case: &'a Case| {
        chosen.insert(&case.id, case);
        for control in suite.gating(case) {
            chosen.insert(&control.id, control);
        }
    };
    if asked.is_empty() {
        suite.tests().for_each(&mut add);
    }
    for wanted in asked {
        let wanted = wanted.trim_end_matches(".toml");
        let wanted = wanted.strip_prefix("cases/").unwrap_or(wanted);
        let mut found = suite
            .all()
            .filter(|case| {
                let id = case.id.as_str();
                id == wanted
                    || id
                        .strip_prefix(wanted)
                        .is_some_and(|rest| rest.starts_with('/'))
                    || wanted
                        .strip_suffix('*')
                        .is_some_and(|prefix| id.starts_with(prefix))
            })
            .peekable();
        if found.peek().is_none() {
            return Err(Failure::user(format!("there is no case {wanted:?}"))
                .hint("name an id, a category, or a prefix with *: permissions/deny-*"));
        }
        found.for_each(&mut add);
    }
    if chosen.is_empty() {
        return Err(Failure::settings("the suite is empty"));
    }
    Ok(chosen.into_values().collect())
}

fn resumed(context: &Context, id: &str, suite: &Suite, sandbox: &str) -> Result<Run> {
    let run = Run::append_to(&context.project.runs(), id).map_err(run_failure)?;
    if run.plan.sandbox != sandbox {
        return Err(Failure::user(format!(
            "run {id} was begun in the sandbox {}, not {sandbox}",
            run.plan.sandbox
        ))
        .hint(format!(
            "pipeline evaluate --resume {id} --sandbox {}",
            run.plan.sandbox
        )));
    }
    for planned in &run.plan.cases {
        let digest = suite.get(&planned.id).map(suite::case_digest);
        if digest.as_deref() != Some(&planned.digest) {
            return Err(Failure::user(format!(
                "{} has changed since run {id} was begun",
                planned.id
            ))
            .hint("begin a new run: pipeline evaluate"));
        }
    }
    Ok(run)
}

fn find(context: &Context, name: &str) -> Result<Candidate> {
    candidates::find(&context.project.candidates(), name)
        .kind(Kind::User)
        .map_err(|failure| failure.hint("ls candidates candidates/mutants"))
}

/// A frozen candidate is never changed again.
fn unchanged(context: &Context, candidate: &Candidate, digest: &str) -> Result<()> {
    let frozen = candidates::frozen_digest(&context.project.frozen(), &candidate.name)?;
    match frozen {
        Some(frozen) if frozen != digest => Err(Failure::user(format!(
            "{} has changed since it was frozen",
            candidate.name
        ))
        .hint(format!(
            "check and freeze it again: pipeline check {}",
            candidate.name
        ))),
        _ => Ok(()),
    }
}

/// The sealed tree of a planned candidate, installed when it is not there yet.
async fn installed(
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

async fn run_units(
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
    let interrupted = tokio::signal::ctrl_c();
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
                let unit = UnitOutcome {
                    candidate: tried.candidate,
                    case: tried.case,
                    attempt: tried.attempt,
                    outcome: judge::judge(case, &evidence),
                    evidence: Some(run.store_evidence(&evidence).map_err(run_failure)?),
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

fn record(run: &mut Run, unit: UnitOutcome) -> Result<()> {
    let id = run.id().to_owned();
    run.record(&unit).map_err(|error| match error {
        RunError::DiskFull { .. } => resumable(Kind::Environment, error.to_string(), &id),
        other => run_failure(other),
    })
}

fn resumable(kind: Kind, message: String, run: &str) -> Failure {
    Failure::new(kind, message).hint(format!(
        "what is finished is kept; go on with: pipeline evaluate --resume {run}"
    ))
}

/// Writes the verdicts of a run as JUnit XML.
pub fn write_junit(context: &Context, id: &str, file: &Path) -> Result<()> {
    let run = Run::open(&context.project.runs(), id).map_err(run_failure)?;
    let durations: BTreeMap<(String, CaseId), u64> = run
        .outcomes()
        .map_err(run_failure)?
        .into_iter()
        .map(|unit| ((unit.candidate, unit.case), unit.duration_ms))
        .collect();
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

/// The day and the first letter that is free: `2026-12-01-a`, … `-z`, `-aa`.
fn new_id(context: &Context) -> Result<String> {
    let runs = context.project.runs();
    let day = context.now.format("%Y-%m-%d");
    let letters = || ('a'..='z').map(|letter| letter.to_string());
    let pairs = letters().flat_map(|first| letters().map(move |second| format!("{first}{second}")));
    letters()
        .chain(pairs)
        .map(|letters| format!("{day}-{letters}"))
        .find(|id| !runs.join(id).exists())
        .ok_or_else(|| Failure::user("there are over 700 runs of today").hint("name it: --run ID"))
}

/// Sixteen bytes of the kernel's, in hexadecimal.
fn drawn_seed() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}
