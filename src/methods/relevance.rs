//! Relevance of issues to the document: every clause is a weighted query, and an issue is as relevant as the
//! clauses that it matches best. What points outside the document (billing, editors, installers) weighs against it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::clause::{Clause, ClauseId};
use crate::domain::mining::{ClauseScore, Relevance};

/// Weights; `pipeline/rank.toml` gives each with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Of the words of a clause's id.
    pub id: f64,
    pub syntax: f64,
    pub meaning: f64,
    pub behaviour: f64,
    /// Terms of a clause that are kept, the heaviest first.
    pub n_terms: usize,
    /// Clauses whose scores are averaged.
    pub n_best: usize,
    /// Share of the very best clause in the score; the average of the best has the rest.
    pub best_share: f64,
    /// How much a term that points outside the document weighs against an issue, in its title and elsewhere.
    pub outside_title: f64,
    pub outside_body: f64,
    /// Power of the length by which a score is divided.
    pub length: f64,
}

/// Distinct terms of title and prose of a report of ordinary length; `length` leaves such a score alone.
const ORDINARY_LENGTH: f64 = 50.0;
/// What is added to every length, so that a report of three words is not taken for one that says much in few.
const SHORTEST_LENGTH: f64 = 40.0;

/// The query of a clause: its terms with their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct ClauseQuery {
    pub clause: ClauseId,
    pub terms: BTreeMap<String, f64>,
}

/// The documents that hold a term, by position, with the score of the term in each.
pub type Postings = BTreeMap<String, Vec<(usize, f32)>>;

/// How many issues there are, and how many hold each term of the clauses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    pub n_issues: usize,
    pub by_term: BTreeMap<String, usize>,
}

impl Holders {
    pub fn of(postings: &Postings, n_issues: usize) -> Self {
        Self {
            n_issues,
            by_term: postings
                .iter()
                .map(|(term, found)| (term.clone(), found.len()))
                .collect(),
        }
    }

    fn of_term(&self, term: &str) -> usize {
        self.by_term.get(term).copied().unwrap_or(0)
    }

    fn rarity(&self, term: &str) -> f64 {
        let n = self.of_term(term) as f64;
        (1.0 + (self.n_issues as f64 - n + 0.5) / (n + 0.5)).ln()
    }
}

/// Counts the terms of a clause; `terms` splits a text.
pub fn query(
    clause: &Clause,
    weights: &Weights,
    terms: impl Fn(&str) -> Vec<String>,
) -> ClauseQuery {
    let id = clause.id.as_str().replace('.', " ");
    let parts = [
        (id.as_str(), weights.id),
        (&clause.syntax, weights.syntax),
        (&clause.meaning, weights.meaning),
        (&clause.behaviour, weights.behaviour),
    ];
    let mut counted: BTreeMap<String, f64> = BTreeMap::new();
    for (text, weight) in parts {
        for term in terms(text) {
            *counted.entry(term).or_default() += weight;
        }
    }
    // A term that a clause repeats ten times is not ten times as telling.
    for count in counted.values_mut() {
        if *count > 1.0 {
            *count = 1.0 + count.ln();
        }
    }
    ClauseQuery {
        clause: clause.id.clone(),
        terms: counted,
    }
}

/// Scores of all clauses for all issues.
pub struct Matches {
    clauses: Vec<ClauseId>,
    n_issues: usize,
    /// One row a clause.
    scores: Vec<f32>,
}

/// Adds the scores of the terms. Each query is cut to its heaviest terms and brought to length 1, so that long
/// clauses do not win by their length.
pub fn matches(
    queries: &[ClauseQuery],
    postings: &Postings,
    n_issues: usize,
    holders: &Holders,
    weights: &Weights,
) -> Matches {
    let mut scores = vec![0f32; queries.len() * n_issues];
    for (query, row) in queries.iter().zip(scores.chunks_mut(n_issues.max(1))) {
        for (term, weight) in normalised(query, holders, weights.n_terms) {
            for (issue_idx, score) in postings.get(term).into_iter().flatten() {
                row[*issue_idx] += (weight as f32) * score;
            }
        }
    }
    Matches {
        clauses: queries.iter().map(|query| query.clause.clone()).collect(),
        n_issues,
        scores,
    }
}

