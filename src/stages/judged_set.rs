//! A judged set with its issues, for `rank --judge` and `cluster --judge`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Classify, Failure, Kind, Result};
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::place::Finding;
use crate::methods::issue_form::{self, Row};
use crate::storage::issue_files;
use crate::storage::judged::{self, Judgement};

pub struct JudgedSet {
    /// In the order of their keys. Issues without a judgement are scored with the others, so that rare words are
    /// rare as in a big collection; no figure counts them.
    pub issues: Vec<Issue>,
    pub judgements: BTreeMap<IssueKey, Judgement>,
}

impl JudgedSet {
    /// Reads a folder, and the files or folders of issues among which those of the set are hidden. Pull requests are
    /// left out, broken rows are faults of the set; of an issue that is there twice the set's own stays.
    pub fn read(folder: &Path, among: &[PathBuf]) -> Result<Self> {
        let judgements = judged::read(folder).map_err(|findings| Failure::findings(&findings))?;
        let mut issues: Vec<Issue> = Vec::new();
        let mut findings = Vec::new();
        let mut files = vec![judged::issues_file(folder)];
        for path in among {
            files.extend(issue_files::list(path).kind(Kind::User)?);
        }
        for file in files {
            for row in issue_files::read(&file).kind(Kind::User)? {
                let parsed = row.and_then(|(place, value)| {
                    issue_form::rows(&value, None).map_err(|message| Finding::new(place, message))
                });
                match parsed {
                    Ok(rows) => issues.extend(rows.into_iter().filter_map(|row| match row {
                        Row::Issue(issue) => Some(*issue),
                        _ => None,
                    })),
                    Err(finding) => findings.push(finding),
                }
            }
        }
        if !findings.is_empty() {
            return Err(Failure::findings(&findings));
        }
        issues.sort_by(|a, b| a.key.cmp(&b.key));
        issues.dedup_by(|a, b| a.key == b.key);
        Ok(Self { issues, judgements })
    }
}
