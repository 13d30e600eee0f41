//! Verdicts counted by candidate and category: the one table that `evaluate`, `run`, `show` and `report` print.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::clause::Scenario;
use crate::domain::results::{Facts, Group, Tally};
use crate::domain::verdict::{Outcome, Reason, Verdict};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// In the order in which they first appear among the verdicts: that of the run.
    pub candidates: Vec<CandidateSummary>,
    /// All candidates together.
    pub all: Tally,
    /// How the failed and the invalid ones ended, over all candidates: reason → number.
    pub reasons: BTreeMap<&'static str, usize>,
    /// Passes of a case's own assertions that a failed control turned into a failure.
    pub vacuous: usize,
    /// Verdicts on cases that the suite does not hold (any more): in the totals, but in no category.
    pub without_category: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateSummary {
    pub name: String,
    pub all: Tally,
    /// Passes ÷ counted, from 0 to 1.
    pub rate: Option<f64>,
    /// Only groups with a verdict.
    pub groups: BTreeMap<Group, Tally>,
    pub ordinary: Tally,
    pub boundary: Tally,
    pub reasons: BTreeMap<&'static str, usize>,
    pub vacuous: usize,
}

/// Counts verdicts.
pub fn summarise(verdicts: &[Verdict], facts: &Facts) -> Summary {
    let mut candidates: Vec<CandidateSummary> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    let mut without_category = 0;
    for verdict in verdicts {
        let idx = *place.entry(&verdict.candidate).or_insert_with(|| {
            candidates.push(CandidateSummary::new(&verdict.candidate));
            candidates.len() - 1
        });
        let candidate = &mut candidates[idx];
        candidate.all.add(&verdict.outcome);
        if verdict.outcome.is_finding() {
            *candidate
                .reasons
                .entry(verdict.outcome.reason())
                .or_default() += 1;
        }
        candidate.vacuous += usize::from(is_vacuous(verdict));
        let Some(fact) = facts.get(&verdict.case) else {
            without_category += 1;
            continue;
        };
        candidate
            .groups
            .entry(Group::of(fact.category))
            .or_default()
            .add(&verdict.outcome);
        match fact.scenario {
            Scenario::Ordinary => candidate.ordinary.add(&verdict.outcome),
            Scenario::Boundary => candidate.boundary.add(&verdict.outcome),
        }
    }
    let mut summary = Summary {
        candidates,
        all: Tally::default(),
        reasons: BTreeMap::new(),
        vacuous: 0,
        without_category,
    };
    for candidate in &mut summary.candidates {
        candidate.rate = candidate.all.rate();
        summary.all.passed += candidate.all.passed;
        summary.all.failed += candidate.all.failed;
        summary.all.invalid += candidate.all.invalid;
        summary.all.flaky += candidate.all.flaky;
        summary.all.not_asked += candidate.all.not_asked;
        summary.vacuous += candidate.vacuous;
        for (reason, n) in &candidate.reasons {
            *summary.reasons.entry(reason).or_default() += n;
        }
    }
    summary
}

/// The case's own assertions held, and yet it failed, since a control did.
fn is_vacuous(verdict: &Verdict) -> bool {
    verdict.own.passed()
        && matches!(&verdict.outcome, Outcome::Failed(failure) if failure.reason == Reason::Control)
}

impl CandidateSummary {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            all: Tally::default(),
            rate: None,
            groups: BTreeMap::new(),
            ordinary: Tally::default(),
            boundary: Tally::default(),
            reasons: BTreeMap::new(),
            vacuous: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::{CaseId, Category};
    use crate::domain::results::CaseFacts;
    use crate::domain::verdict::{Fault, FaultKind};

    fn fact(category: Category, scenario: Scenario) -> CaseFacts {
        CaseFacts {
            category,
            scenario,
            title: String::new(),
            clause: "a.b.c".parse().unwrap(),
            controls: Vec::new(),
            family: CaseId::new("x"),
        }
    }

    fn verdict(candidate: &str, case: &str, own: Outcome, controls: &[Outcome]) -> Verdict {
        let controls = controls.iter().map(|o| ("c".to_owned(), o.clone()));
        Verdict::gated(candidate, &CaseId::new(case), own, controls.collect())
    }

    #[test]
    fn counts_by_candidate_and_group() {
        let facts = Facts::from([
            (
                CaseId::new("p"),
                fact(Category::Permissions, Scenario::Boundary),
            ),
            (
                CaseId::new("s"),
                fact(Category::Startup, Scenario::Ordinary),
            ),
        ]);
        let invalid = Outcome::Invalid(Fault {
            kind: FaultKind::Sandbox,
            message: String::new(),
        });
        let failed = Outcome::failed(Reason::Timeout);
        let not_asked = Outcome::NotAsked { why: String::new() };
        let mut verdicts = vec![
            verdict("b", "p", Outcome::Passed, std::slice::from_ref(&failed)),
            verdict("b", "s", failed, &[]),
            verdict("a", "p", Outcome::Passed, &[Outcome::Passed]),
            verdict("a", "s", invalid, &[]),
            verdict("a", "gone", Outcome::Passed, &[]),
            verdict("b", "q", not_asked, &[]),
        ];
        let summary = summarise(&verdicts, &facts);
        let [b, a] = summary.candidates.as_slice() else {
            panic!("two candidates: {summary:?}");
        };
        assert_eq!((b.name.as_str(), a.name.as_str()), ("b", "a"));
        assert_eq!(a.rate, Some(1.0));
        assert_eq!(a.groups[&Group::Other].invalid, 1);
        assert_eq!(a.groups[&Group::Other].rate(), None);
        assert_eq!(b.rate, Some(0.0));
        assert_eq!(b.vacuous, 1);
        assert_eq!(b.boundary.failed, 1);
        assert_eq!((b.all.not_asked, summary.all.not_asked), (1, 1));
        assert_eq!(summary.without_category, 2);
        assert_eq!(
            summary.reasons,
            BTreeMap::from([("control", 1), ("sandbox", 1), ("timeout", 1)])
        );
        verdicts.swap(1, 4);
        assert_eq!(
            summarise(&verdicts, &facts).candidates[1],
            summary.candidates[1]
        );
    }
}
