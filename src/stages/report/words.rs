//! What the cases of a run say, read from the suite and the document as they are now, and only where they are as they
//! were when the run was planned: the report of an old run tells no case of today.

use std::collections::BTreeMap;

use crate::domain::case::CaseId;
use crate::domain::clause::{Clause, ClauseId};
use crate::domain::suite::Suite;
use crate::methods::cases::story::tell;
use crate::methods::report::{CaseWords, ClauseWords};
use crate::stages::Context;
use crate::storage::runs::Plan;
use crate::storage::{documents, suite};

/// Cases and controls of the plan that can be told.
pub fn words(context: &Context, plan: &Plan, suite: &Suite) -> BTreeMap<CaseId, CaseWords> {
    let of_run = of_run(plan, suite);
    // A document that cannot be read is told by the stages that run cases; here clauses are left out.
    let document = documents::read(&context.project.document()).unwrap_or_default();
    let clauses: BTreeMap<&ClauseId, &Clause> = document
        .by_id()
        .into_iter()
        .filter(|(id, clause)| plan.clauses.get(*id) == Some(&clause.digest()))
        .collect();
    of_run
        .all()
        .map(|case| {
            let words = CaseWords {
                story: tell(case, &of_run),
                clause: clauses.get(&case.clause).map(|clause| ClauseWords {
                    syntax: clause.syntax.clone(),
                    meaning: clause.meaning.clone(),
                    behaviour: clause.behaviour.clone(),
                }),
            };
            (case.id.clone(), words)
        })
        .collect()
}

/// Those cases and controls of the suite whose files are as they were planned.
fn of_run(plan: &Plan, suite: &Suite) -> Suite {
    let planned = plan.cases.iter();
    let same = planned.filter_map(|planned| {
        let now = suite.get(&planned.id)?;
        (suite::case_digest(now) == planned.digest).then(|| now.clone())
    });
    Suite::new(same)
}
