//! Opens a run for the stages that only read it.

use super::{Context, Failure, Kind, Result};
use crate::domain::results::{Facts, families};
use crate::storage::runs::{Plan, Run, RunError};
use crate::storage::suite;

/// The run of this id, or the newest one when none is named.
pub fn open(context: &Context, id: Option<&str>) -> Result<Run> {
    let folder = context.project.runs();
    let ids = Run::list(&folder).map_err(classify)?;
    let Some(id) = id.or(ids.last().map(String::as_str)) else {
        return Err(Failure::user("there is no run yet").hint("pipeline evaluate --candidate DIR"));
    };
    Run::open(&folder, id).map_err(|error| {
        let newest: Vec<&str> = ids.iter().rev().take(5).map(String::as_str).collect();
        let failure = classify(error);
        if failure.kind == Kind::User && !newest.is_empty() {
            failure.hint(format!("one of the newest runs: {}", newest.join(", ")))
        } else {
            failure
        }
    })
}

/// The same for stages that rank or compare: a merge that lacks units is refused, since what is missing is not by chance.
pub fn open_whole(context: &Context, id: Option<&str>) -> Result<Run> {
    let run = open(context, id)?;
    match &run.merged {
        Some(merged) if merged.n_missing > 0 => Err(Failure::user(format!(
            "the run {} is a part of its plan: {} units are missing, so nothing is ranked by it",
            run.id(),
            merged.n_missing
        ))
        .hint(format!("see what is there: pipeline show {}", run.id()))
        .hint("run the shards that are missing, then merge again: pipeline merge PLAN")),
        _ => Ok(run),
    }
}

/// What tables and reports need to know of a run's test cases. Families that an older version did not plan are those of
/// the suite as it is now; a case that it does not hold is a family of its own.
pub fn facts(context: &Context, plan: &Plan) -> Facts {
    let mut facts = plan.facts();
    let tests = || plan.cases.iter().filter(|case| case.category.is_some());
    if tests().all(|case| case.family.is_some()) {
        return facts;
    }
    // A suite that cannot be read is told by the stages that run it; here only intervals get less careful.
    let families = suite::read(&context.project.cases()).map(|suite| families(&suite));
    for case in tests().filter(|case| case.family.is_none()) {
        let family = families.as_ref().ok().and_then(|all| all.get(&case.id));
        if let (Some(facts), Some(family)) = (facts.get_mut(&case.id), family) {
            facts.family = family.clone();
        }
    }
    facts
}

/// What is wrong with a run's folder is the machine's, but for a name that is not there.
pub fn classify(error: RunError) -> Failure {
    Failure {
        kind: match error {
            RunError::Missing(_) | RunError::Exists(_) => Kind::User,
            _ => Kind::Environment,
        },
        source: error.into(),
        hints: Vec::new(),
    }
}
