//! Getting a planned candidate ready to be run: it is installed when it is not yet, and for a shipping harness its
//! packages are there and each case is put into its words.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::find;
use crate::domain::case::{Case, CaseId};
use crate::domain::suite::Suite;
use crate::domain::verdict::{Failure as Failed, Outcome, Reason};
use crate::methods::asking::{self, Question};
use crate::stages::adapted::{self, Adapted, source_tree};
use crate::stages::install::{self, Installed};
use crate::stages::sandboxes::Settings;
use crate::stages::trial::{Bench, Subject};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::candidates;
use crate::storage::runs::{Plan, PlannedCandidate};

/// A candidate that can be run.
pub(super) struct Ready {
    /// The reason where its installation failed, and with it every case.
    entry: std::result::Result<Arc<Subject>, String>,
    /// Of a shipping harness: how each case is put to it.
    questions: Option<BTreeMap<CaseId, Question>>,
}

impl Ready {
    /// What is to be run for a case, or how it ends without that.
    pub(super) fn trial<'a>(
        &'a self,
        suite: &'a Suite,
        id: &CaseId,
    ) -> std::result::Result<(&'a Arc<Subject>, &'a Case), Outcome> {
        let case = match &self.questions {
            Some(questions) => questions[id]
                .as_ref()
                .map_err(|why| Outcome::NotAsked { why: why.clone() })?,
            None => suite.get(id).expect("the plan was made from this suite"),
        };
        let subject = self.entry.as_ref().map_err(|why| {
            Outcome::Failed(Failed {
                reason: Reason::Contract,
                expected: "install.sh ends with 0".to_owned(),
                saw: why.clone(),
                place: "installation".to_owned(),
            })
        })?;
        Ok((subject, case))
    }
}

pub(super) async fn ready(
    context: &Context,
    settings: &Settings,
    suite: &Suite,
    bench: &Bench,
    plan: &Plan,
    planned: &PlannedCandidate,
) -> Result<Ready> {
    let (installed, adapted) = installed(context, settings, bench, planned).await?;
    let entry = match installed {
        Installed::Tree(tree) => Ok(Arc::new(Subject {
            tree,
            packages: adapted.as_ref().map_or(Vec::new(), Adapted::mounts),
            limits: adapted::limits(adapted.as_ref(), &settings.limits),
        })),
        Installed::Refused(why) if adapted.is_none() => Err(why),
        // What stands between us and a shipping harness is ours.
        Installed::Refused(why) => {
            let message = format!("{} cannot be installed: {why}", planned.name);
            return Err(Failure::environment(message));
        }
    };
    let ids: Vec<&CaseId> = plan.cases.iter().map(|case| &case.id).collect();
    Ok(Ready {
        entry,
        questions: adapted.map(|one| asking::ask(suite, &ids, &one.adapter)),
    })
}

/// The sealed tree of a planned candidate, installed when it is not there yet.
async fn installed(
    context: &Context,
    settings: &Settings,
    bench: &Bench,
    planned: &PlannedCandidate,
) -> Result<(Installed, Option<Adapted>)> {
    let frozen = context.project.frozen();
    let place = candidates::installed(&frozen, &planned.digest);
    if place.exists() {
        let adapted = adapted::read(context, &place, &planned.source)?;
        return Ok((Installed::Tree(place), adapted));
    }
    let candidate = find(context, &planned.source)?;
    if candidates::candidate_digest(&candidate).kind(Kind::Settings)? != planned.digest {
        return Err(Failure::user(format!(
            "{} has changed since the run was begun",
            planned.name
        ))
        .hint("begin a new run: pipeline evaluate"));
    }
    let adapted = adapted::read(context, source_tree(&candidate), &planned.source)?;
    let installed = install::install(
        &*bench.sandbox,
        &adapted::limits(adapted.as_ref(), &settings.limits),
        settings.install_limit(),
        &frozen,
        &candidate,
        &planned.digest,
        adapted.as_ref().map_or(Vec::new(), Adapted::mounts),
    )
    .await?;
    Ok((installed, adapted))
}
