//! How alike the chosen issues are: their vectors, and what naming the same parts of a harness adds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Settings;
use crate::domain::clause::ClauseId;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{IssueTerms, RankedIssue};
use crate::methods::clustering::{self, Items};
use crate::methods::issue_vectors::{Lexicon, Rarity, SparseVector, Weights, lasting_dim};
use crate::methods::text::words;

/// The chosen issues that are there, in the order of their keys.
pub struct Likeness<'a> {
    pub chosen: Vec<Chosen<'a>>,
    pub lexicon: Lexicon<'a>,
    /// Of each chosen issue.
    pub term_weights: Vec<SparseVector>,
    parts: Vec<SparseVector>,
    vectors: Vec<SparseVector>,
    /// Their dimensions come after those of the terms.
    clauses: Vec<&'a ClauseId>,
    pub weights: &'a Weights,
}

#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    pub issue: &'a Issue,
    pub ranked: &'a RankedIssue,
    pub terms: &'a IssueTerms,
}

impl<'a> Likeness<'a> {
    /// `all` are the issues with their terms, the chosen ones among them.
    pub fn new(
        all: &'a [Issue],
        terms: &'a [IssueTerms],
        rarity: &Rarity,
        chosen: &[&'a RankedIssue],
        settings: &'a Settings,
    ) -> Self {
        let wanted: HashSet<&IssueKey> = chosen.iter().map(|ranked| &ranked.key).collect();
        let places: HashMap<&IssueKey, usize> = all
            .iter()
            .enumerate()
            .filter(|(_, issue)| wanted.contains(&issue.key))
            .map(|(place, issue)| (&issue.key, place))
            .collect();
        let chosen: Vec<(usize, &RankedIssue)> = chosen
            .iter()
            .filter_map(|ranked| Some((*places.get(&ranked.key)?, *ranked)))
            .collect();
        let lexicon = Lexicon::by(chosen.iter().map(|(place, _)| &terms[*place]), rarity);
        let weights = &settings.weights;
        let term_weights: Vec<SparseVector> = chosen
            .iter()
            .map(|(place, _)| lexicon.term_weights(&terms[*place], weights))
            .collect();
        let part_terms = part_terms(settings);
        let parts = term_weights
            .iter()
            .map(|terms| lexicon.parts(terms, &part_terms))
            .collect();
        let clauses: Vec<_> = chosen
            .iter()
            .map(|(_, ranked)| ranked.relevance.clauses.as_slice())
            .collect();
        let (vectors, clauses) = lexicon.vectors(&term_weights, &clauses, rarity, weights);
        Self {
            vectors,
            clauses,
            chosen: chosen
                .into_iter()
                .map(|(place, ranked)| Chosen {
                    issue: &all[place],
                    terms: &terms[place],
                    ranked,
                })
                .collect(),
            lexicon,
            term_weights,
            parts,
            weights,
        }
    }

    /// Of two chosen issues, by position.
    pub fn of(&self, a: usize, b: usize) -> f32 {
        clustering::cosine(&self.vectors[a], &self.vectors[b]) + self.bonus(a, b)
    }

    fn bonus(&self, a: usize, b: usize) -> f32 {
        part_bonus(&self.parts[a], &self.parts[b], self.weights)
    }

    /// The vectors with dimensions that other issues' vectors have as well, by issue.
    pub fn lasting_vectors(&self) -> BTreeMap<IssueKey, SparseVector> {
        let terms = (0..self.lexicon.n_terms() as u32).map(|dim| self.lexicon.term(dim));
        let names = terms.chain(self.clauses.iter().map(|clause| clause.as_str()));
        let dims: Vec<u32> = names.map(lasting_dim).collect();
        let vectors = self.vectors.iter().map(|vector| {
            let values = vector.iter();
            values
                .map(|(dim, value)| (dims[*dim as usize], *value))
                .collect()
        });
        let keys = self.chosen.iter().map(|chosen| chosen.issue.key.clone());
        keys.zip(vectors).collect()
    }

    /// Clusters them; what is known is named by position.
    pub fn cluster(&self, known: &clustering::Known, settings: &Settings) -> clustering::Clusters {
        let items = Items {
            vectors: &self.vectors,
            bonus: &|a, b| self.bonus(a, b),
            most_bonus: self.weights.most_bonus(),
        };
        clustering::cluster(&items, known, settings.cut, settings.max_part)
    }
}

/// What the parts that two issues name add to their similarity.
fn part_bonus(a: &SparseVector, b: &SparseVector, weights: &Weights) -> f32 {
    match a.is_empty() || b.is_empty() {
        true => 0.0,
        false => weights.part * (clustering::cosine(a, b) - weights.part_expected),
    }
}

fn part_terms(settings: &Settings) -> BTreeSet<String> {
    let parts = settings.parts.iter();
    parts.map(|part| words::term(part)).collect()
}

/// The positions of those of `many` that are at least as alike to one of `few` as issues of one cluster are. All are
/// lasting vectors, which hold what their issues say of the parts of a harness.
pub fn near(few: &[SparseVector], many: &[&SparseVector], settings: &Settings) -> Vec<usize> {
    let terms = part_terms(settings);
    let dims: HashSet<u32> = terms.iter().map(|term| lasting_dim(term)).collect();
    let parts = |vector: &SparseVector| -> SparseVector {
        let named = vector.iter().filter(|(dim, _)| dims.contains(dim));
        let mut parts: SparseVector = named.copied().collect();
        parts.sort_unstable_by_key(|(dim, _)| *dim);
        let length = parts.iter().map(|(_, value)| value * value).sum::<f32>();
        for (_, value) in &mut parts {
            *value /= length.sqrt();
        }
        parts
    };
    let of_few: Vec<SparseVector> = few.iter().map(parts).collect();
    let of_many: Vec<SparseVector> = many.iter().map(|vector| parts(vector)).collect();
    let weights = &settings.weights;
    let bonus = |a: usize, b: usize| part_bonus(&of_few[a], &of_many[b], weights);
    clustering::near(few, many, settings.cut, weights.most_bonus(), bonus)
}
