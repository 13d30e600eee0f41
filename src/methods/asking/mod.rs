//! Putting cases to a shipping harness: what its adapter can express is translated, everything else is not asked.
//!
//! A case is asked when its category, routes, flags, files, faults and calls are covered by the adapter, when each
//! control that gates it can be asked too, and when an assertion is left that does not speak the contract's own words
//! (`words`). Calls of the script are translated (`calls`); what the entry does with flags is the adapter's.

mod calls;
mod scenario;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use crate::domain::adapter::Adapter;
use crate::domain::case::{Case, CaseId};
use crate::domain::suite::Suite;

/// The case as this harness is asked it, or why it is not.
pub type Question = Result<Case, String>;

/// A question for each of these cases and controls of the suite; ids that it does not hold are passed over.
pub fn ask(suite: &Suite, ids: &[&CaseId], adapter: &Adapter) -> BTreeMap<CaseId, Question> {
    let cases: Vec<&Case> = ids.iter().filter_map(|id| suite.get(id)).collect();
    let mut questions: BTreeMap<CaseId, Question> = cases
        .iter()
        .map(|case| {
            let question = suite
                .gating(case)
                .find_map(|control| {
                    let why = question(control, adapter).err()?;
                    Some(format!("its control {}: {why}", control.id.name()))
                })
                .map_or_else(|| question(case, adapter), Err);
            (case.id.clone(), question)
        })
        .collect();
    for control in cases.iter().filter(|case| case.is_control()) {
        let mut gated = cases
            .iter()
            .filter(|case| suite.gating(case).any(|gate| gate.id == control.id))
            .peekable();
        // A control that was named by itself gates nothing here, and is asked.
        if gated.peek().is_some() && gated.all(|case| questions[&case.id].is_err()) {
            let why = "no case that it gates is asked".to_owned();
            questions.insert(control.id.clone(), Err(why));
        }
    }
    questions
}

fn question(case: &Case, adapter: &Adapter) -> Question {
    scenario::covered(case, adapter)?;
    let mut case = case.clone();
    for launch in &mut case.launches {
        for reply in &mut launch.script {
            calls::translate(reply, adapter)?;
        }
        if let Some(least) = adapter.limits.time_limit_s {
            launch.time_limit_s = Some(launch.time_limit_s().max(least));
        }
    }
    case.expects = words::kept(&case)?;
    Ok(case)
}
