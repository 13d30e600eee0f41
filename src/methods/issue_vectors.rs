//! Issues as vectors that are alike when the issues report the same: the rare terms that they use, the rare clauses that
//! they match, and the parts of a harness that they name. Two reports in different words still meet at the same
//! clauses; two that are alike but for the tool they speak of are two phenomena.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
    /// What naming the same parts of a harness adds to the similarity at most.
    pub part: f32,
    /// The cosine over parts at which nothing is added; below it something is taken away.
    pub part_expected: f32,
}

impl Weights {
    /// What parts of a harness add at most.
    pub fn most_bonus(&self) -> f32 {
        self.part * (1.0 - self.part_expected)
    }
}

/// Dimensions in ascending order with their values, at length 1; empty when there is nothing.
pub type SparseVector = Vec<(u32, f32)>;

/// How many of many issues hold each term, and have each clause among their best. Kept, it weighs the terms of later
/// issues as if they had come with the others, and moves no weight of those.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rarity {
    pub n_issues: usize,
    /// Those that at least two issues hold.
    terms: BTreeMap<String, u32>,
    clauses: BTreeMap<ClauseId, u32>,
}

impl Rarity {
    /// From all issues, not only from those that are compared.
    pub fn of<'a>(
        issues: &[IssueTerms],
        best_clauses: impl Iterator<Item = &'a [ClauseScore]>,
    ) -> Self {
        let mut n_holders: HashMap<&str, u32> = HashMap::new();
        let mut distinct: Vec<&str> = Vec::new();
        for issue in issues {
            distinct.clear();
            distinct.extend(issue.all().map(|term| &**term));
            distinct.sort_unstable();
            distinct.dedup();
            for term in &distinct {
                *n_holders.entry(term).or_default() += 1;
            }
        }
        let mut clauses: BTreeMap<ClauseId, u32> = BTreeMap::new();
        for score in best_clauses.flatten() {
            match clauses.get_mut(&score.clause) {
                Some(n) => *n += 1,
                None => {
                    clauses.insert(score.clause.clone(), 1);
                }
            }
        }
        let shared = n_holders.into_iter().filter(|(_, n)| *n > 1);
        Self {
            n_issues: issues.len(),
            terms: shared.map(|(term, n)| (term.to_owned(), n)).collect(),
            clauses,
        }
    }

    fn of_term(&self, term: &str) -> f64 {
        self.of_holders(self.terms.get(term).copied())
    }

    fn of_clause(&self, clause: &ClauseId) -> f64 {
        self.of_holders(self.clauses.get(clause).copied())
    }

    /// 0 for what all issues have; what was never counted is held by the issue at hand.
    fn of_holders(&self, n: Option<u32>) -> f64 {
        let n = f64::from(n.unwrap_or(1));
        ((1.0 + self.n_issues as f64) / (1.0 + n)).ln().max(0.0)
    }
}

/// The terms of some issues, numbered in the order of the alphabet, and how rare each is.
pub struct Lexicon<'a> {
    terms: Vec<&'a str>,
    dims: HashMap<&'a str, u32>,
    rarity: Vec<f64>,
}

impl<'a> Lexicon<'a> {
    /// With the rarity that the terms have among these issues.
    pub fn of(issues: &'a [IssueTerms]) -> Self {
        let rarity = Rarity::of(issues, std::iter::empty());
        Self::by(issues.iter(), &rarity)
    }

    pub fn by(issues: impl Iterator<Item = &'a IssueTerms>, rarity: &Rarity) -> Self {
        let terms: HashSet<&str> = issues
            .flat_map(IssueTerms::all)
            .map(|term| &**term)
            .collect();
        let mut terms: Vec<&str> = terms.into_iter().collect();
        terms.sort_unstable();
        Self {
            rarity: terms.iter().map(|term| rarity.of_term(term)).collect(),
            dims: terms.iter().copied().zip(0..).collect(),
            terms,
        }
    }

    pub fn n_terms(&self) -> usize {
        self.terms.len()
    }

