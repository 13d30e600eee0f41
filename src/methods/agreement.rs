//! Whether two reviewers judge alike: of what both decided on, their first votes, the share on which they agree, and two
//! coefficients that set off what chance would agree on. Cohen's kappa alone misleads where one answer is rare, so that
//! Gwet's AC1 stands beside it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::decision::{Decision, Subject, Verb};

/// What can be voted: yes, no, unsure.
pub const VOTES: [Verb; 3] = [Verb::Approve, Verb::Reject, Verb::Unsure];

/// Two reviewers on the subjects that both voted on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    pub reviewers: (String, String),
    pub n_both: usize,
    /// Rows are votes of the first, columns those of the second, in the order of [`VOTES`].
    pub votes: [[usize; 3]; 3],
    /// Share on which they agree.
    pub agreed: Option<f64>,
    /// None when chance alone would agree on everything.
    pub kappa: Option<f64>,
    pub ac1: Option<f64>,
    /// With unsure taken for yes, as it is where a second look follows.
    pub kappa_unsure_is_yes: Option<f64>,
}

/// A subject on which first votes differ and nobody decided since.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conflict {
    pub subject: Subject,
    /// The first vote of each, in the order of the votes.
    pub votes: Vec<Decision>,
}

/// The first vote of each reviewer on each subject; one that was taken back is none.
pub fn first_votes(decisions: &[Decision]) -> BTreeMap<Subject, BTreeMap<String, usize>> {
    let mut votes: BTreeMap<Subject, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
    for (idx, made) in decisions.iter().enumerate() {
        let own = votes.entry(made.on.clone()).or_default();
        let own = own.entry(made.by.clone()).or_default();
        match made.decision {
            Verb::Undo => {
                own.pop();
            }
            verb if VOTES.contains(&verb) => own.push(idx),
            _ => {}
        }
    }
    votes
        .into_iter()
        .map(|(subject, by)| {
            let first = by
                .into_iter()
                .filter_map(|(name, own)| Some((name, *own.first()?)));
            (subject, first.collect())
        })
        .collect()
}

/// Every two reviewers who voted on a subject both, in the order of their names.
pub fn agreements(decisions: &[Decision]) -> Vec<Agreement> {
    let votes = first_votes(decisions);
    let names: BTreeSet<&String> = votes.values().flat_map(BTreeMap::keys).collect();
    let mut found = Vec::new();
    for first in &names {
        for second in names.iter().filter(|second| *second > first) {
            let both = votes
                .values()
                .filter_map(|by| Some((*by.get(*first)?, *by.get(*second)?)));
            let mut table = [[0; 3]; 3];
            for (a, b) in both {
                table[place(decisions[a].decision)][place(decisions[b].decision)] += 1;
            }
            if table.as_flattened().iter().any(|n| *n > 0) {
                found.push(agreement((first, second), table));
            }
        }
    }
    found
}

/// Subjects on which first votes differ, unless somebody decided after them all.
pub fn conflicts(decisions: &[Decision]) -> Vec<Conflict> {
    let mut found = Vec::new();
    for (subject, by) in first_votes(decisions) {
        let mut first: Vec<usize> = by.into_values().collect();
        first.sort_unstable();
        let verbs: BTreeSet<usize> = first
            .iter()
            .map(|idx| place(decisions[*idx].decision))
            .collect();
        let last = first.last().copied().unwrap_or_default();
        let is_resolved = decisions[last..]
            .iter()
            .skip(1)
            .any(|made| made.on == subject && VOTES.contains(&made.decision));
        if verbs.len() > 1 && !is_resolved {
            let votes = first.iter().map(|idx| decisions[*idx].clone()).collect();
            found.push(Conflict { subject, votes });
        }
    }
    found
}

fn place(verb: Verb) -> usize {
    VOTES
        .iter()
        .position(|vote| *vote == verb)
        .expect("only votes are counted")
}

fn agreement((first, second): (&str, &str), votes: [[usize; 3]; 3]) -> Agreement {
    let folded = {
        let mut folded = [[0usize; 3]; 3];
        let yes = |vote: usize| if vote == 2 { 0 } else { vote };
        for (a, row) in votes.iter().enumerate() {
            for (b, n) in row.iter().enumerate() {
                folded[yes(a)][yes(b)] += n;
            }
        }
        folded
    };
    let shares = Shares::of(&votes);
    Agreement {
        reviewers: (first.to_owned(), second.to_owned()),
        n_both: votes.as_flattened().iter().sum(),
        votes,
        agreed: shares.as_ref().map(|shares| shares.agreed),
        kappa: shares.as_ref().and_then(Shares::kappa),
        ac1: shares.as_ref().and_then(Shares::ac1),
        kappa_unsure_is_yes: Shares::of(&folded).and_then(|shares| shares.kappa()),
    }
}

struct Shares {
    agreed: f64,
    /// Of each vote, for both reviewers.
    first: [f64; 3],
    second: [f64; 3],
}

