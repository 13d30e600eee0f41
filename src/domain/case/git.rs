//! A repository with history, as a fixture describes it. Dates and names are fixed, so that the same description has
//! the same ids in every run; nonces in it change them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fixture::check_fixture_path;

pub const DEFAULT_BRANCH: &str = "main";

/// A folder that is a repository; its commits in the order in which they are made. Other entries below the folder are
/// laid over what is checked out: changes that are not committed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Git {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<Commit>,
    /// The branch that is checked out; `main` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    pub message: String,
    /// Files that are new or changed, with their text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Files that are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// The branch that it is made on; `main` unless said. A new branch begins at the commit before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A branch that is its second parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl Git {
    pub fn head(&self) -> &str {
        self.head.as_deref().unwrap_or(DEFAULT_BRANCH)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let mut branches = BTreeSet::new();
        let mut tags = BTreeSet::new();
        for (idx, commit) in self.commits.iter().enumerate() {
            let number = idx + 1;
            let names = [&commit.branch, &commit.merge, &commit.tag];
            if let Some(name) = names.into_iter().flatten().find(|name| !is_ref(name)) {
                return Err(format!(
                    "commit {number}: {name:?} is no name of a branch or a tag"
                ));
            }
            for path in commit.files.keys().chain(&commit.remove) {
                let inside_git = path == ".git" || path.starts_with(".git/");
                if path.starts_with('{') || inside_git || check_fixture_path(path).is_err() {
                    return Err(format!(
                        "commit {number}: {path:?} is no path in the repository"
                    ));
                }
            }
            if let Some(name) = commit.merge.as_deref()
                && (!branches.contains(name) || name == commit.branch())
            {
                return Err(format!(
                    "commit {number}: there is no other branch {name:?} yet"
                ));
            }
            if let Some(tag) = &commit.tag
                && !tags.insert(tag)
            {
                return Err(format!("commit {number}: the tag {tag:?} is there already"));
            }
            branches.insert(commit.branch());
        }
        if !self.commits.is_empty() && !branches.contains(self.head()) {
            return Err(format!(
                "head: no commit is on the branch {:?}",
                self.head()
            ));
        }
        match is_ref(self.head()) {
            true => Ok(()),
            false => Err(format!("head: {:?} is no name of a branch", self.head())),
        }
    }
}

impl Commit {
    pub fn branch(&self) -> &str {
        self.branch.as_deref().unwrap_or(DEFAULT_BRANCH)
    }
}

/// The plain part of what git takes as a name.
fn is_ref(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    let part = |part: &str| !part.is_empty() && part.starts_with(|c: char| c != '-');
    name.chars().all(plain) && name.split('/').all(part)
}
