//! One row of a source into the database, whatever source it came from.

use std::collections::BTreeMap;

use rusqlite::Transaction;

use super::Summary;
use crate::methods::issue_form::Row;
use crate::stages::Result;
use crate::storage::comments;
use crate::storage::issues::{self, Stored};

/// Present names of repositories by their former ones in lower case; GitHub does not tell letters of either case apart.
#[derive(Debug, Clone, Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    pub fn insert(&mut self, former: &str, present: &str) {
        self.0.insert(former.to_lowercase(), present.to_owned());
    }

    pub fn present(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_lowercase()).map(String::as_str)
    }
}

/// Stores the row and counts it; true when it brought something.
pub(super) fn store(
    transaction: &Transaction<'_>,
    row: &Row,
    summary: &mut Summary,
) -> Result<bool> {
    Ok(match row {
        Row::Issue(issue) => {
            let stored = issues::store(transaction, issue)?;
            summary.count(stored);
            matches!(stored, Stored::New | Stored::Changed)
        }
        Row::PullRequest(key) => {
            summary.n_pull_requests += 1;
            issues::store_pull_request(transaction, key)?;
            false
        }
        Row::Comment(comment) => {
            let is_new = comments::store(transaction, comment)?;
            summary.n_new_comments += u64::from(is_new);
            is_new
        }
        Row::Gone { key, moved_to } => {
            let was_there = issues::bury(transaction, key, moved_to.as_ref())?;
            summary.n_gone += u64::from(was_there);
            was_there
        }
    })
}
