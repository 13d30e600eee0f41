//! What a run is about: candidates and cases by digest, frozen before anything runs, and checked before it goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, TakeUp, run_failure};
use crate::domain::candidate::Candidate;
use crate::domain::case::{Case, CaseId};
use crate::domain::results::families;
use crate::domain::suite::Suite;
use crate::stages::adapted::{self, source_tree};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::runs::{
    PLAN_FORMAT, Plan, PlannedCandidate, PlannedCase, Run, RunError, UnitOutcome, hex,
};
use crate::storage::{candidates, documents, suite};

/// The run that is worked on, open for appending: the one that is named, one of the same plan, or a new one. What is
/// known already is in it.
pub(super) fn opened(
    context: &Context,
    config: &Config,
    suite: &Suite,
    sandbox: &str,
) -> Result<Run> {
    let mut run = match &config.resume {
        Some(id) => resumed(context, id, suite, sandbox)?,
        None => taken_up(context, config, plan(context, config, suite, sandbox)?)?,
    };
    if !config.known.is_empty() {
        let missing: BTreeSet<_> = run.missing().map_err(run_failure)?.into_iter().collect();
        let known = config.known.iter();
        let known: Vec<UnitOutcome> = known
            .filter(|known| missing.contains(&known.unit()))
            .cloned()
            .collect();
        run.record(&known).map_err(run_failure)?;
    }
    Ok(run)
}

fn taken_up(context: &Context, config: &Config, wanted: Plan) -> Result<Run> {
    let runs = context.project.runs();
    let same = |plan: &Plan| {
        plan.is_about_the_same(&wanted) && (config.seed.is_none() || plan.seed == wanted.seed)
    };
    if config.take_up != TakeUp::Nothing {
        let ids = match &config.run {
            Some(id) => vec![id.clone()],
            None => Run::list(&runs).map_err(run_failure)?,
        };
        for id in ids.iter().rev() {
            let known = match Run::open(&runs, id) {
                Err(RunError::Missing(_)) => continue,
                other => other.map_err(run_failure)?,
            };
            // What was merged from shards is gone on with by running shards.
            if !same(&known.plan) || known.merged.is_some() {
                continue;
            }
            let run = match Run::append_to(&runs, id) {
                // Somebody else is at it: ours is another run.
                Err(RunError::Busy(_)) if config.run.is_none() => continue,
                other => other.map_err(run_failure)?,
            };
            let n_missing = run.missing().map_err(run_failure)?.len();
            let named = config.run.is_some() || config.take_up == TakeUp::Newest;
            if n_missing > 0 {
                context.progress.note(&format!(
                    "goes on with run {id}, in which {n_missing} units are missing"
                ));
            } else if !named {
                break;
            }
            return Ok(run);
        }
    }
    Run::create(&runs, wanted).map_err(|error| match error {
        RunError::Exists(id) => run_failure(RunError::Exists(id)).hint(
            "name another one: --run ID; that one is about other candidates, cases or settings",
        ),
        other => run_failure(other),
    })
}

/// Freezes what is run: candidates by digest, cases by digest, and the controls that gate them.
pub fn plan(context: &Context, config: &Config, suite: &Suite, sandbox: &str) -> Result<Plan> {
    let selected = select(suite, &config.cases)?;
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let clauses = document.by_id();
    let mut names = BTreeSet::new();
    let families = families(suite);
    let mut planned = Vec::new();
    for name in &config.candidates {
        let candidate = find(context, name)?;
        let digest = candidates::candidate_digest(&candidate).kind(Kind::Settings)?;
        unchanged(context, &candidate, &digest)?;
        // Packages that are missing are said before there is a run.
        adapted::read(context, source_tree(&candidate), name)?;
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
        repeat: config.repeat,
        candidates: planned,
        cases: selected
            .iter()
            .map(|case| PlannedCase {
                id: case.id.clone(),
                title: case.title.clone(),
                clause: case.clause.clone(),
                category: case.category(),
                scenario: case.scenario(),
                family: families.get(&case.id).cloned(),
                controls: suite
                    .gating(case)
                    .map(|control| control.id.clone())
                    .collect(),
                digest: suite::case_digest(case),
                scenario_digest: suite::scenario_digest(case),
            })
            .collect(),
        clauses: selected
            .iter()
            .filter_map(|case| {
                let clause = clauses.get(&case.clause)?;
                Some((case.clause.clone(), clause.digest()))
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
    if run.merged.is_some() {
        return Err(
            Failure::user(format!("run {id} was merged from the shards of a plan"))
                .hint("run the shards that are missing, then merge again: pipeline merge PLAN"),
        );
    }
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
    if let Some(case) = changed_case(suite, &run.plan) {
        return Err(
            Failure::user(format!("{case} has changed since run {id} was begun"))
                .hint("begin a new run: pipeline evaluate"),
        );
    }
    Ok(run)
}

/// The first case of a plan that is not in the suite as it was planned.
pub fn changed_case<'a>(suite: &Suite, plan: &'a Plan) -> Option<&'a CaseId> {
    let changed = plan.cases.iter().find(|planned| {
        let digest = suite.get(&planned.id).map(suite::case_digest);
        digest.as_deref() != Some(&planned.digest)
    });
    changed.map(|planned| &planned.id)
}

pub fn find(context: &Context, name: &str) -> Result<Candidate> {
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
pub fn drawn_seed() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}
