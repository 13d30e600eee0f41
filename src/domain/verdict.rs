//! How a trial ended, as values: outcomes of single runs, and verdicts after the controls have gated them.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::case::CaseId;

/// How one run of one case or control ended, before gating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "status")]
pub enum Outcome {
    Passed,
    Failed(Failure),
    /// Our side broke, or we do not know why; never counted as either.
    Invalid(Fault),
    /// A shipping harness stands behind an adapter that cannot express the case; never counted as either.
    NotAsked {
        why: String,
    },
}

/// Why a candidate failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub reason: Reason,
    /// What was expected, in the words of the assertion.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// What was seen instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub saw: String,
    /// Where in the evidence, for example `launch 1, request 2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// What stands for [`Outcome::NotAsked`] where others have a reason.
pub const NOT_ASKED: &str = "not-asked";

/// The closed list of reasons; [`Reason::rule`] says what follows from each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// An assertion of the case did not hold.
    Assertion,
    /// A control that gates the case failed: the pass proves nothing.
    Control,
    /// A launch was killed at its time limit.
    Timeout,
    /// A launch died of a signal that nobody sent, or of its memory limit.
    Crash,
    /// The candidate's entry could not be started.
    Contract,
    /// It asked the model more often than the script foresees.
    ScriptOverrun,
    /// It wrote more output, or left more files, than is looked at: an absence there would prove nothing.
    Limit,
}

/// What broke on our side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The sandbox could not be made or did not answer.
    Sandbox,
    /// The fixture could not be laid or the files not be read back.
    Files,
    /// No room for evidence.
    DiskFull,
    /// Repetitions of the same case ended differently; nobody knows which of them counts.
    Flaky,
    /// Several machines ran the same unit and it ended differently; nobody knows which of them counts.
    Unstable,
}

/// What follows from how a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Tried again before it is reported.
    pub retried: bool,
    /// Enters the pass rate's denominator.
    pub counted: bool,
}

impl Reason {
    pub const ALL: [Self; 7] = [
        Self::Assertion,
        Self::Control,
        Self::Timeout,
        Self::Crash,
        Self::Contract,
        Self::ScriptOverrun,
        Self::Limit,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Assertion => "assertion",
            Self::Control => "control",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::Contract => "contract",
            Self::ScriptOverrun => "script-overrun",
            Self::Limit => "limit",
        }
    }

    /// A sentence for readers who have never met the word.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Assertion => "What the case expects was not seen.",
            Self::Control => {
                "What the case expects was seen, but a positive control failed: the same would be seen of a candidate \
                 that does nothing, so the pass proves nothing."
            }
            Self::Timeout => "A launch did not end by itself and was killed at its time limit.",
            Self::Crash => {
                "A launch died of a signal that nobody sent it, or was killed over its memory limit."
            }
            Self::Contract => "The entry script of the candidate could not be started.",
            Self::ScriptOverrun => {
                "All that the case expects was seen, but the candidate asked the model more often than the scenario \
                 foresees."
            }
            Self::Limit => {
                "The candidate wrote more output, or left more files, than is looked at, so nothing can be said of what \
                 is missing there."
            }
        }
    }
}

impl FaultKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Files => "files",
            Self::DiskFull => "disk-full",
            Self::Flaky => "flaky",
            Self::Unstable => "unstable",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Outcome {
    pub fn failed(reason: Reason) -> Self {
        Self::Failed(Failure {
            reason,
            expected: String::new(),
            saw: String::new(),
            place: String::new(),
        })
    }

    /// The one table of what is retried and counted.
    pub fn rule(&self) -> Rule {
        let (retried, counted) = match self {
            Self::Passed | Self::Failed(_) => (false, true),
            Self::Invalid(fault) => match fault.kind {
                FaultKind::Sandbox | FaultKind::Files => (true, false),
                FaultKind::DiskFull | FaultKind::Flaky | FaultKind::Unstable => (false, false),
            },
            Self::NotAsked { .. } => (false, false),
        };
        Rule { retried, counted }
    }

    /// Whether it says something of the candidate: our side did not break.
    pub fn is_valid(&self) -> bool {
        !matches!(self, Self::Invalid(_))
    }

    /// Whether machines saw different things, of which none is preferred.
    pub fn is_unstable(&self) -> bool {
        matches!(self, Self::Invalid(fault) if fault.kind == FaultKind::Unstable)
    }

    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Failed or invalid: somebody has to look at it.
    pub fn is_finding(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Invalid(_))
    }

    /// `pass`, `fail`, `invalid` or `not asked`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed(_) => "fail",
            Self::Invalid(_) => "invalid",
            Self::NotAsked { .. } => "not asked",
        }
    }

    /// `pass`, or the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed(failure) => failure.reason.as_str(),
            Self::Invalid(fault) => fault.kind.as_str(),
            Self::NotAsked { .. } => NOT_ASKED,
        }
    }
}

/// The verdict on one case for one candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub candidate: String,
    pub case: CaseId,
    /// After gating.
    pub outcome: Outcome,
    /// The case's own outcome.
    pub own: Outcome,
    /// Each control that gates it, and how it ended (`pass`, or the reason).
    pub controls: Vec<ControlSeen>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlSeen {
    pub name: String,
    pub ended: String,
    pub passed: bool,
}

