//! Opens a run for the stages that only read it.

use super::{Context, Failure, Kind, Result};
use crate::storage::runs::{Run, RunError};

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
