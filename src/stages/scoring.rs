//! From issues and clauses to scores: what `rank` stores, and what `rank --judge` and `cluster --judge` need for issues
//! that are not stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Classify, Kind, Result};
use crate::adapters::index::{Index, Statistics};
use crate::domain::digest;
use crate::domain::document::Document;
use crate::domain::issue::Issue;
use crate::domain::mining::{FIELDS, IssueTerms, RankedIssue, Relevance};
use crate::methods::relevance::{self, ClauseQuery, Holders, Matches, Outside, Postings, Weights};
use crate::methods::text::markdown::Templates;
use crate::methods::text::vocabulary::{Vocabulary, VocabularyFile};
use crate::methods::text::{self, words};
use crate::methods::topics::Topics;
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::{issues, settings};

/// Raised when the calculation changes, so that stored rankings count as stale.
const CALCULATION: u32 = 4;

/// Clauses that are kept with each issue: enough for clusters to meet in; people are shown fewer.
pub const N_CLAUSES: usize = 30;

/// The settings that scores depend on.
#[derive(Debug, Clone, Serialize)]
pub struct ScoringConfig {
    pub settings: Settings,
    pub vocabulary: VocabularyFile,
    pub topics: Topics,
}

/// `pipeline/rank.toml`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Share of new and changed issues from which on all are ranked anew; fewer are ranked by what is known of the others.
    pub renew_at: f64,
    pub fields: Fields,
    pub weights: Weights,
}

/// Weights of the parts of an issue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    pub title: f32,
    pub prose: f32,
    pub code: f32,
    pub log: f32,
    pub trace: f32,
    pub versions: f32,
    /// The document's terms that the vocabulary adds.
    pub added: f32,
}

impl Fields {
    /// In the order of the fields of an issue.
    pub fn weighted(&self) -> [(&'static str, f32); FIELDS.len()] {
        let weights = [
            self.title,
            self.prose,
            self.code,
            self.log,
            self.trace,
            self.versions,
            self.added,
        ];
        std::array::from_fn(|idx| (FIELDS[idx], weights[idx]))
    }
}

impl ScoringConfig {
    /// From the settings files of a project.
    pub fn read(project: &Project) -> Result<Self> {
        Ok(Self {
            settings: settings::read(&project.settings("rank")).kind(Kind::Settings)?,
            vocabulary: settings::read(&project.settings("vocabulary")).kind(Kind::Settings)?,
            topics: settings::read(&project.settings("topics")).kind(Kind::Settings)?,
        })
    }

    /// Digest over all that a ranking depends on; another one than stored means that the ranking is stale.
    pub fn inputs(&self, database: &Database, document: &Document) -> Result<String> {
        let mut digester = digest::Digester::default();
        digester.part(self.basis(document)?);
        digester.part(issues::digest_of_all(database)?);
        Ok(digester.finish())
    }

    /// Digest over what the scores of any issues depend on.
    pub fn basis(&self, document: &Document) -> Result<String> {
        let mut digester = digest::Digester::default();
        digester.part(CALCULATION.to_le_bytes());
        for chapter in &document.chapters {
            digester.part(&chapter.slug).part(&chapter.markdown);
        }
        digester.part(serde_json::to_string(self)?);
        Ok(digester.finish())
    }
}

/// What scores depend on besides an issue itself: what is common and what is rare in a whole collection. Kept, it scores
/// new issues as if they had come with the others, and moves no score of those.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Lines of forms, by repository.
    template_lines: BTreeMap<String, Vec<String>>,
    statistics: Statistics,
    holders: Holders,
}

/// Everything that scores are made of, for all issues at once.
pub struct Scoring<'a> {
    issues: &'a [Issue],
    weights: &'a Weights,
    pub templates: Templates,
    pub terms: Vec<IssueTerms>,
    outside: Outside,
    pub queries: Vec<ClauseQuery>,
    pub index: Index,
    pub holders: Holders,
    matches: Matches,
}

impl<'a> Scoring<'a> {
    /// Of a whole collection.
    pub fn new(
        issues: &'a [Issue],
        document: &Document,
        config: &'a ScoringConfig,
    ) -> Result<Self> {
        Self::build(issues, document, config, None)
    }

    /// Of some issues, by what was learned from a whole collection.
    pub fn by(
        basis: Basis,
        issues: &'a [Issue],
        document: &Document,
        config: &'a ScoringConfig,
    ) -> Result<Self> {
        Self::build(issues, document, config, Some(basis))
    }

    fn build(
        issues: &'a [Issue],
        document: &Document,
        config: &'a ScoringConfig,
        basis: Option<Basis>,
    ) -> Result<Self> {
        let weights = &config.settings.weights;
        let (templates, statistics, holders) = match basis {
            Some(basis) => (
                Templates::from_lines(&basis.template_lines),
                Some(basis.statistics),
                Some(basis.holders),
            ),
            None => (text::templates(issues), None, None),
        };
        let vocabulary = Vocabulary::new(&config.vocabulary);
        let terms = text::issues_by(issues, &vocabulary, &templates);
        let index = Index::build(
            config.settings.fields.weighted(),
            terms.iter().map(IssueTerms::fields),
            statistics,
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
        let holders = holders.unwrap_or_else(|| Holders::of(&postings, issues.len()));
        let matches = relevance::matches(&queries, &postings, issues.len(), &holders, weights);
        Ok(Self {
            issues,
            weights,
            templates,
            terms,
            outside: config
                .topics
                .terms(words::term)
                .into_iter()
                .map(|(term, found)| (term, format!("{}: {}", found.topic, found.word)))
                .collect(),
            queries,
            index,
            holders,
            matches,
        })
    }

    /// What scores of later issues go by; of a whole collection.
    pub fn basis(&self) -> Result<Basis> {
        let terms = self.holders.by_term.keys().map(String::as_str);
        Ok(Basis {
            template_lines: self.templates.to_lines(),
            statistics: self.index.statistics(terms)?,
            holders: self.holders.clone(),
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
                language: self.terms[issue_idx].language.map(str::to_owned),
                relevance,
            })
            .collect()
    }

    fn relevance(&self, issue_idx: usize) -> Relevance {
        let terms = &self.terms[issue_idx];
        let n_best = self.weights.n_best.max(N_CLAUSES);
        let mut relevance = relevance::relevance(
            self.matches.best(issue_idx, n_best),
            &terms.title,
            &terms.prose,
            &self.outside,
            self.weights,
        );
        relevance.clauses.truncate(N_CLAUSES);
        relevance
    }
}