impl Verdict {
    /// Gates a case's own outcome by its controls: PASS only when it and all of them passed.
    ///
    /// A control that is invalid or not asked makes a pass the same, since nobody knows whether it proves anything;
    /// a failure stays a failure.
    pub fn gated(
        candidate: &str,
        case: &CaseId,
        own: Outcome,
        controls: Vec<(String, Outcome)>,
    ) -> Self {
        let outcome = if own.passed() {
            let failed = controls
                .iter()
                .find(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
            let unknown = controls.iter().find(|(_, outcome)| !outcome.rule().counted);
            match (failed, unknown) {
                (Some((name, control)), _) => Outcome::Failed(Failure {
                    reason: Reason::Control,
                    expected: format!("control {name} passes"),
                    saw: format!("control {name}: {}", control.reason()),
                    place: format!("controls/{name}"),
                }),
                (None, Some((_, control))) => control.clone(),
                (None, None) => Outcome::Passed,
            }
        } else {
            own.clone()
        };
        Self {
            candidate: candidate.to_owned(),
            case: case.clone(),
            outcome,
            own,
            controls: controls
                .into_iter()
                .map(|(name, outcome)| ControlSeen {
                    name,
                    ended: outcome.reason().to_owned(),
                    passed: outcome.passed(),
                })
                .collect(),
        }
    }

    /// The verdict on a case that was run several times: that of all its repetitions when they ended alike. When those
    /// that count ended differently it is flaky; else one that our side broke makes it invalid.
    ///
    /// None of no repetitions.
    pub fn of_repetitions(mut gated: Vec<Self>) -> Option<Self> {
        let n = gated.len();
        let ended: Vec<&str> = gated.iter().map(|one| one.outcome.reason()).collect();
        let counted: BTreeSet<&str> = gated
            .iter()
            .filter(|one| one.outcome.rule().counted)
            .map(|one| one.outcome.reason())
            .collect();
        let flaky = (counted.len() > 1).then(|| {
            Outcome::Invalid(Fault {
                kind: FaultKind::Flaky,
                message: format!("{n} repetitions ended {}", ended.join(", ")),
            })
        });
        let told = gated
            .iter()
            .position(|one| matches!(one.outcome, Outcome::Invalid(_)))
            .or_else(|| gated.iter().position(|one| !one.outcome.passed()))
            .unwrap_or(0);
        (told < n).then(|| {
            let mut verdict = gated.swap_remove(told);
            if let Some(flaky) = flaky {
                verdict.outcome = flaky;
            }
            verdict
        })
    }

    /// Whether its repetitions ended differently.
    pub fn is_flaky(&self) -> bool {
        matches!(&self.outcome, Outcome::Invalid(fault) if fault.kind == FaultKind::Flaky)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid() -> Outcome {
        Outcome::Invalid(Fault {
            kind: FaultKind::Sandbox,
            message: "gone".into(),
        })
    }

    fn not_asked() -> Outcome {
        Outcome::NotAsked {
            why: "no such tool".into(),
        }
    }

    #[test]
    fn controls_gate_passes_only() {
        let check = |own: Outcome, controls: Vec<Outcome>, expected: &str| {
            let controls = controls
                .into_iter()
                .enumerate()
                .map(|(idx, outcome)| (format!("c{idx}"), outcome))
                .collect();
            let verdict = Verdict::gated("x", &CaseId::new("a/b"), own, controls);
            assert_eq!(verdict.outcome.reason(), expected);
        };
        let failed = || Outcome::failed(Reason::Assertion);
        check(Outcome::Passed, vec![], "pass");
        check(
            Outcome::Passed,
            vec![Outcome::Passed, Outcome::Passed],
            "pass",
        );
        check(Outcome::Passed, vec![Outcome::Passed, failed()], "control");
        check(Outcome::Passed, vec![invalid(), failed()], "control");
        check(Outcome::Passed, vec![invalid(), Outcome::Passed], "sandbox");
        check(failed(), vec![invalid()], "assertion");
        check(failed(), vec![failed()], "assertion");
        check(invalid(), vec![failed()], "sandbox");
        check(Outcome::Passed, vec![not_asked()], "not-asked");
        check(not_asked(), vec![failed()], "not-asked");
    }

    #[test]
    fn repetitions_must_end_alike() {
        let failed = |reason| Outcome::failed(reason);
        let check = |outcomes: Vec<Outcome>, expected: &str| {
            let gated = outcomes
                .into_iter()
                .map(|own| Verdict::gated("a", &CaseId::new("x/y"), own, vec![]));
            let verdict = Verdict::of_repetitions(gated.collect());
            let ended = verdict.map(|verdict| verdict.outcome.reason());
            assert_eq!(ended.unwrap_or("none"), expected);
        };
        check(vec![], "none");
        check(vec![Outcome::Passed], "pass");
        check(vec![Outcome::Passed, Outcome::Passed], "pass");
        check(vec![failed(Reason::Crash), failed(Reason::Crash)], "crash");
        check(vec![Outcome::Passed, failed(Reason::Crash)], "flaky");
        check(
            vec![failed(Reason::Timeout), failed(Reason::Crash)],
            "flaky",
        );
        check(vec![Outcome::Passed, invalid()], "sandbox");
        check(
            vec![invalid(), Outcome::Passed, failed(Reason::Crash)],
            "flaky",
        );
    }

    #[test]
    fn nothing_of_ours_is_counted() {
        assert!(Outcome::Passed.rule().counted);
        assert!(Outcome::failed(Reason::Timeout).rule().counted);
        assert!(!invalid().rule().counted);
        assert!(!not_asked().rule().counted && !not_asked().rule().retried);
    }
}
