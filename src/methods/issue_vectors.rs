//! Issues as vectors that are alike when the issues report the same: the rare terms that they use, and the clauses that
//! they match. Two reports in different words still meet at the same clauses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::clause::ClauseId;
use crate::domain::mining::{ClauseScore, IssueTerms};

/// `pipeline/cluster.toml` gives each weight with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    pub title: f64,
    pub prose: f64,
    pub code: f64,
    /// Of the document's terms that the vocabulary adds.
    pub added: f64,
    /// Weighted occurrences of a term at which it has half of its full weight.
    pub half_at: f64,
    /// Share of the clauses in the similarity; the terms have the rest.
    pub clause_share: f64,
}

/// In how many issues each term occurs, and of how many.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frequencies {
    n_issues: usize,
    n_holders: BTreeMap<String, u32>,
}

impl Frequencies {
    pub fn of(issues: &[IssueTerms]) -> Self {
        let mut n_holders: BTreeMap<String, u32> = BTreeMap::new();
        for issue in issues {
            let distinct: BTreeSet<&String> = issue.all().collect();
            for term in distinct {
                match n_holders.get_mut(term) {
                    Some(n) => *n += 1,
                    None => drop(n_holders.insert(term.clone(), 1)),
                }
            }
        }
        Self {
            n_issues: issues.len(),
            n_holders,
        }
    }

    /// 0 for a term that all issues have.
    fn rarity(&self, term: &str) -> f64 {
        let n = f64::from(self.n_holders.get(term).copied().unwrap_or(0));
        ((1.0 + self.n_issues as f64) / (1.0 + n)).ln()
    }
}

/// Terms of an issue with their weights, at length 1.
pub fn term_weights(
    issue: &IssueTerms,
    frequencies: &Frequencies,
    weights: &Weights,
) -> BTreeMap<String, f64> {
    let mut counted: BTreeMap<&str, f64> = BTreeMap::new();
    let parts = [
        (&issue.title, weights.title),
        (&issue.prose, weights.prose),
        (&issue.code, weights.code),
        (&issue.added, weights.added),
    ];
    for (terms, weight) in parts {
        for term in terms {
            *counted.entry(term).or_default() += weight;
        }
    }
    let mut weighted: BTreeMap<String, f64> = counted
        .into_iter()
        .map(|(term, n)| {
            let weight = n / (n + weights.half_at) * frequencies.rarity(term);
            (term.to_owned(), weight)
        })
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    let length = length(weighted.values().copied());
    for weight in weighted.values_mut() {
        *weight /= length;
    }
    weighted
}

/// One vector an issue, over terms and clauses; cosine of two is their similarity.
///
/// Dimensions count from 0, terms first, both in the order of their names.
pub fn vectors(
    terms: &[BTreeMap<String, f64>],
    clauses: &[&[ClauseScore]],
    weights: &Weights,
) -> Vec<Vec<(u32, f32)>> {
    let names: BTreeSet<&str> = terms
        .iter()
        .flat_map(|terms| terms.keys().map(String::as_str))
        .collect();
    let term_dims: BTreeMap<&str, u32> = names.into_iter().zip(0..).collect();
    let ids: BTreeSet<&ClauseId> = clauses
        .iter()
        .flat_map(|best| best.iter().map(|score| &score.clause))
        .collect();
    let clause_dims: BTreeMap<&ClauseId, u32> =
        ids.into_iter().zip(term_dims.len() as u32..).collect();
    let (term_part, clause_part) = (
        (1.0 - weights.clause_share).sqrt(),
        weights.clause_share.sqrt(),
    );
    terms
        .iter()
        .zip(clauses)
        .map(|(terms, best)| {
            let clause_length = length(best.iter().map(|score| score.score));
            let of_terms = terms
                .iter()
                .map(|(term, weight)| (term_dims[term.as_str()], (weight * term_part) as f32));
            let mut of_clauses: Vec<(u32, f32)> = best
                .iter()
                .map(|score| {
                    let value = score.score / clause_length * clause_part;
                    (clause_dims[&score.clause], value as f32)
                })
                .collect();
            of_clauses.sort_by_key(|(dim, _)| *dim);
            of_terms.chain(of_clauses).collect()
        })
        .collect()
}

/// At least a tiny number, so that an empty vector stays one.
fn length(values: impl Iterator<Item = f64>) -> f64 {
    values
        .map(|value| value * value)
        .sum::<f64>()
        .sqrt()
        .max(1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(clause_share: f64) -> Weights {
        Weights {
            title: 2.0,
            prose: 1.0,
            code: 0.5,
            added: 0.5,
            half_at: 1.0,
            clause_share,
        }
    }

    fn issue(title: &str) -> IssueTerms {
        IssueTerms {
            title: title.split(' ').map(str::to_owned).collect(),
            ..IssueTerms::default()
        }
    }

    fn dot(a: &[(u32, f32)], b: &[(u32, f32)]) -> f32 {
        a.iter()
            .flat_map(|(dim, x)| {
                b.iter()
                    .filter(move |other| other.0 == *dim)
                    .map(move |(_, y)| x * y)
            })
            .sum()
    }

    #[test]
    fn rare_terms_and_shared_clauses_make_issues_alike() {
        let issues = [
            issue("error link"),
            issue("error link"),
            issue("error hook"),
        ];
        let frequencies = Frequencies::of(&issues);
        let clause = |id: &str| {
            vec![ClauseScore {
                clause: id.parse().expect("an id"),
                score: 3.0,
            }]
        };
        let clauses = [clause("a.a.a"), clause("b.b.b"), clause("b.b.b")];
        let best: Vec<&[ClauseScore]> = clauses.iter().map(Vec::as_slice).collect();
        let similarity = |share: f64, a: usize, b: usize| {
            let weights = weights(share);
            let terms: Vec<_> = issues
                .iter()
                .map(|issue| term_weights(issue, &frequencies, &weights))
                .collect();
            let vectors = vectors(&terms, &best, &weights);
            dot(&vectors[a], &vectors[b])
        };
        let check = |share: f64, a: usize, b: usize, expected: f32| {
            let found = similarity(share, a, b);
            assert!((found - expected).abs() < 1e-5, "{share} {a} {b}: {found}");
        };
        check(0.0, 0, 1, 1.0);
        // `error` is in all issues and counts nothing.
        check(0.0, 0, 2, 0.0);
        check(1.0, 1, 2, 1.0);
        check(0.25, 0, 1, 0.75);
        check(0.25, 1, 2, 0.25);
        check(0.25, 0, 0, 1.0);
    }
}
