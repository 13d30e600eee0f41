//! The quality of the ranking on a judged set: the set's own issues are ranked, nothing is stored.

use std::path::Path;

use serde::Serialize;

use super::{Config, Scoring, document};
use crate::domain::issue::Issue;
use crate::domain::place::Finding;
use crate::methods::issue_form::{self, Row};
use crate::methods::ranking_quality::{average_precision, ndcg, work_saved};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::{issue_files, judged};

/// None where a figure says nothing, as when no issue is relevant.
#[derive(Debug, Serialize)]
pub struct Judged {
    pub n_issues: usize,
    pub n_relevant: usize,
    /// Issues of the set without a judgement, left out.
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
    let judgements = judged::read(folder).map_err(|findings| Failure::findings(&findings))?;
    let all = issues(folder)?;
    let n_all = all.len();
    let mut issues: Vec<Issue> = all
        .into_iter()
        .filter(|issue| judgements.contains_key(&issue.key))
        .collect();
    issues.sort_by(|a, b| a.key.cmp(&b.key));
    let ranking: Vec<JudgedIssue> = Scoring::new(&issues, &document, config)?
        .ranking()
        .into_iter()
        .map(|ranked| JudgedIssue {
            relevant: judgements[&ranked.key].relevant,
            score: ranked.relevance.score,
            clause: ranked
                .relevance
                .clauses
                .first()
                .map(|best| best.clause.to_string()),
            title: issues
                .iter()
                .find(|issue| issue.key == ranked.key)
                .map(|issue| issue.title.clone())
                .unwrap_or_default(),
            key: ranked.key.to_string(),
        })
        .collect();
    let gains: Vec<u8> = ranking.iter().map(|issue| issue.relevant).collect();
    Ok(Judged {
        n_issues: issues.len(),
        n_relevant: gains.iter().filter(|gain| **gain > 0).count(),
        n_unjudged: n_all - issues.len(),
        average_precision: average_precision(&gains),
        ndcg_50: ndcg(&gains, 50),
        wss_95: work_saved(&gains, 0.95),
        ranking,
    })
}

/// The issues of a judged set; pull requests are left out, broken rows are faults of the set.
fn issues(folder: &Path) -> Result<Vec<Issue>> {
    let rows = issue_files::read(&judged::issues_file(folder)).kind(Kind::User)?;
    let mut issues = Vec::new();
    let mut findings = Vec::new();
    for row in rows {
        let parsed = row.and_then(|(place, value)| {
            issue_form::row(&value, None).map_err(|message| Finding::new(place, message))
        });
        match parsed {
            Ok(Row::Issue(issue)) => issues.push(*issue),
            Ok(Row::PullRequest(_)) => {}
            Err(finding) => findings.push(finding),
        }
    }
    if findings.is_empty() {
        Ok(issues)
    } else {
        Err(Failure::findings(&findings))
    }
}
