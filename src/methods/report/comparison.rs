//! Verdicts of a run against those of an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::case::{CaseId, Category};
use crate::domain::results::Facts;
use crate::domain::verdict::{Outcome, Verdict};

/// The earlier run.
pub struct Baseline<'a> {
    pub run: &'a str,
    pub verdicts: &'a [Verdict],
    /// Cases whose file is another one now.
    pub changed_cases: BTreeSet<CaseId>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub baseline: String,
    /// Passed there, fails here.
    pub regressions: Vec<Change>,
    /// Failed there, passes here.
    pub fixes: Vec<Change>,
    /// Counted there; here invalid, flaky, not asked, or not run though it is planned.
    pub lost: Vec<Change>,
    /// Of all categories with a change.
    pub categories: BTreeMap<Category, Changes>,
    /// Pairs of verdicts that both count.
    pub n_compared: usize,
    /// Cases that only one of the runs has a verdict on; those that are lost are not among them.
    pub n_added: usize,
    pub n_removed: usize,
    /// Pairs that did not count there: nothing can be said.
    pub n_unknown: usize,
    /// Candidates that the baseline does not have.
    pub new_candidates: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    pub candidate: String,
    pub case: CaseId,
    pub category: Category,
    /// `pass`, or the reason.
    pub was: String,
    pub is: String,
    /// The case itself is another one now, so the candidate may not be what changed.
    pub case_changed: bool,
}

/// Numbers of changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub regressions: usize,
    pub fixes: usize,
    pub lost: usize,
}

/// What stands for a verdict that is not there.
pub const NOT_RUN: &str = "not-run";

/// Compares candidates of the same name; where each run has only one, these two, whatever their names. `candidates` are
/// those of the run as it is now, `facts` its cases: verdicts on others are in neither.
pub fn compare(
    baseline: &Baseline<'_>,
    candidates: &[&str],
    now: &[Verdict],
    facts: &Facts,
) -> Comparison {
    let before_names: BTreeSet<&str> = baseline
        .verdicts
        .iter()
        .map(|verdict| verdict.candidate.as_str())
        .collect();
    let counterpart = |name: &str| -> Option<&str> {
        if candidates.len() == 1 && before_names.len() == 1 {
            before_names.first().copied()
        } else {
            before_names.get(name).copied()
        }
    };
    let by_unit = |verdicts: &'_ [Verdict]| -> BTreeMap<(String, CaseId), Outcome> {
        let pairs = verdicts.iter().map(|verdict| {
            let key = (verdict.candidate.clone(), verdict.case.clone());
            (key, verdict.outcome.clone())
        });
        pairs.collect()
    };
    let (earlier, later) = (by_unit(baseline.verdicts), by_unit(now));
    let mut comparison = Comparison {
        baseline: baseline.run.to_owned(),
        regressions: Vec::new(),
        fixes: Vec::new(),
        lost: Vec::new(),
        categories: BTreeMap::new(),
        n_compared: 0,
        n_added: 0,
        n_removed: 0,
        n_unknown: 0,
        new_candidates: Vec::new(),
    };
    for candidate in candidates {
        let Some(other) = counterpart(candidate) else {
            comparison.new_candidates.push((*candidate).to_owned());
            continue;
        };
        for (case, fact) in facts {
            let was = earlier.get(&(other.to_owned(), case.clone()));
            let is = later.get(&((*candidate).to_owned(), case.clone()));
            let counts = |outcome: &Outcome| outcome.rule().counted;
            let change = |was: &Outcome| Change {
                candidate: (*candidate).to_owned(),
                case: case.clone(),
                category: fact.category,
                was: was.reason().to_owned(),
                is: is.map_or(NOT_RUN, Outcome::reason).to_owned(),
                case_changed: baseline.changed_cases.contains(case),
            };
            match (was, is) {
                (None, None) => {}
                (None, Some(_)) => comparison.n_added += 1,
                (Some(was), _) if !counts(was) => comparison.n_unknown += 1,
                (Some(was), is) if !is.is_some_and(counts) => comparison.lost.push(change(was)),
                (Some(was), Some(is)) => {
                    comparison.n_compared += 1;
                    match (was.passed(), is.passed()) {
                        (true, false) => comparison.regressions.push(change(was)),
                        (false, true) => comparison.fixes.push(change(was)),
                        _ => {}
                    }
                }
                (Some(_), None) => unreachable!("what is not there does not count"),
            }
        }
        comparison.n_removed += earlier
            .keys()
            .filter(|(name, case)| name == other && !facts.contains_key(case))
            .count();
    }
    comparison.count();
    comparison
}