/// The terms of a query that count, with their weights at length 1.
pub fn normalised<'a>(
    query: &'a ClauseQuery,
    holders: &Holders,
    n_terms: usize,
) -> Vec<(&'a str, f64)> {
    let mut terms: Vec<(&str, f64, f64)> = query
        .terms
        .iter()
        .filter(|(term, _)| holders.of_term(term) > 0)
        .map(|(term, weight)| (term.as_str(), *weight, weight * holders.rarity(term)))
        .collect();
    terms.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(b.0)));
    terms.truncate(n_terms);
    let length = terms.iter().map(|term| term.2 * term.2).sum::<f64>().sqrt();
    terms
        .into_iter()
        .map(|(term, weight, _)| (term, weight / length))
        .collect()
}

impl Matches {
    /// The clauses that an issue matches best, the best first; ties in the order of the ids.
    pub fn best(&self, issue_idx: usize, n: usize) -> Vec<ClauseScore> {
        let mut best: Vec<(usize, f32)> = (0..self.clauses.len())
            .map(|clause_idx| {
                (
                    clause_idx,
                    self.scores[clause_idx * self.n_issues + issue_idx],
                )
            })
            .filter(|(_, score)| *score > 0.0)
            .collect();
        best.sort_by(|a, b| {
            b.1.total_cmp(&a.1)
                .then_with(|| self.clauses[a.0].cmp(&self.clauses[b.0]))
        });
        best.truncate(n);
        best.into_iter()
            .map(|(clause_idx, score)| ClauseScore {
                clause: self.clauses[clause_idx].clone(),
                score: rounded(f64::from(score)),
            })
            .collect()
    }
}

/// Terms that point outside the document, each with what is said of it, `topic: word`.
pub type Outside = BTreeMap<String, String>;

/// Puts the parts of an issue's score together. `best` are its best clauses, at least `weights.n_best` of them
/// when there are so many.
pub fn relevance(
    best: Vec<ClauseScore>,
    title: &[Arc<str>],
    body: &[Arc<str>],
    outside: &Outside,
    weights: &Weights,
) -> Relevance {
    let top: f64 = best.first().map_or(0.0, |clause| clause.score);
    let sum: f64 = best
        .iter()
        .take(weights.n_best)
        .map(|clause| clause.score)
        .sum();
    let mean = sum / weights.n_best.max(1) as f64;
    let matched = weights.best_share * top + (1.0 - weights.best_share) * mean;
    let hits = |terms: &[Arc<str>]| -> BTreeSet<String> {
        terms
            .iter()
            .filter_map(|term| outside.get(&**term).cloned())
            .collect()
    };
    let (in_title, in_body) = (hits(title), hits(body));
    let weight =
        in_title.len() as f64 * weights.outside_title + in_body.len() as f64 * weights.outside_body;
    let factor = 1.0 / (1.0 + weight);
    let n_distinct = title.iter().chain(body).collect::<BTreeSet<_>>().len() as f64;
    let length =
        ((SHORTEST_LENGTH + ORDINARY_LENGTH) / (SHORTEST_LENGTH + n_distinct)).powf(weights.length);
    Relevance {
        score: rounded(matched * factor * length),
        matched: rounded(matched),
        factor: rounded(factor),
        length: rounded(length),
        outside: in_title.union(&in_body).cloned().collect(),
        clauses: best,
    }
}

