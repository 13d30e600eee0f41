//! Judges the stored evidence of a run again with the assertions as they are now; nothing is run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::evaluate::{self, run_failure};
use super::{Classify, Context, Kind, Result};
use crate::domain::case::CaseId;
use crate::domain::suite::Suite;
use crate::domain::verdict::Verdict;
use crate::methods::asking::{self, Question};
use crate::methods::judge;
use crate::storage::runs::{Plan, Run, UnitOutcome};
use crate::storage::{candidates, suite};

#[derive(Debug, Clone)]
pub struct Config {
    pub run: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub run: String,
    pub n_judged: usize,
    /// Units whose outcome is another one now.
    pub changed: Vec<Changed>,
    /// Units whose evidence does not belong to the case as it is now, or that have none.
    pub left_out: Vec<LeftOut>,
    pub plan: Plan,
    pub verdicts: Vec<Verdict>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    pub candidate: String,
    pub case: CaseId,
    pub was: String,
    pub is: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub candidate: String,
    pub case: CaseId,
    pub why: String,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let suite = evaluate::suite(context)?;
    let mut run = Run::append_to(&context.project.runs(), &config.run).map_err(run_failure)?;
    let outcomes = run.outcomes().map_err(run_failure)?;
    context
        .progress
        .begin("rejudge", Some(outcomes.len() as u64));
    let mut n_judged = 0;
    let mut changed = Vec::new();
    let mut left_out = Vec::new();
    let questions = questions(context, &suite, &run.plan)?;
    for unit in outcomes {
        context.progress.advance(1);
        let planned = run.plan.cases.iter().find(|case| case.id == unit.case);
        let scenario = planned.map(|case| case.scenario_digest.as_str());
        let known = suite.get(&unit.case);
        let asked = match questions.get(&unit.candidate) {
            Some(questions) => questions.get(&unit.case).and_then(|one| one.as_ref().ok()),
            None => known,
        };
        let judged = match (known, asked, &unit.evidence) {
            _ if unit.outcome.is_unstable() => {
                Err("two machines saw different things, and none of them is preferred")
            }
            (None, _, _) => Err("the suite no longer holds it"),
            (Some(case), _, _) if Some(suite::scenario_digest(case).as_str()) != scenario => {
                Err("its fixture or its launches have changed: evaluate it again")
            }
            (Some(_), None, None) => continue,
            (Some(_), Some(_), None) => Err("it has no evidence"),
            (Some(_), None, Some(_)) => Err("it would not be asked now: evaluate it again"),
            (Some(_), Some(case), Some(digest)) => Ok((case, digest)),
        };
        let (case, digest) = match judged {
            Ok(found) => found,
            Err(why) => {
                left_out.push(LeftOut {
                    candidate: unit.candidate,
                    case: unit.case,
                    why: why.to_owned(),
                });
                continue;
            }
        };
        let outcome = judge::judge(case, &run.evidence().read(digest).map_err(run_failure)?);
        n_judged += 1;
        if outcome != unit.outcome {
            changed.push(Changed {
                candidate: unit.candidate.clone(),
                case: unit.case.clone(),
                was: unit.outcome.reason().to_owned(),
                is: outcome.reason().to_owned(),
            });
            run.record(&[UnitOutcome { outcome, ..unit }])
                .map_err(run_failure)?;
        }
    }
    context
        .progress
        .end(&format!("{n_judged} judged, {} changed", changed.len()));
    Ok(Summary {
        run: config.run.clone(),
        n_judged,
        changed,
        left_out,
        verdicts: run.verdicts().map_err(run_failure)?,
        plan: run.plan,
    })
}

/// How the cases are put to each candidate that is an adapter of a shipping harness, as it was when the run was made.
fn questions(
    context: &Context,
    suite: &Suite,
    plan: &Plan,
) -> Result<BTreeMap<String, BTreeMap<CaseId, Question>>> {
    let ids: Vec<&CaseId> = plan.cases.iter().map(|case| &case.id).collect();
    let mut questions = BTreeMap::new();
    for planned in &plan.candidates {
        let tree = candidates::installed(&context.project.frozen(), &planned.digest);
        if let Some(adapter) = candidates::adapter(&tree).kind(Kind::Settings)? {
            questions.insert(planned.name.clone(), asking::ask(suite, &ids, &adapter));
        }
    }
    Ok(questions)
}