impl Comparison {
    /// Something is worse than it was, or nobody knows any more.
    pub fn is_worse(&self) -> bool {
        !(self.regressions.is_empty() && self.lost.is_empty())
    }

    fn count(&mut self) {
        for change in &self.regressions {
            let of_category = self.categories.entry(change.category).or_default();
            of_category.regressions += 1;
        }
        for change in &self.fixes {
            self.categories.entry(change.category).or_default().fixes += 1;
        }
        for change in &self.lost {
            self.categories.entry(change.category).or_default().lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clause::Scenario;
    use crate::domain::results::CaseFacts;
    use crate::domain::verdict::{Fault, FaultKind, Reason};

    fn facts(n: usize) -> Facts {
        let fact = |idx: usize| {
            let id = CaseId::new(format!("c/{idx}"));
            let fact = CaseFacts {
                category: Category::ALL[idx % 2],
                scenario: Scenario::Ordinary,
                title: String::new(),
                clause: "a.b.c".parse().expect("a clause"),
                controls: Vec::new(),
                family: id.clone(),
            };
            (id, fact)
        };
        (0..n).map(fact).collect()
    }

    /// `+` passes, `-` fails, `?` is invalid, a blank has no verdict.
    fn run(candidate: &str, signs: &str) -> Vec<Verdict> {
        let signs = signs.chars().enumerate().filter(|(_, sign)| *sign != ' ');
        signs
            .map(|(idx, sign)| {
                let outcome = match sign {
                    '+' => Outcome::Passed,
                    '-' => Outcome::failed(Reason::Assertion),
                    _ => Outcome::Invalid(Fault {
                        kind: FaultKind::Files,
                        message: String::new(),
                    }),
                };
                let case = CaseId::new(format!("c/{idx}"));
                Verdict::gated(candidate, &case, outcome, Vec::new())
            })
            .collect()
    }

    fn compared(names: &[&str], now: &[Verdict], before: &[Verdict]) -> Comparison {
        let baseline = Baseline {
            run: "old",
            verdicts: before,
            changed_cases: BTreeSet::from([CaseId::new("c/1")]),
        };
        compare(&baseline, names, now, &facts(7))
    }

    #[test]
    fn what_counted_is_better_worse_or_lost() {
        let comparison = compared(&["a"], &run("a", "+--+? +"), &run("a", "++--++?-"));
        let cases = |changes: &[Change]| -> Vec<String> {
            let told = changes.iter().map(|c| format!("{} {}", c.case, c.is));
            told.collect()
        };
        assert_eq!(cases(&comparison.regressions), ["c/1 assertion"]);
        assert!(comparison.regressions[0].case_changed);
        assert_eq!(cases(&comparison.fixes), ["c/3 pass"]);
        assert_eq!(cases(&comparison.lost), ["c/4 files", "c/5 not-run"]);
        assert_eq!(comparison.n_compared, 4);
        assert_eq!((comparison.n_added, comparison.n_removed), (0, 1));
        assert_eq!(comparison.n_unknown, 1);
        let counts = &comparison.categories[&Category::ALL[1]];
        let expected = Changes {
            regressions: 1,
            fixes: 1,
            lost: 1,
        };
        assert_eq!(*counts, expected);
        assert!(comparison.is_worse());
        assert!(!compared(&["a"], &run("a", "++"), &run("a", "-")).is_worse());
    }

    #[test]
    fn single_candidates_are_compared_whatever_their_names() {
        let comparison = compared(&["b"], &run("b", "-"), &run("a", "+"));
        assert_eq!(comparison.regressions.len(), 1);
        let mut now = run("b", "-");
        now.extend(run("a", "-"));
        let comparison = compared(&["b", "a"], &now, &run("a", "+"));
        assert_eq!(comparison.new_candidates, ["b"]);
        assert_eq!(comparison.regressions.len(), 1);
        assert_eq!(comparison.regressions[0].candidate, "a");
    }
}