/// Six decimals: differences beyond them are noise of the summation.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> Weights {
        Weights {
            id: 1.0,
            syntax: 1.0,
            meaning: 1.0,
            behaviour: 1.0,
            n_terms: 10,
            n_best: 2,
            best_share: 0.5,
            outside_title: 1.0,
            outside_body: 0.5,
            length: 0.0,
        }
    }

    fn query(clause: &str, terms: &[(&str, f64)]) -> ClauseQuery {
        ClauseQuery {
            clause: clause.parse().expect("an id"),
            terms: terms.iter().map(|(t, w)| ((*t).to_owned(), *w)).collect(),
        }
    }

    fn postings() -> Postings {
        BTreeMap::from([
            ("deny".to_owned(), vec![(0, 2.0), (1, 1.0)]),
            ("edit".to_owned(), vec![(2, 3.0)]),
        ])
    }

    #[test]
    fn an_issue_gets_its_best_clauses_and_ties_go_by_id() {
        let queries = [
            query("b.b.b", &[("deny", 1.0), ("nowhere", 9.0)]),
            query("a.a.a", &[("deny", 1.0)]),
            query("c.c.c", &[("edit", 1.0)]),
        ];
        let holders = Holders::of(&postings(), 4);
        let matches = matches(&queries, &postings(), 4, &holders, &weights());
        let check = |issue_idx: usize, expected: &[&str]| {
            let best = matches.best(issue_idx, 5);
            let ids: Vec<&str> = best.iter().map(|best| best.clause.as_str()).collect();
            assert_eq!(ids, expected);
        };
        check(0, &["a.a.a", "b.b.b"]);
        check(2, &["c.c.c"]);
        check(3, &[]);
    }

    #[test]
    fn a_long_clause_does_not_win_by_its_length() {
        let short = query("a.a.a", &[("deny", 1.0)]);
        let long = query("b.b.b", &[("deny", 1.0), ("edit", 1.0)]);
        let holders = Holders::of(&postings(), 4);
        let matches = matches(&[short, long], &postings(), 4, &holders, &weights());
        let best = matches.best(0, 2);
        assert_eq!(best[0].clause.as_str(), "a.a.a");
        assert!(best[0].score > best[1].score);
    }

    #[test]
    fn of_two_reports_that_match_alike_the_shorter_one_comes_first() {
        let weights = Weights {
            length: 0.5,
            ..weights()
        };
        let best = || {
            vec![ClauseScore {
                clause: "a.a.a".parse().expect("an id"),
                score: 2.0,
            }]
        };
        let check = |n_words: usize, expected: f64| {
            // A word that comes again makes a report no longer.
            let body: Vec<Arc<str>> = (0..2 * n_words)
                .map(|n| format!("w{}", n % n_words).into())
                .collect();
            let found = relevance(best(), &[], &body, &Outside::new(), &weights);
            assert_eq!(found.length, expected, "{n_words}");
            assert_eq!(found.score, rounded(1.5 * expected), "{n_words}");
        };
        check(50, 1.0);
        check(320, 0.5);
    }

    #[test]
    fn what_points_outside_lowers_the_score() {
        let best = || {
            vec![ClauseScore {
                clause: "a.a.a".parse().expect("an id"),
                score: 2.0,
            }]
        };
        let outside = BTreeMap::from([("bill".to_owned(), "vendor: bills".to_owned())]);
        let terms = |text: &str| vec![Arc::from(text)];
        let check = |title: &str, body: &str, score: f64, factor: f64| {
            let found = relevance(best(), &terms(title), &terms(body), &outside, &weights());
            assert_eq!(
                (found.score, found.factor),
                (score, factor),
                "{title} {body}"
            );
        };
        // 0.5 × 2 + 0.5 × (2 + 0) / 2
        check("deny", "rule", 1.5, 1.0);
        check("bill", "rule", 0.75, 0.5);
        check("deny", "bill", 1.0, 0.666667);
        let found = relevance(best(), &terms("bill"), &[], &outside, &weights());
        assert_eq!(found.outside, ["vendor: bills"]);
        let nothing = relevance(Vec::new(), &[], &[], &outside, &weights());
        assert_eq!(nothing.score, 0.0);
    }
}
