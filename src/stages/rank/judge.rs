//! The quality of the ranking on a judged set: the set's own issues are ranked, nothing is stored.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::{Config, document};
use crate::domain::issue::IssueKey;
use crate::methods::ranking_quality::{average_precision, ndcg, work_saved};
use crate::stages::judged_set::JudgedSet;
use crate::stages::scoring::Scoring;
use crate::stages::{Context, Result};

/// None where a figure says nothing, as when no issue is relevant.
#[derive(Debug, Serialize)]
pub struct Judged {
    pub n_issues: usize,
    pub n_relevant: usize,
    /// Issues of the set without a judgement: scored with the others, counted nowhere.
    pub n_unjudged: usize,
    pub average_precision: Option<f64>,
    pub ndcg_50: Option<f64>,
    pub wss_95: Option<f64>,
    /// In the order of the ranking.
    pub ranking: Vec<JudgedIssue>,
}

#[derive(Debug, Serialize)]
pub struct JudgedIssue {
    pub key: String,
    pub relevant: u8,
    pub score: f64,
    pub clause: Option<String>,
    pub title: String,
}

pub fn judge(context: &Context, config: &Config, folder: &Path) -> Result<Judged> {
    let document = document(&context.project)?;
    let set = JudgedSet::read(folder)?;
    let titles: BTreeMap<&IssueKey, &String> = set
        .issues
        .iter()
        .map(|issue| (&issue.key, &issue.title))
        .collect();
    let ranking: Vec<JudgedIssue> = Scoring::new(&set.issues, &document, &config.scoring)?
        .ranking()
        .into_iter()
        .filter_map(|ranked| {
            let best = ranked.relevance.clauses.first();
            Some(JudgedIssue {
                relevant: set.judgements.get(&ranked.key)?.relevant,
                score: ranked.relevance.score,
                clause: best.map(|best| best.clause.to_string()),
                title: titles[&ranked.key].clone(),
                key: ranked.key.to_string(),
            })
        })
        .collect();
    let gains: Vec<u8> = ranking.iter().map(|issue| issue.relevant).collect();
    Ok(Judged {
        n_issues: gains.len(),
        n_relevant: gains.iter().filter(|gain| **gain > 0).count(),
        n_unjudged: set.issues.len() - gains.len(),
        average_precision: average_precision(&gains),
        ndcg_50: ndcg(&gains, 50),
        wss_95: work_saved(&gains, 0.95),
        ranking,
    })
}
