//! The quality of the ranking on a judged set: the set's own issues are ranked, nothing is stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Config, document};
use crate::domain::issue::IssueKey;
use crate::methods::ranking_quality::{average_precision, ndcg, work_saved};
use crate::stages::judged_set::JudgedSet;
use crate::stages::scoring::Scoring;
use crate::stages::{Context, Result};

#[derive(Debug, Serialize)]
pub struct Judged {
    pub n_issues: usize,
    pub n_relevant: usize,
    /// Issues without a judgement, those of the set and those it was hidden among.
    pub n_unjudged: usize,
    /// Of the judged issues alone, in the order in which they come; the others are passed over.
    pub judged: Figures,
    /// Of all issues, as if nothing without a judgement were relevant: what the ranking is worth at least.
    pub hidden: Figures,
    /// The judged issues in the order of the ranking.
    pub ranking: Vec<JudgedIssue>,
}

/// None where a figure says nothing, as when no issue is relevant.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub average_precision: Option<f64>,
    pub ndcg_50: Option<f64>,
    pub wss_95: Option<f64>,
}

impl Figures {
    fn of(gains: &[u8]) -> Self {
        Self {
            average_precision: average_precision(gains),
            ndcg_50: ndcg(gains, 50),
            wss_95: work_saved(gains, 0.95),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct JudgedIssue {
    /// Among all issues.
    pub place: u64,
    pub key: String,
    pub relevant: u8,
    pub score: f64,
    pub clause: Option<String>,
    pub title: String,
}

pub fn judge(
    context: &Context,
    config: &Config,
    folder: &Path,
    among: &[PathBuf],
) -> Result<Judged> {
    let document = document(&context.project)?;
    let set = JudgedSet::read(folder, among)?;
    let titles: BTreeMap<&IssueKey, &String> = set
        .issues
        .iter()
        .map(|issue| (&issue.key, &issue.title))
        .collect();
    let all = Scoring::new(&set.issues, &document, &config.scoring)?.ranking();
    let gain = |key: &IssueKey| set.judgements.get(key).map(|judgement| judgement.relevant);
    let hidden: Vec<u8> = all
        .iter()
        .map(|ranked| gain(&ranked.key).unwrap_or(0))
        .collect();
    let ranking: Vec<JudgedIssue> = all
        .into_iter()
        .filter_map(|ranked| {
            let best = ranked.relevance.clauses.first();
            Some(JudgedIssue {
                place: ranked.place,
                relevant: gain(&ranked.key)?,
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
        judged: Figures::of(&gains),
        hidden: Figures::of(&hidden),
        ranking,
    })
}
