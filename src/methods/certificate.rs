//! What a certificate proves, and what is missing for the suite to be proven.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::case::{Case, CaseId, Method, Role};
use crate::domain::certificate::{Certificate, Subject};
use crate::domain::suite::Suite;
use crate::domain::verdict::Reason;

/// The figures that `certify` prints. Shares are over the suite's cases and mutants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    pub n_cases: usize,
    pub n_controls: usize,
    pub n_mutants: usize,
    pub by_category: BTreeMap<String, usize>,
    pub by_origin: BTreeMap<String, usize>,
    pub n_boundary: usize,
    /// Assertions that hold for a harness that does nothing, and how many of them a control gates.
    pub n_absence: usize,
    pub n_absence_gated: usize,
    /// Mutants that at least one case fails.
    pub n_killed: usize,
    /// Mutants that one case alone fails: without it they live.
    pub n_killed_once: usize,
    /// How many mutants each case kills, after gating.
    pub kills: BTreeMap<CaseId, usize>,
    /// Groups of cases that kill exactly the same mutants.
    pub equal: Vec<Vec<CaseId>>,
    /// What keeps the suite from being proven; empty when it is.
    pub findings: Vec<String>,
}

/// Reads the proof out of a certificate that is current for this suite.
pub fn prove(suite: &Suite, certificate: &Certificate) -> Proof {
    let mut findings = Vec::new();
    for (id, reason) in &certificate.reference.fails {
        findings.push(format!("{id} fails on the reference: {reason}"));
    }
    let mut kills: BTreeMap<CaseId, BTreeSet<&str>> = suite
        .tests()
        .map(|case| (case.id.clone(), BTreeSet::new()))
        .collect();
    let mut n_killed_once = 0;
    for (name, mutant) in &certificate.mutants {
        // A tree that is not delivered fails on everything, and shows nothing about a case.
        if mutant
            .fails
            .values()
            .any(|word| word == Reason::Contract.as_str())
        {
            findings.push(format!("{name} breaks the contract: pipeline check {name}"));
            continue;
        }
        let mut n_fails = 0;
        for case in suite.tests() {
            if !passes(suite, case, mutant) {
                n_fails += 1;
                kills.entry(case.id.clone()).or_default().insert(name);
            } else if mutant.vacuous && is_absence(case) {
                findings.push(format!("{} is passed by the vacuous {name}", case.id));
            }
        }
        match n_fails {
            0 => findings.push(format!("{name} is failed by no case")),
            1 => n_killed_once += 1,
            _ => {}
        }
    }
    for (id, mutants) in &kills {
        if mutants.is_empty() {
            findings.push(format!("{id} fails on no mutant"));
        }
    }
    for control in suite.controls() {
        let unmasks = certificate
            .mutants
            .values()
            .any(|mutant| mutant.vacuous && mutant.fails.contains_key(&control.id));
        if !unmasks {
            findings.push(format!("{} fails on no vacuous mutant", control.id));
        }
    }
    let absences: Vec<&Case> = suite
        .tests()
        .flat_map(|case| {
            case.expects
                .iter()
                .filter(|e| e.is_absence())
                .map(move |_| case)
        })
        .collect();
    Proof {
        n_cases: suite.tests().count(),
        n_controls: suite.controls().count(),
        n_mutants: certificate.mutants.len(),
        by_category: count(
            suite
                .tests()
                .filter_map(|case| Some(case.category()?.to_string())),
        ),
        by_origin: count(suite.tests().map(|case| origin(case).to_owned())),
        n_boundary: suite
            .tests()
            .filter(|case| case.scenario() == Some(crate::domain::clause::Scenario::Boundary))
            .count(),
        n_absence: absences.len(),
        n_absence_gated: absences
            .iter()
            .filter(|case| !case.controls().is_empty())
            .count(),
        n_killed: certificate
            .mutants
            .keys()
            .filter(|name| {
                kills
                    .values()
                    .any(|mutants| mutants.contains(name.as_str()))
            })
            .count(),
        n_killed_once,
        equal: equal(&kills),
        kills: kills
            .into_iter()
            .map(|(id, mutants)| (id, mutants.len()))
            .collect(),
        findings,
    }
}

/// The gated verdict: the case and all its controls passed.
fn passes(suite: &Suite, case: &Case, subject: &Subject) -> bool {
    !subject.fails.contains_key(&case.id)
        && suite
            .gating(case)
            .all(|control| !subject.fails.contains_key(&control.id))
}

