//! A judged set with its issues, for `rank --judge` and `cluster --judge`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Classify, Failure, Kind, Result};
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::place::Finding;
use crate::methods::issue_form::{self, Row};
use crate::storage::issue_files;
use crate::storage::judged::{self, Judgement};

pub struct JudgedSet {
    /// Those that have a judgement, in the order of their keys.
    pub issues: Vec<Issue>,
    pub judgements: BTreeMap<IssueKey, Judgement>,
    /// Issues without a judgement, left out.
    pub n_unjudged: usize,
}

impl JudgedSet {
    /// Reads a folder; pull requests are left out, broken rows are faults of the set.
    pub fn read(folder: &Path) -> Result<Self> {
        let judgements = judged::read(folder).map_err(|findings| Failure::findings(&findings))?;
        let rows = issue_files::read(&judged::issues_file(folder)).kind(Kind::User)?;
        let mut issues: Vec<Issue> = Vec::new();
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
        if !findings.is_empty() {
            return Err(Failure::findings(&findings));
        }
        let n_all = issues.len();
        issues.retain(|issue| judgements.contains_key(&issue.key));
        issues.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self {
            n_unjudged: n_all - issues.len(),
            issues,
            judgements,
        })
    }
}
