//! Why an issue stands where it stands: its best clauses with the terms that matched, and the fields that they stand in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Config, N_CLAUSES_SHOWN, document, open};
use crate::adapters::index::Index;
use crate::domain::clause::Clause;
use crate::domain::issue::IssueKey;
use crate::domain::mining::{FIELDS, RankedIssue};
use crate::methods::relevance::{self, ClauseQuery, Holders};
use crate::methods::text::words;
use crate::stages::scoring::{Basis, Scoring};
use crate::stages::{Context, Failure, Result};
use crate::storage::{issues, ranking};

#[derive(Debug, Serialize)]
pub struct Explanation {
    pub title: String,
    pub url: String,
    pub n_issues: usize,
    #[serde(flatten)]
    pub ranked: RankedIssue,
    /// One entry for each of the best clauses, in their order.
    pub matched_terms: Vec<MatchedTerms>,
}

#[derive(Debug, Serialize)]
pub struct MatchedTerms {
    pub clause: String,
    pub meaning: String,
    /// What each field of the issue adds to the score of the clause.
    pub fields: BTreeMap<&'static str, f64>,
    /// Words of the clause, those that add most first.
    pub terms: Vec<MatchedTerm>,
}

#[derive(Debug, Serialize)]
pub struct MatchedTerm {
    pub word: String,
    /// What it adds to the score of the clause: the sum over the fields.
    pub score: f64,
    pub fields: BTreeMap<&'static str, f64>,
}

/// Explains a place in the stored ranking, by what its scores go by.
pub fn explain(context: &Context, config: &Config, key: &IssueKey) -> Result<Explanation> {
    let document = document(&context.project)?;
    let database = open(context)?;
    let issue = issues::get(&database, key)?.ok_or_else(|| {
        Failure::user(format!("{key} was not collected")).hint("pipeline rank lists issues")
    })?;
    let stale = || Failure::user(format!("{key} is not ranked as it is now")).hint("pipeline rank");
    let mut ranked = ranking::get(&database, key)?.ok_or_else(stale)?;
    let stored = ranking::basis(&database)?.ok_or_else(stale)?;
    if stored.settings != config.scoring.basis(&document)? {
        return Err(stale());
    }
    let basis: Basis = serde_json::from_str(&stored.basis)?;
    let of_issue = std::slice::from_ref(&issue);
    let scoring = Scoring::by(basis, of_issue, &document, &config.scoring)?;
    if scoring.ranking()[0].relevance != ranked.relevance {
        return Err(stale());
    }
    ranked.relevance.clauses.truncate(N_CLAUSES_SHOWN);
    let matching = Matching {
        queries: &scoring.queries,
        index: &scoring.index,
        holders: &scoring.holders,
        n_terms: config.scoring.settings.weights.n_terms,
    };
    let mut matched_terms = Vec::new();
    for best in &ranked.relevance.clauses {
        if let Some(clause) = document.clause(&best.clause) {
            matched_terms.extend(matching.of(0, clause)?);
        }
    }
    Ok(Explanation {
        title: issue.title,
        url: issue.url,
        n_issues: issues::counts(&database)?
            .values()
            .map(|count| count.n_issues as usize)
            .sum(),
        ranked,
        matched_terms,
    })
}

/// What the words that matched are found from.
pub struct Matching<'a> {
    pub queries: &'a [ClauseQuery],
    pub index: &'a Index,
    pub holders: &'a Holders,
    /// Terms of a clause that count.
    pub n_terms: usize,
}

impl Matching<'_> {
    /// What of an issue, by its position in the index, matches a clause; none when the clause has no query.
    pub fn of(&self, issue_idx: usize, clause: &Clause) -> Result<Option<MatchedTerms>> {
        let mut queries = self.queries.iter();
        let Some(query) = queries.find(|query| query.clause == clause.id) else {
            return Ok(None);
        };
        let texts = [&clause.syntax, &clause.meaning, &clause.behaviour];
        let readable = words::readable(texts.into_iter().map(String::as_str), |_| true);
        let mut of_clause: BTreeMap<&'static str, f64> = BTreeMap::new();
        let mut terms = Vec::new();
        for (term, weight) in relevance::normalised(query, self.holders, self.n_terms) {
            let fields: BTreeMap<&'static str, f64> = self
                .index
                .postings_by_field(term)?
                .into_iter()
                .filter(|(found, _, _)| *found == issue_idx)
                .map(|(_, field_idx, score)| (FIELDS[field_idx], weight * f64::from(score)))
                .filter(|(_, score)| *score > 0.0)
                .collect();
            if fields.is_empty() {
                continue;
            }
            for (field, score) in &fields {
                *of_clause.entry(field).or_default() += score;
            }
            terms.push(MatchedTerm {
                word: readable
                    .get(term)
                    .cloned()
                    .unwrap_or_else(|| term.to_owned()),
                score: fields.values().sum(),
                fields,
            });
        }
        terms.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.word.cmp(&b.word))
        });
        Ok(Some(MatchedTerms {
            clause: clause.id.to_string(),
            meaning: clause.meaning.clone(),
            fields: of_clause,
            terms,
        }))
    }
}
