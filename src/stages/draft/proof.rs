//! Running a draft: the reference has to pass it with the controls that gate it, and a harness that does nothing must
//! not. Both run in cells, where a draft can do no harm.

use std::sync::Arc;
use std::time::Duration;

use super::{Config, Drafted};
use crate::domain::candidate::REFERENCE;
use crate::domain::case::Case;
use crate::domain::draft::{Check, Refusal};
use crate::domain::suite::Suite;
use crate::domain::verdict::{Failure as Failed, Outcome, Reason, Verdict};
use crate::methods::judge;
use crate::stages::install::{self, Installed};
use crate::stages::trial::{self, Subject};
use crate::stages::{Classify, Context, Failure, Kind, Result, sandboxes};
use crate::storage::candidates;

/// The bare skeleton as a candidate.
const UNCHANGED: &str = "unchanged";
/// Judging takes milliseconds; a path or a pattern of a draft that takes longer is no assertion.
const JUDGING: Duration = Duration::from_secs(10);

/// The reference and the bare skeleton, installed.
pub(super) struct Bench {
    bench: trial::Bench,
    reference: Subject,
    unchanged: Subject,
}

impl Bench {
    pub(super) async fn open(context: &Context, config: &Config) -> Result<Self> {
        let image = &config.sandboxes.image;
        let sandbox = sandboxes::open(context, config.sandbox, image).await?;
        let mut subjects = Vec::new();
        for name in [REFERENCE, UNCHANGED] {
            let candidate =
                candidates::find(&context.project.candidates(), name).kind(Kind::Environment)?;
            let digest = candidates::candidate_digest(&candidate).kind(Kind::Environment)?;
            let frozen = context.project.frozen();
            let limits = config.sandboxes.limits.clone();
            let place = candidates::installed(&frozen, &digest);
            let tree = match place.exists() {
                true => place,
                false => {
                    let installed = install::install(
                        &*sandbox,
                        &limits,
                        config.sandboxes.install_limit(),
                        &frozen,
                        &candidate,
                        &digest,
                        Vec::new(),
                    );
                    match installed.await? {
                        Installed::Tree(tree) => tree,
                        Installed::Refused(why) => {
                            let message = format!("{name} cannot be installed: {why}");
                            return Err(Failure::environment(message));
                        }
                    }
                }
            };
            subjects.push(Subject {
                tree,
                packages: Vec::new(),
                limits,
            });
        }
        let unchanged = subjects.pop().expect("two were installed");
        let reference = subjects.pop().expect("two were installed");
        Ok(Self {
            bench: trial::Bench {
                sandbox,
                run: "draft".to_owned(),
                // Nonces of a draft are thrown away with the cell; only being unlike the text of the case matters.
                seed: context.timestamp(),
            },
            reference,
            unchanged,
        })
    }

    /// None when the draft proves something. An error is ours.
    pub(super) async fn prove(&self, suite: &Suite, drafted: &Drafted) -> Result<Option<Refusal>> {
        let joined = drafted.joined(suite);
        let verdict = self
            .verdict(&joined, &drafted.case, &self.reference)
            .await?;
        if let Outcome::Failed(failure) = &verdict.outcome {
            let of_control = verdict.controls.iter().find(|control| !control.passed);
            let whose = of_control.map_or(String::new(), |control| {
                format!("control {}: ", control.name)
            });
            let reason = format!(
                "the reference fails it: {whose}{}: expected {}; saw {} ({})",
                failure.reason.as_str(),
                failure.expected,
                failure.saw,
                failure.place
            );
            return Ok(Some(Refusal::new(Check::Reference, reason)));
        }
        let verdict = self
            .verdict(&joined, &drafted.case, &self.unchanged)
            .await?;
        Ok(verdict.outcome.passed().then(|| {
            let reason = "a harness that does nothing passes it as well";
            Refusal::new(Check::Unchanged, reason)
        }))
    }

    async fn verdict(&self, suite: &Suite, case: &Case, subject: &Subject) -> Result<Verdict> {
        let own = self.outcome(case, subject).await?;
        let mut controls = Vec::new();
        for control in suite.gating(case) {
            let outcome = self.outcome(control, subject).await?;
            controls.push((control.id.name().to_owned(), outcome));
        }
        Ok(Verdict::gated("", &case.id, own, controls))
    }

    async fn outcome(&self, case: &Case, subject: &Subject) -> Result<Outcome> {
        let evidence = match trial::run(&self.bench, case, subject).await {
            Ok(evidence) => evidence,
            Err(broken) => return Err(Failure::environment(broken.fault.message)),
        };
        let case = Arc::new(case.clone());
        let judged = tokio::task::spawn_blocking(move || judge::judge(&case, &evidence));
        match tokio::time::timeout(JUDGING, judged).await {
            Ok(outcome) => Ok(outcome.expect("judging does not panic")),
            Err(_) => Ok(Outcome::Failed(Failed {
                reason: Reason::Limit,
                expected: "assertions that are judged at once".to_owned(),
                saw: format!("over {} s", JUDGING.as_secs()),
                place: String::new(),
            })),
        }
    }
}