    pub fn term(&self, dim: u32) -> &'a str {
        self.terms[dim as usize]
    }

    /// The terms of an issue of these, weighted, at length 1.
    pub fn term_weights(&self, issue: &IssueTerms, weights: &Weights) -> SparseVector {
        unit(self.counted(issue, weights))
    }

    /// The same as they are: the more an issue says, the longer.
    pub fn weighted(&self, issue: &IssueTerms, weights: &Weights) -> SparseVector {
        self.counted(issue, weights)
            .into_iter()
            .map(|(dim, value)| (dim, value as f32))
            .collect()
    }

    fn counted(&self, issue: &IssueTerms, weights: &Weights) -> Vec<(u32, f64)> {
        let mut counted: BTreeMap<u32, f64> = BTreeMap::new();
        let fields = [
            (&issue.title, weights.title),
            (&issue.prose, weights.prose),
            (&issue.code, weights.code),
            (&issue.log, weights.code),
            (&issue.added, weights.added),
        ];
        for (terms, weight) in fields {
            for term in terms {
                *counted.entry(self.dims[&**term]).or_default() += weight;
            }
        }
        let weighted = counted
            .into_iter()
            .map(|(dim, n)| (dim, n / (n + weights.half_at) * self.rarity[dim as usize]));
        weighted.filter(|(_, weight)| *weight > 0.0).collect()
    }

    /// What of a vector over terms names the given parts of a harness.
    pub fn parts(&self, terms: &SparseVector, parts: &BTreeSet<String>) -> SparseVector {
        let named = terms
            .iter()
            .filter(|(dim, _)| parts.contains(self.term(*dim)));
        unit(
            named
                .map(|(dim, value)| (*dim, f64::from(*value)))
                .collect(),
        )
    }

    /// One vector an issue, over terms and clauses; and the clauses, whose dimensions come after those of all terms in
    /// their order.
    pub fn vectors<'b>(
        &self,
        terms: &[SparseVector],
        clauses: &[&'b [ClauseScore]],
        rarity: &Rarity,
        weights: &Weights,
    ) -> (Vec<SparseVector>, Vec<&'b ClauseId>) {
        let ids: BTreeSet<&ClauseId> = clauses
            .iter()
            .flat_map(|best| best.iter().map(|score| &score.clause))
            .collect();
        let ids: Vec<&ClauseId> = ids.into_iter().collect();
        let dims: BTreeMap<&ClauseId, u32> =
            ids.iter().copied().zip(self.terms.len() as u32..).collect();
        let term_part = (1.0 - weights.clause_share).sqrt() as f32;
        let clause_part = weights.clause_share.sqrt() as f32;
        let vectors = terms
            .iter()
            .zip(clauses)
            .map(|(terms, best)| {
                let mut of_clauses: Vec<(u32, f64)> = best
                    .iter()
                    .map(|score| {
                        (
                            dims[&score.clause],
                            score.score * rarity.of_clause(&score.clause),
                        )
                    })
                    .collect();
                of_clauses.sort_by_key(|(dim, _)| *dim);
                let scaled = |vector: SparseVector, by: f32| {
                    vector
                        .into_iter()
                        .map(move |(dim, value)| (dim, value * by))
                };
                scaled(terms.clone(), term_part)
                    .chain(scaled(unit(of_clauses), clause_part))
                    .collect()
            })
            .collect();
        (vectors, ids)
    }
}

/// The number of a dimension by its name alone (FNV-1a), so that vectors can be kept and held against those of issues
/// that come later. Two names rarely have one number; their issues then look more alike than they are.
pub fn lasting_dim(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn unit(values: Vec<(u32, f64)>) -> SparseVector {
    let length = values
        .iter()
        .map(|(_, value)| value * value)
        .sum::<f64>()
        .sqrt()
        .max(1e-12);
    values
        .into_iter()
        .map(|(dim, value)| (dim, (value / length) as f32))
        .collect()
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
            part: 0.0,
            part_expected: 0.0,
        }
    }

    fn issue(title: &str) -> IssueTerms {
        IssueTerms {
            title: title.split(' ').map(Into::into).collect(),
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
        let lexicon = Lexicon::of(&issues);
        let clause = |id: &str| {
            vec![ClauseScore {
                clause: id.parse().expect("an id"),
                score: 3.0,
            }]
        };
        let clauses = [clause("a.a.a"), clause("b.b.b"), clause("b.b.b")];
        let best: Vec<&[ClauseScore]> = clauses.iter().map(Vec::as_slice).collect();
        let rarity = Rarity::of(&issues, best.iter().copied());
        let similarity = |share: f64, a: usize, b: usize| {
            let weights = weights(share);
            let terms: Vec<_> = issues
                .iter()
                .map(|issue| lexicon.term_weights(issue, &weights))
                .collect();
            let (vectors, _) = lexicon.vectors(&terms, &best, &rarity, &weights);
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

    #[test]
    fn a_clause_that_all_issues_match_makes_none_alike() {
        let issues = [issue("link"), issue("hook"), issue("rule")];
        let lexicon = Lexicon::of(&issues);
        let clauses: Vec<Vec<ClauseScore>> =
            [&["a.a.a"][..], &["a.a.a", "b.b.b"], &["a.a.a", "b.b.b"]]
                .map(|ids| {
                    let score = |id: &&str| ClauseScore {
                        clause: id.parse().expect("an id"),
                        score: 3.0,
                    };
                    ids.iter().map(score).collect()
                })
                .into();
        let best: Vec<&[ClauseScore]> = clauses.iter().map(Vec::as_slice).collect();
        let rarity = Rarity::of(&issues, best.iter().copied());
        let none = vec![Vec::new(); 3];
        let (vectors, ids) = lexicon.vectors(&none, &best, &rarity, &weights(1.0));
        let ids: Vec<&str> = ids.into_iter().map(ClauseId::as_str).collect();
        assert_eq!(ids, ["a.a.a", "b.b.b"]);
        assert_eq!(dot(&vectors[0], &vectors[1]), 0.0);
        assert!((dot(&vectors[1], &vectors[2]) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn parts_are_what_is_left_of_the_terms() {
        let issues = [
            issue("read breaks gbk"),
            issue("edit breaks gbk"),
            issue("x"),
        ];
        let lexicon = Lexicon::of(&issues);
        let parts = BTreeSet::from(["read".to_owned(), "edit".to_owned()]);
        let found = |idx: usize| {
            let terms = lexicon.term_weights(&issues[idx], &weights(0.0));
            lexicon.parts(&terms, &parts)
        };
        assert_eq!(dot(&found(0), &found(0)), 1.0);
        assert_eq!(dot(&found(0), &found(1)), 0.0);
        assert_eq!(found(2), []);
    }
}
