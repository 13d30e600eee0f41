//! Verdicts as JUnit XML, for the test pages of CI services.
//!
//! A suite a candidate; a test's class is its category. What broke on our side is an error, not a failure, and what was
//! not asked is skipped.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use crate::domain::case::CaseId;
use crate::domain::results::Facts;
use crate::domain::verdict::{NOT_ASKED, Outcome, Verdict};
use crate::domain::visible::{visible, visible_line};

#[derive(Debug, thiserror::Error)]
#[error("cannot write the verdicts as JUnit XML")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// The whole file as text, in the order of the verdicts, which stand by candidate. `duration_ms` is asked for each unit's own run.
pub fn xml(
    run: &str,
    verdicts: &[Verdict],
    facts: &Facts,
    duration_ms: impl Fn(&str, &CaseId) -> Option<u64>,
) -> Result<String, JunitError> {
    let mut report = Report::new(visible_line(run));
    let mut total = Duration::ZERO;
    for verdicts in verdicts.chunk_by(|a, b| a.candidate == b.candidate) {
        let candidate = &verdicts[0].candidate;
        let mut suite = TestSuite::new(visible_line(candidate));
        let mut suite_time = Duration::ZERO;
        for verdict in verdicts {
            let case = &verdict.case;
            let mut test = test(verdict);
            match facts.get(case) {
                Some(fact) => {
                    test.set_classname(fact.category.as_str());
                    test.add_property(Property::new("title", visible_line(&fact.title)));
                    test.add_property(Property::new("clause", fact.clause.as_str()));
                }
                None => {
                    test.set_classname("unknown");
                }
            }
            if let Some(ms) = duration_ms(candidate, case) {
                let time = Duration::from_millis(ms);
                test.set_time(time);
                suite_time += time;
            }
            suite.add_test_case(test);
        }
        suite.set_time(suite_time);
        total += suite_time;
        report.add_test_suite(suite);
    }
    report.set_time(total);
    Ok(report.to_string()?)
}

fn test(verdict: &Verdict) -> TestCase {
    let status = match &verdict.outcome {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Failed(failure) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(failure.reason.as_str());
            let message = if failure.expected.is_empty() {
                failure.reason.as_str().to_owned()
            } else {
                format!("{}: expected {}", failure.reason, failure.expected)
            };
            status.set_message(visible_line(&message));
            let mut text = String::new();
            for (name, value) in [
                ("expected", &failure.expected),
                ("saw", &failure.saw),
                ("where", &failure.place),
            ] {
                if !value.is_empty() {
                    text += &format!("{name:<9} {}\n", visible(value));
                }
            }
            for control in &verdict.controls {
                text += &format!("control   {}: {}\n", control.name, control.ended);
            }
            status.set_description(visible(&text));
            status
        }
        Outcome::Invalid(fault) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type(fault.kind.as_str());
            status.set_message(visible_line(&fault.message));
            status
        }
        Outcome::NotAsked { why } => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(NOT_ASKED);
            status.set_message(visible_line(why));
            status
        }
    };
    TestCase::new(visible_line(verdict.case.as_str()), status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::verdict::{Failure, Fault, FaultKind, Reason};

    #[test]
    fn is_well_formed_and_counts_agree() {
        let case = CaseId::new("a/b");
        let nasty = "<b>&\"'\x1b[31m]]>\u{0}\u{ffff}\nnext";
        let failed = Outcome::Failed(Failure {
            reason: Reason::Assertion,
            expected: nasty.to_owned(),
            saw: nasty.to_owned(),
            place: "launch 1".to_owned(),
        });
        let invalid = Outcome::Invalid(Fault {
            kind: FaultKind::Sandbox,
            message: nasty.to_owned(),
        });
        let not_asked = Outcome::NotAsked {
            why: nasty.to_owned(),
        };
        let verdicts = [
            Verdict::gated("y", &case, failed, vec![("c".into(), Outcome::Passed)]),
            Verdict::gated("y", &CaseId::new("a/c"), Outcome::Passed, vec![]),
            Verdict::gated("x<", &case, invalid, vec![]),
            Verdict::gated("x<", &CaseId::new("a/c"), not_asked, vec![]),
        ];
        let text = xml("run & co", &verdicts, &Facts::new(), |_, _| Some(1500)).unwrap();
        let read = Report::deserialize_from_str(&text).unwrap();
        assert_eq!((read.tests, read.failures, read.errors), (4, 1, 1));
        assert_eq!(read.test_suites[0].tests, 2);
        assert_eq!(read.test_suites[1].name.as_str(), "x<");
        assert_eq!(read.test_suites[1].errors, 1);
        assert_eq!(read.test_suites[1].disabled, 1);
        assert_eq!(read.time, Some(Duration::from_millis(6000)));
        let TestCaseStatus::NonSuccess { description, .. } =
            &read.test_suites[0].test_cases[0].status
        else {
            panic!("a failure was written");
        };
        let description = description.as_ref().unwrap().as_str();
        assert!(
            description.contains("<b>&\"'␛[31m]]>␀⟨U+FFFF⟩\nnext"),
            "{description}"
        );
    }
}
