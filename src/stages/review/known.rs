//! What is known of all issues at once, calculated when the reviewer's page begins: their terms, the clauses that they
//! match and why, which of them are alike, and the search index.

use std::collections::BTreeSet;

use super::read::{Config, features};
use crate::adapters::index::{Index, Statistics};
use crate::domain::document::Document;
use crate::domain::issue::Issue;
use crate::domain::mining::{ClauseScore, FIELDS, IssueTerms};
use crate::methods::clustering::cosine;
use crate::methods::feedback::Features;
use crate::methods::issue_vectors::Lexicon;
use crate::methods::relevance::{ClauseQuery, Holders};
use crate::methods::text::markdown::{Stretch, Templates};
use crate::methods::text::vocabulary::Vocabulary;
use crate::methods::text::{self, words};
use crate::stages::Result;
use crate::stages::rank::{MatchedTerms, Matching};
use crate::stages::scoring::Scoring;

/// Issues are named by their position in the order of the keys.
pub struct Known {
    document: Document,
    templates: Templates,
    queries: Vec<ClauseQuery>,
    index: Index,
    holders: Holders,
    statistics: Statistics,
    vocabulary: Vocabulary,
    /// Names and weights of the fields of an issue.
    fields: [(&'static str, f32); FIELDS.len()],
    n_terms: usize,
    /// By their number in the features.
    terms: Vec<String>,
    pub features: Vec<Features>,
}

/// Issues less alike than this are none that a reviewer wants to see beside.
const LEAST_ALIKE: f32 = 0.3;
const N_ALIKE: usize = 5;

impl Known {
    /// `places` are those in the ranking.
    pub fn new(
        issues: &[Issue],
        places: impl Iterator<Item = Option<u64>>,
        document: Document,
        config: &Config,
    ) -> Result<Self> {
        let scoring_config = &config.clustering.scoring;
        let scoring = Scoring::new(issues, &document, scoring_config)?;
        let lexicon = Lexicon::of(&scoring.terms);
        let features = features(
            &scoring.terms,
            &lexicon,
            places,
            &config.clustering.settings.weights,
        );
        let terms = (0..lexicon.n_terms() as u32)
            .map(|dim| lexicon.term(dim).to_owned())
            .collect();
        let of_clauses = scoring.holders.by_term.keys().map(String::as_str);
        Ok(Self {
            statistics: scoring.index.statistics(of_clauses)?,
            vocabulary: Vocabulary::new(&scoring_config.vocabulary),
            fields: scoring_config.settings.fields.weighted(),
            templates: scoring.templates,
            terms,
            features,
            n_terms: scoring_config.settings.weights.n_terms,
            queries: scoring.queries,
            index: scoring.index,
            holders: scoring.holders,
            document,
        })
    }

    pub fn term(&self, dim: u32) -> &str {
        &self.terms[dim as usize]
    }

    /// The clauses that an issue matches with the words that did it.
    ///
    /// It is scored in an index of its own, as it would be among the others: in theirs a word of a clause stands in
    /// thousands.
    pub fn matched(&self, issue: &Issue, clauses: &[ClauseScore]) -> Result<Vec<MatchedTerms>> {
        let alone = std::slice::from_ref(issue);
        let terms = text::issues_by(alone, &self.vocabulary, &self.templates);
        let index = Index::build(
            self.fields,
            terms.iter().map(IssueTerms::fields),
            Some(self.statistics.clone()),
        )?;
        let matching = Matching {
            queries: &self.queries,
            index: &index,
            holders: &self.holders,
            n_terms: self.n_terms,
        };
        let mut matched = Vec::new();
        for best in clauses {
            if let Some(clause) = self.document.clause(&best.clause) {
                matched.extend(matching.of(0, clause)?);
            }
        }
        Ok(matched)
    }

    /// The body in stretches.
    pub fn stretches(&self, issue: &Issue) -> Vec<(Stretch, String)> {
        self.templates.stretches(&issue.key.repository, &issue.body)
    }

    /// The issues most like one, the most first, with the cosine of their terms.
    pub fn alike(&self, issue_idx: usize) -> Vec<(usize, f32)> {
        let terms = &self.features[issue_idx].terms;
        let mut alike: Vec<(usize, f32)> = self
            .features
            .iter()
            .enumerate()
            .filter(|(idx, _)| *idx != issue_idx)
            .map(|(idx, other)| (idx, cosine(terms, &other.terms)))
            .filter(|(_, cosine)| *cosine >= LEAST_ALIKE)
            .collect();
        alike.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        alike.truncate(N_ALIKE);
        alike
    }

    /// The issues that hold all words of a text; none when it has no words.
    pub fn search(&self, text: &str) -> Result<Option<BTreeSet<usize>>> {
        let mut found: Option<BTreeSet<usize>> = None;
        for term in words::terms(text) {
            let holders = self.index.postings(&term)?;
            let holders: BTreeSet<usize> = holders.into_iter().map(|(idx, _)| idx).collect();
            found = Some(match found {
                None => holders,
                Some(found) => found.intersection(&holders).copied().collect(),
            });
        }
        Ok(found)
    }
}
