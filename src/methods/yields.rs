//! Marginal yield of the three methods, from what reviewers decided last, and which method to use next.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::case::{Case, Method, Role};
use crate::domain::certificate::Certificate;
use crate::domain::decision::{Decision, Subject, SubjectKind, Verb, standing};

/// Decisions that count as the last ones.
pub const WINDOW: usize = 50;

/// What a method gave lately.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Yield {
    pub method: Method,
    /// Cases of the suite that came from it.
    pub n_cases: usize,
    /// Candidates for cases that were decided on, of the last [`WINDOW`].
    pub n_decided: usize,
    pub n_approved: usize,
    /// Approved ÷ decided; none when nothing was decided.
    pub rate: Option<f64>,
    /// Candidates for cases that wait for a decision.
    pub n_waiting: usize,
    /// Mutants that cases of this method alone fail; none without a certificate.
    pub n_alone: Option<usize>,
}

/// Decisions on clusters, differences and cases, and what waits of each.
pub struct Facts<'a> {
    pub decisions: &'a [Decision],
    pub waiting: &'a BTreeMap<SubjectKind, usize>,
    pub suite: &'a [&'a Case],
    pub certificate: Option<&'a Certificate>,
}

/// One row a method, in the order issues, comparison, expansion.
pub fn yields(facts: &Facts<'_>) -> Vec<Yield> {
    [
        (Method::Issues, SubjectKind::Cluster),
        (Method::Comparison, SubjectKind::Difference),
        (Method::Expansion, SubjectKind::Case),
    ]
    .into_iter()
    .map(|(method, kind)| {
        let mut decided: Vec<(Subject, Decision)> = standing(facts.decisions)
            .into_iter()
            .filter(|(subject, one)| {
                subject.kind == kind && matches!(one.decision, Verb::Approve | Verb::Reject)
            })
            .collect();
        decided.sort_by(|(_, a), (_, b)| (&b.at, &b.on).cmp(&(&a.at, &a.on)));
        decided.truncate(WINDOW);
        let n_approved = decided
            .iter()
            .filter(|(_, one)| one.decision == Verb::Approve)
            .count();
        Yield {
            method,
            n_cases: facts
                .suite
                .iter()
                .filter(|case| origin(case) == Some(method))
                .count(),
            n_decided: decided.len(),
            n_approved,
            rate: (!decided.is_empty()).then(|| n_approved as f64 / decided.len() as f64),
            n_waiting: facts.waiting.get(&kind).copied().unwrap_or(0),
            n_alone: facts
                .certificate
                .map(|certificate| n_alone(facts.suite, certificate, method)),
        }
    })
    .collect()
}

/// Mutants that some case of the suite fails, all of which came from one method.
fn n_alone(suite: &[&Case], certificate: &Certificate, method: Method) -> usize {
    let mutants = certificate.mutants.values();
    mutants
        .filter(|mutant| {
            let mut failing = suite
                .iter()
                .filter(|case| mutant.fails.contains_key(&case.id))
                .peekable();
            failing.peek().is_some() && failing.all(|case| origin(case) == Some(method))
        })
        .count()
}

/// What to do next, and why: decide on what waits; else a method that was not tried; else the one that yields most.
pub fn next(yields: &[Yield]) -> String {
    if let Some(full) = yields
        .iter()
        .filter(|one| one.n_waiting > 0)
        .max_by_key(|one| one.n_waiting)
    {
        return format!(
            "decide on what waits: {} candidates from {} (pipeline review list)",
            full.n_waiting,
            name(full.method)
        );
    }
    if let Some(untried) = yields.iter().find(|one| one.rate.is_none()) {
        return format!(
            "use {}: nothing of it was decided on yet ({})",
            name(untried.method),
            command(untried.method)
        );
    }
    let best = yields
        .iter()
        .max_by(|a, b| a.rate.unwrap_or(0.0).total_cmp(&b.rate.unwrap_or(0.0)))
        .expect("there are three methods");
    format!(
        "use {}: {} of its last {} candidates were approved, the most of the three ({})",
        name(best.method),
        best.n_approved,
        best.n_decided,
        command(best.method)
    )
}

