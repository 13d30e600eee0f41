//! A candidate: a directory that somebody filled in, or a mutant, one fault of another candidate.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clause::ClauseId;

/// Where a candidate's tree comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A directory as it stands.
    Tree(PathBuf),
    /// A directory with the edits of a mutant's file made in a copy.
    Mutant { of: PathBuf, file: PathBuf },
}

/// A candidate by name; the name is its path below `candidates/`, or its last part elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub source: Source,
}

/// A file or link of a candidate's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Below the root, with `/` between its parts.
    pub path: String,
    pub kind: FileKind,
    /// The bytes of a file, the target of a link.
    pub content: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Plain,
    Executable,
    Link,
}

impl TreeFile {
    /// The content as text; none when it is not UTF-8, or of a link.
    pub fn text(&self) -> Option<&str> {
        match self.kind {
            FileKind::Link => None,
            FileKind::Plain | FileKind::Executable => std::str::from_utf8(&self.content).ok(),
        }
    }
}

/// The file form of a mutant: exact edits, each of which must match once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MutantFile {
    /// The fault, as a statement about the harness.
    pub title: String,
    /// Clauses that it breaks.
    #[schemars(with = "Vec<String>")]
    pub breaks: Vec<ClauseId>,
    /// The candidate that is changed; [`REFERENCE`] unless said.
    #[serde(default = "reference")]
    pub of: String,
    /// Stands on the ladder of vacuous harnesses: controls must unmask it.
    #[serde(default)]
    pub vacuous: bool,
    pub edit: Vec<Edit>,
}

/// `find` occurs exactly once in `file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    pub file: String,
    pub find: String,
    pub replace: String,
}

/// The name of the candidate that obeys every clause.
pub const REFERENCE: &str = "reference";

fn reference() -> String {
    REFERENCE.to_owned()
}
