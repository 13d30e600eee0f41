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
        let part_terms: BTreeSet<String> = settings
            .parts
            .iter()
            .map(|part| words::term(part))
            .collect();
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
        match self.parts[a].is_empty() || self.parts[b].is_empty() {
            true => 0.0,
            false => {
                let alike = clustering::cosine(&self.parts[a], &self.parts[b]);
                self.weights.part * (alike - self.weights.part_expected)
            }
        }
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
