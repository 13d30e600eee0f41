//! Verdicts of a run against those of an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::case::CaseId;
use crate::domain::verdict::{Outcome, Verdict};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub baseline: String,
    /// Passed there, fails here.
    pub regressions: Vec<Change>,
    /// Failed there, passes here.
    pub fixes: Vec<Change>,
    /// Pairs of verdicts that both count.
    pub n_compared: usize,
    /// Cases that only one of the runs has a verdict on.
    pub n_added: usize,
    pub n_removed: usize,
    /// Pairs of which one is invalid: nothing can be said.
    pub n_invalid: usize,
    /// Candidates that the baseline does not have.
    pub new_candidates: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    pub candidate: String,
    pub case: CaseId,
    /// `pass`, or the reason.
    pub was: String,
    pub is: String,
    /// The case itself is another one now, so the candidate may not be what changed.
    pub case_changed: bool,
}

/// Compares candidates of the same name; where each run has only one, these two, whatever their names.
pub fn compare(
    baseline: &str,
    now: &[Verdict],
    before: &[Verdict],
    changed_cases: &BTreeSet<CaseId>,
) -> Comparison {
    let now_names = names(now);
    let before_names = names(before);
    let counterpart = |name: &str| -> Option<&str> {
        if now_names.len() == 1 && before_names.len() == 1 {
            before_names.first().copied()
        } else {
            before_names.get(name).copied()
        }
    };
    let earlier: BTreeMap<(&str, &CaseId), &Verdict> = before
        .iter()
        .map(|verdict| ((verdict.candidate.as_str(), &verdict.case), verdict))
        .collect();
    let mut comparison = Comparison {
        baseline: baseline.to_owned(),
        regressions: Vec::new(),
        fixes: Vec::new(),
        n_compared: 0,
        n_added: 0,
        n_removed: 0,
        n_invalid: 0,
        new_candidates: now_names
            .iter()
            .filter(|name| counterpart(name).is_none())
            .map(|name| (*name).to_owned())
            .collect(),
    };
    let mut met = BTreeSet::new();
    for verdict in now {
        let Some(other) = counterpart(&verdict.candidate) else {
            continue;
        };
        let Some((key, old)) = earlier.get_key_value(&(other, &verdict.case)) else {
            comparison.n_added += 1;
            continue;
        };
        met.insert(*key);
        let change = || Change {
            candidate: verdict.candidate.clone(),
            case: verdict.case.clone(),
            was: old.outcome.reason().to_owned(),
            is: verdict.outcome.reason().to_owned(),
            case_changed: changed_cases.contains(&verdict.case),
        };
        match (&old.outcome, &verdict.outcome) {
            (was, is) if !was.rule().counted || !is.rule().counted => {
                comparison.n_invalid += 1;
                continue;
            }
            (Outcome::Passed, Outcome::Failed(_)) => comparison.regressions.push(change()),
            (Outcome::Failed(_), Outcome::Passed) => comparison.fixes.push(change()),
            _ => {}
        }
        comparison.n_compared += 1;
    }
    let compared: BTreeSet<&str> = now_names.iter().filter_map(|n| counterpart(n)).collect();
    comparison.n_removed = earlier
        .keys()
        .filter(|key| compared.contains(key.0) && !met.contains(*key))
        .count();
    comparison
}

fn names(verdicts: &[Verdict]) -> BTreeSet<&str> {
    verdicts.iter().map(|v| v.candidate.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::verdict::{Fault, FaultKind, Reason};

    fn verdict(candidate: &str, case: &str, sign: char) -> Verdict {
        let outcome = match sign {
            '+' => Outcome::Passed,
            '-' => Outcome::failed(Reason::Assertion),
            _ => Outcome::Invalid(Fault {
                kind: FaultKind::Files,
                message: String::new(),
            }),
        };
        Verdict::gated(candidate, &CaseId::new(case), outcome, Vec::new())
    }

    fn run(candidate: &str, signs: &str) -> Vec<Verdict> {
        signs
            .chars()
            .enumerate()
            .filter(|(_, sign)| *sign != ' ')
            .map(|(idx, sign)| verdict(candidate, &format!("c/{idx}"), sign))
            .collect()
    }

    #[test]
    fn only_verdicts_that_count_are_compared() {
        let now = run("a", "+--+? +");
        let before = run("a", "++-- ?+");
        let changed = BTreeSet::from([CaseId::new("c/1")]);
        let comparison = compare("old", &now, &before, &changed);
        let cases = |changes: &[Change]| -> Vec<String> {
            changes.iter().map(|c| c.case.to_string()).collect()
        };
        assert_eq!(cases(&comparison.regressions), ["c/1"]);
        assert!(comparison.regressions[0].case_changed);
        assert_eq!(cases(&comparison.fixes), ["c/3"]);
        assert_eq!(comparison.n_compared, 5);
        assert_eq!((comparison.n_added, comparison.n_removed), (1, 1));
        assert_eq!(comparison.n_invalid, 0);
        let broken = compare("old", &run("a", "?+"), &run("a", "+?"), &changed);
        assert_eq!((broken.n_invalid, broken.n_compared), (2, 0));
    }

    #[test]
    fn single_candidates_are_compared_whatever_their_names() {
        let comparison = compare("old", &run("b", "-"), &run("a", "+"), &BTreeSet::new());
        assert_eq!(comparison.regressions.len(), 1);
        let mut now = run("b", "-");
        now.extend(run("a", "-"));
        let comparison = compare("old", &now, &run("a", "+"), &BTreeSet::new());
        assert_eq!(comparison.new_candidates, ["b"]);
        assert_eq!(comparison.regressions.len(), 1);
        assert_eq!(comparison.regressions[0].candidate, "a");
    }
}
