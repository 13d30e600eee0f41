//! Why an issue stands where it stands: its best clauses with the terms that matched.

use serde::Serialize;

use super::{Config, N_CLAUSES_SHOWN, document, open};
use crate::domain::issue::IssueKey;
use crate::domain::mining::RankedIssue;
use crate::methods::relevance;
use crate::methods::text::words;
use crate::stages::scoring::Scoring;
use crate::stages::{Context, Failure, Result};
use crate::storage::issues;

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
    /// Words of the clause with what each adds to its score, the most first.
    pub terms: Vec<(String, f64)>,
}

/// Explains a place in the ranking of what is stored now.
pub fn explain(context: &Context, config: &Config, key: &IssueKey) -> Result<Explanation> {
    let document = document(&context.project)?;
    let database = open(context)?;
    let issues = issues::all(&database)?;
    let issue_idx = issues
        .iter()
        .position(|issue| issue.key == *key)
        .ok_or_else(|| {
            Failure::user(format!("{key} was not collected")).hint("pipeline rank lists issues")
        })?;
    let scoring = Scoring::new(&issues, &document, &config.scoring)?;
    let mut ranked = scoring
        .ranking()
        .into_iter()
        .find(|ranked| ranked.key == *key)
        .expect("every issue is ranked");
    ranked.relevance.clauses.truncate(N_CLAUSES_SHOWN);
    let matched_terms = ranked
        .relevance
        .clauses
        .iter()
        .filter_map(|best| {
            let query = scoring
                .queries
                .iter()
                .find(|query| query.clause == best.clause)?;
            let n_terms = config.scoring.settings.weights.n_terms;
            let mut terms: Vec<(String, f64)> =
                relevance::normalised(query, &scoring.postings, issues.len(), n_terms)
                    .into_iter()
                    .filter_map(|(term, weight)| {
                        let (_, score) = scoring.postings[term]
                            .iter()
                            .find(|(found, _)| *found == issue_idx)?;
                        Some((term.to_owned(), weight * f64::from(*score)))
                    })
                    .collect();
            terms.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let clause = document.clause(&best.clause)?;
            let texts = [&clause.syntax, &clause.meaning, &clause.behaviour];
            let readable = words::readable(texts.into_iter().map(String::as_str), |_| true);
            for (term, _) in &mut terms {
                if let Some(word) = readable.get(term) {
                    term.clone_from(word);
                }
            }
            Some(MatchedTerms {
                clause: best.clause.to_string(),
                meaning: clause.meaning.clone(),
                terms,
            })
        })
        .collect();
    Ok(Explanation {
        title: issues[issue_idx].title.clone(),
        url: issues[issue_idx].url.clone(),
        n_issues: issues.len(),
        ranked,
        matched_terms,
    })
}