impl Shares {
    fn of(votes: &[[usize; 3]; 3]) -> Option<Self> {
        let n = votes.as_flattened().iter().sum::<usize>();
        let share = |count: usize| count as f64 / n as f64;
        (n > 0).then(|| Self {
            agreed: share((0..3).map(|vote| votes[vote][vote]).sum()),
            first: std::array::from_fn(|vote| share(votes[vote].iter().sum())),
            second: std::array::from_fn(|vote| share(votes.iter().map(|row| row[vote]).sum())),
        })
    }

    fn kappa(&self) -> Option<f64> {
        let pairs = self.first.iter().zip(&self.second);
        beyond_chance(self.agreed, pairs.map(|(a, b)| a * b).sum())
    }

    /// Chance agrees on a vote that is neither rare nor common; votes that nobody gave are no choices.
    fn ac1(&self) -> Option<f64> {
        let both = self.first.iter().zip(&self.second);
        let used: Vec<f64> = both
            .map(|(a, b)| (a + b) / 2.0)
            .filter(|share| *share > 0.0)
            .collect();
        let n_choices = used.len().max(2) as f64;
        let chance =
            used.iter().map(|share| share * (1.0 - share)).sum::<f64>() / (n_choices - 1.0);
        beyond_chance(self.agreed, chance)
    }
}

fn beyond_chance(agreed: f64, chance: f64) -> Option<f64> {
    (chance < 1.0 - 1e-12).then(|| (agreed - chance) / (1.0 - chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(by: &str, on: usize, verb: Verb) -> Decision {
        Decision {
            at: "2026-12-01T00:00:00Z".into(),
            by: by.into(),
            on: format!("cluster:c{on}").parse().expect("a subject"),
            digest: String::new(),
            decision: verb,
            why: String::new(),
            act: None,
        }
    }

    /// So many subjects with these votes of `a` and `b`.
    fn doubles(counts: &[(Verb, Verb, usize)]) -> Vec<Decision> {
        let each = counts
            .iter()
            .flat_map(|(a, b, n)| std::iter::repeat_n((*a, *b), *n));
        each.enumerate()
            .flat_map(|(on, (a, b))| [decision("a", on, a), decision("b", on, b)])
            .collect()
    }

    use Verb::{Approve, Note, Reject, Undo, Unsure};

    #[test]
    fn figures_have_known_answers() {
        let check = |counts: &[(Verb, Verb, usize)], agreed: f64, kappa: Option<f64>, ac1: f64| {
            let found = agreements(&doubles(counts)).remove(0);
            let near = |found: Option<f64>, wanted: f64| {
                found.is_some_and(|found| (found - wanted).abs() < 5e-4)
            };
            assert!(near(found.agreed, agreed), "{found:?}");
            assert!(near(found.ac1, ac1), "{found:?}");
            match kappa {
                Some(kappa) => assert!(near(found.kappa, kappa), "{found:?}"),
                None => assert_eq!(found.kappa, None),
            }
        };
        // Cohen's example: 20 + 15 of 50 agreed, .70 against .50 by chance.
        let usual = [
            (Approve, Approve, 20),
            (Approve, Reject, 5),
            (Reject, Approve, 10),
            (Reject, Reject, 15),
        ];
        check(&usual, 0.7, Some(0.4), 0.4059);
        // Rare yes: a negative kappa at 92 % agreement.
        let rare = [
            (Reject, Reject, 92),
            (Approve, Reject, 4),
            (Reject, Approve, 4),
        ];
        check(&rare, 0.92, Some(-0.0417), 0.9134);
        check(&[(Reject, Reject, 9)], 1.0, None, 1.0);
    }

    #[test]
    fn unsure_is_a_vote_of_its_own_and_taken_for_yes_beside() {
        let found = agreements(&doubles(&[
            (Approve, Unsure, 10),
            (Unsure, Approve, 10),
            (Reject, Reject, 20),
        ]));
        assert_eq!(found[0].votes, [[0, 0, 10], [0, 20, 0], [10, 0, 0]]);
        assert_eq!(found[0].agreed, Some(0.5));
        assert_eq!(found[0].kappa_unsure_is_yes, Some(1.0));
    }

    #[test]
    fn first_votes_count_and_a_later_decision_resolves() {
        let mut made = doubles(&[(Approve, Reject, 1), (Approve, Approve, 1)]);
        let conflict = conflicts(&made).remove(0);
        assert_eq!(conflict.subject.id, "c0");
        assert_eq!(conflict.votes.len(), 2);
        made.push(decision("a", 0, Note));
        assert_eq!(conflicts(&made).len(), 1, "a remark resolves nothing");
        made.push(decision("a", 0, Reject));
        assert_eq!(conflicts(&made), []);
        assert_eq!(agreements(&made)[0].agreed, Some(0.5), "of first votes");
        // Taken back, it is open again; and who takes the first vote back has none.
        made.push(decision("a", 0, Undo));
        assert_eq!(agreements(&made)[0].n_both, 2);
        made.push(decision("a", 0, Undo));
        assert_eq!(agreements(&made)[0].n_both, 1);
        assert_eq!(agreements(&[]), []);
    }
}