fn is_absence(case: &Case) -> bool {
    case.expects.iter().all(|expect| expect.is_absence())
}

fn origin(case: &Case) -> &'static str {
    match &case.role {
        Role::Test {
            origin: Some(origin),
            ..
        } => match origin.method {
            Method::Issues => "issues",
            Method::Comparison => "comparison",
            Method::Expansion => "expansion",
            Method::Document => "document",
        },
        _ => "not said",
    }
}

fn count(names: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn equal(kills: &BTreeMap<CaseId, BTreeSet<&str>>) -> Vec<Vec<CaseId>> {
    let mut groups: BTreeMap<&BTreeSet<&str>, Vec<CaseId>> = BTreeMap::new();
    for (id, mutants) in kills {
        groups.entry(mutants).or_default().push(id.clone());
    }
    let mut groups: Vec<Vec<CaseId>> = groups
        .into_values()
        .filter(|group| group.len() > 1)
        .collect();
    groups.sort();
    groups
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::certificate::CERTIFICATE_FORMAT;

    fn suite() -> Suite {
        let case = |id: &str, head: &str, test: &str| {
            let text = format!(
                "title = \"{id}\"\npurpose = \"p\"\nclause = \"a.b.c\"\n{head}\n[[launch]]\nroute = \"cli\"\n\
                 [[expect]]\nchannel = \"output\"\n{test} = \"x\"\n"
            );
            Case::parse(CaseId::new(id), Path::new(id), &text).expect("a case")
        };
        let test = "category = \"startup\"\nscenario = \"boundary\"\ncontrols = [\"c\"]";
        Suite::new([
            case("startup/absent", test, "lacks"),
            case("startup/there", test, "has"),
            case("controls/c", "class = \"channel\"", "has"),
        ])
    }

    fn subject(vacuous: bool, fails: &[&str]) -> Subject {
        Subject {
            vacuous,
            ..Subject::failing(fails)
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let check = |reference: &[&str], mutants: Vec<(&str, Subject)>, expected: &[&str]| {
            let certificate = Certificate {
                format: CERTIFICATE_FORMAT,
                tool_version: "0".into(),
                tool_sources: "0".into(),
                cases: BTreeMap::new(),
                reference: subject(false, reference),
                mutants: mutants
                    .into_iter()
                    .map(|(name, m)| (name.to_owned(), m))
                    .collect(),
            };
            let proof = prove(&suite(), &certificate);
            assert_eq!(proof.findings, expected);
            proof
        };
        let silent = || ("m/silent", subject(true, &["controls/c", "startup/there"]));
        let leaky = || ("m/leaky", subject(false, &["startup/absent"]));
        let proof = check(&[], vec![silent(), leaky()], &[]);
        assert_eq!((proof.n_mutants, proof.n_killed), (2, 2));
        assert_eq!((proof.n_absence, proof.n_absence_gated), (1, 1));
        // The absence is gated, so that the silent one fails it too.
        assert_eq!(proof.n_killed_once, 1);
        assert!(proof.equal.is_empty());
        let leaks = subject(false, &["startup/absent", "startup/there"]);
        let proof = check(&[], vec![silent(), ("m/leaks", leaks)], &[]);
        let both = ["startup/absent", "startup/there"]
            .map(CaseId::new)
            .to_vec();
        assert_eq!(proof.equal, [both]);
        check(
            &["startup/there"],
            vec![silent(), leaky()],
            &["startup/there fails on the reference: assertion"],
        );
        check(
            &[],
            vec![silent(), leaky(), ("m/same", subject(false, &[]))],
            &["m/same is failed by no case"],
        );
        let mut broken = subject(false, &["controls/c", "startup/absent", "startup/there"]);
        let contract = || "contract".to_owned();
        broken
            .fails
            .values_mut()
            .for_each(|word| *word = contract());
        check(
            &[],
            vec![silent(), leaky(), ("m/broken", broken)],
            &["m/broken breaks the contract: pipeline check m/broken"],
        );
        check(
            &[],
            vec![("m/silent", subject(true, &["startup/there"])), leaky()],
            &[
                "startup/absent is passed by the vacuous m/silent",
                "controls/c fails on no vacuous mutant",
            ],
        );
        check(
            &[],
            vec![leaky()],
            &[
                "startup/there fails on no mutant",
                "controls/c fails on no vacuous mutant",
            ],
        );
    }
}