pub fn name(method: Method) -> &'static str {
    match method {
        Method::Issues => "issue mining",
        Method::Comparison => "comparison",
        Method::Expansion => "expansion",
        Method::Document => "the document",
    }
}

/// What to type to use it.
fn command(method: Method) -> &'static str {
    match method {
        Method::Issues => "pipeline collect, rank, review, cluster, filter",
        Method::Comparison => "pipeline compare --candidate NAME --target DIR",
        Method::Expansion => "pipeline expand --seed CASE",
        Method::Document => "write one; docs/cases.md",
    }
}

fn origin(case: &Case) -> Option<Method> {
    match &case.role {
        Role::Test {
            origin: Some(origin),
            ..
        } => Some(origin.method),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::certificate::{CERTIFICATE_FORMAT, Subject};

    fn decision(n: usize, on: &str, verb: Verb) -> Decision {
        Decision {
            at: format!("2026-12-01T00:00:{n:02}Z"),
            by: "r".into(),
            on: on.parse().expect("a subject"),
            digest: String::new(),
            decision: verb,
            why: String::new(),
            act: None,
        }
    }

    #[test]
    fn the_next_method_follows_from_what_was_decided() {
        let check = |decisions: &[Decision], waiting: &[(SubjectKind, usize)], expected: &str| {
            let waiting = waiting.iter().copied().collect();
            let yields = yields(&Facts {
                decisions,
                waiting: &waiting,
                suite: &[],
                certificate: None,
            });
            assert!(
                next(&yields).contains(expected),
                "{} / {expected}",
                next(&yields)
            );
        };
        use Verb::{Approve, Reject};
        check(&[], &[], "use issue mining: nothing");
        check(
            &[],
            &[(SubjectKind::Case, 3)],
            "3 candidates from expansion",
        );
        let tried = [
            decision(1, "cluster:a", Reject),
            decision(2, "difference:a", Approve),
            decision(3, "difference:b", Reject),
            decision(4, "case:a/b", Approve),
        ];
        check(&tried[..1], &[], "use comparison: nothing");
        check(&tried, &[], "use expansion: 1 of its last 1");
    }

    #[test]
    fn a_mutant_belongs_to_a_method_whose_cases_alone_fail_it() {
        let case = |id: &str, method: &str| {
            let text = format!(
                "title = \"{id}\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"startup\"\nscenario = \"boundary\"\n\
                 origin = {{ {method} }}\n[[launch]]\nroute = \"cli\"\n[[expect]]\nchannel = \"exit\"\nequals = 0\n"
            );
            Case::parse(CaseId::new(id), Path::new(id), &text).expect("a case")
        };
        let expansion = "method = \"expansion\", seed = \"startup/a\", variable = \"tool\"";
        let cases = [
            case("startup/a", "method = \"document\""),
            case("startup/b", expansion),
            case("startup/c", expansion),
        ];
        let mutants = [
            ("m/both", Subject::failing(&["startup/a", "startup/b"])),
            ("m/expansion", Subject::failing(&["startup/b", "startup/c"])),
            ("m/nobody", Subject::failing(&[])),
            ("m/gone", Subject::failing(&["startup/gone"])),
        ];
        let certificate = Certificate {
            format: CERTIFICATE_FORMAT,
            tool_version: "0".into(),
            tool_sources: "0".into(),
            cases: BTreeMap::new(),
            reference: Subject::failing(&[]),
            mutants: BTreeMap::from(mutants.map(|(name, subject)| (name.to_owned(), subject))),
        };
        let suite: Vec<&Case> = cases.iter().collect();
        let yields = yields(&Facts {
            decisions: &[],
            waiting: &BTreeMap::new(),
            suite: &suite,
            certificate: Some(&certificate),
        });
        let alone: Vec<_> = yields.iter().map(|one| one.n_alone).collect();
        assert_eq!(alone, [Some(0), Some(0), Some(1)]);
    }
}
