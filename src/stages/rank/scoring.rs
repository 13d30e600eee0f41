//! From issues and clauses to a ranking: terms, index, matches, relevance.

use super::{Config, N_CLAUSES};
use crate::adapters::index::Index;
use crate::domain::document::Document;
use crate::domain::issue::Issue;
use crate::domain::mining::{RankedIssue, Relevance};
use crate::methods::relevance::{self, ClauseQuery, Matches, Outside, Postings, Weights};
use crate::methods::text::vocabulary::Vocabulary;
use crate::methods::text::{self, IssueTerms, words};
use crate::stages::Result;

/// Everything that scores are made of, for all issues at once.
pub struct Scoring<'a> {
    issues: &'a [Issue],
    weights: &'a Weights,
    terms: Vec<IssueTerms>,
    outside: Outside,
    pub(super) queries: Vec<ClauseQuery>,
    pub(super) postings: Postings,
    matches: Matches,
}

impl<'a> Scoring<'a> {
    pub fn new(issues: &'a [Issue], document: &Document, config: &'a Config) -> Result<Self> {
        let weights = &config.settings.weights;
        let vocabulary = Vocabulary::new(&config.vocabulary);
        let terms = text::issues(issues, &vocabulary);
        let fields = &config.settings.fields;
        let index = Index::build(
            [
                ("title", fields.title),
                ("prose", fields.prose),
                ("code", fields.code),
            ],
            terms
                .iter()
                .map(|terms| [&terms.title[..], &terms.prose[..], &terms.code[..]]),
        )?;
        let queries: Vec<ClauseQuery> = document
            .clauses()
            .map(|clause| relevance::query(clause, weights, words::terms))
            .collect();
        let mut postings = Postings::new();
        for term in queries.iter().flat_map(|query| query.terms.keys()) {
            if !postings.contains_key(term) {
                postings.insert(term.clone(), index.postings(term)?);
            }
        }
        let matches = relevance::matches(&queries, &postings, issues.len(), weights);
        Ok(Self {
            issues,
            weights,
            terms,
            outside: config.topics.terms(words::term),
            queries,
            postings,
            matches,
        })
    }

    /// The issues from the most to the least relevant; ties go by key.
    pub fn ranking(&self) -> Vec<RankedIssue> {
        let mut scored: Vec<(usize, Relevance)> = (0..self.issues.len())
            .map(|issue_idx| (issue_idx, self.relevance(issue_idx)))
            .collect();
        scored.sort_by(|a, b| {
            b.1.score
                .total_cmp(&a.1.score)
                .then_with(|| self.issues[a.0].key.cmp(&self.issues[b.0].key))
        });
        scored
            .into_iter()
            .enumerate()
            .map(|(idx, (issue_idx, relevance))| RankedIssue {
                place: idx as u64 + 1,
                key: self.issues[issue_idx].key.clone(),
                relevance,
            })
            .collect()
    }

    fn relevance(&self, issue_idx: usize) -> Relevance {
        let terms = &self.terms[issue_idx];
        let best = self
            .matches
            .best(issue_idx, self.weights.n_best.max(N_CLAUSES));
        let mut relevance = relevance::relevance(
            best,
            &terms.title,
            &terms.prose,
            &self.outside,
            self.weights,
        );
        relevance.clauses.truncate(N_CLAUSES);
        relevance
    }
}
