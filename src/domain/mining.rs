//! What issue mining makes of issues: their terms, their relevance to the document, clusters, and what the filter said.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::clause::ClauseId;
use super::issue::IssueKey;

/// The terms of an issue, by the part of the issue that they stand in, in their order. A term is shared by all issues
/// that hold it: there are millions of occurrences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueTerms {
    pub title: Vec<Arc<str>>,
    pub prose: Vec<Arc<str>>,
    /// Fenced blocks: settings, commands, what was printed.
    pub code: Vec<Arc<str>>,
    pub log: Vec<Arc<str>>,
    /// Frames of stack traces.
    pub trace: Vec<Arc<str>>,
    /// Programs and systems with their versions.
    pub versions: Vec<Arc<str>>,
    /// The document's terms for words of the reporter.
    pub added: Vec<Arc<str>>,
    /// Code of ISO 639-3; none when the text is too short to say.
    pub language: Option<&'static str>,
}

/// The fields of an issue, in the order of [`IssueTerms::fields`].
pub const FIELDS: [&str; 7] = [
    "title", "prose", "code", "log", "trace", "versions", "added",
];

impl IssueTerms {
    pub fn fields(&self) -> [&[Arc<str>]; FIELDS.len()] {
        [
            &self.title,
            &self.prose,
            &self.code,
            &self.log,
            &self.trace,
            &self.versions,
            &self.added,
        ]
    }

    /// The terms of all fields.
    pub fn all(&self) -> impl Iterator<Item = &Arc<str>> {
        self.fields().into_iter().flatten()
    }
}

/// How well an issue matches a clause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClauseScore {
    pub clause: ClauseId,
    pub score: f64,
}

/// A score and what it was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relevance {
    /// `matched` × `factor` × `length`; comparable within one ranking only.
    pub score: f64,
    /// From the scores of the best clauses.
    pub matched: f64,
    /// 1 when nothing points outside the document, less with every term that does.
    pub factor: f64,
    /// Below 1 for a report that is longer than most, since a long one meets more clauses by chance.
    pub length: f64,
    /// The words that point outside, as `topic: word`, in order.
    pub outside: Vec<String>,
    /// The best clauses, the best first.
    pub clauses: Vec<ClauseScore>,
}

/// A place in the ranking; places count from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedIssue {
    pub place: u64,
    pub key: IssueKey,
    /// Code of ISO 639-3; none when the text is too short to say.
    pub language: Option<String>,
    pub relevance: Relevance,
}

/// A term, which is what is compared, and a word that people wrote for it, which is what is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Term {
    pub term: String,
    pub word: String,
}

/// Issues that report one phenomenon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// From the title of the member with the smallest key, so that it stays when other members come and go.
    pub id: String,
    /// The title of the representative.
    pub label: String,
    /// What the members report, in one line: a sentence of one of them.
    pub effect: String,
    /// The clause that the members match best together; none when none matches.
    pub clause: Option<ClauseId>,
    /// The member that is most like the others.
    pub representative: IssueKey,
    /// In the order of their keys; never empty.
    pub members: Vec<IssueKey>,
    /// The terms that tell the cluster from the others, the strongest first.
    pub terms: Vec<Term>,
}

/// Why a cluster cannot become a case. The list is closed; the topics among them are those of `pipeline/topics.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropRule {
    Vendor,
    Editor,
    Picture,
    Installation,
    OtherProgram,
    Quality,
    Timing,
    /// No clause speaks of it.
    NoClause,
    /// A case of the suite asserts it already.
    Covered,
    /// Another cluster on the same clause reports nearly the same effect and has more material.
    Overlap,
}

impl DropRule {
    pub const ALL: [Self; 10] = [
        Self::Vendor,
        Self::Editor,
        Self::Picture,
        Self::Installation,
        Self::OtherProgram,
        Self::Quality,
        Self::Timing,
        Self::NoClause,
        Self::Covered,
        Self::Overlap,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vendor => "vendor",
            Self::Editor => "editor",
            Self::Picture => "picture",
            Self::Installation => "installation",
            Self::OtherProgram => "other-program",
            Self::Quality => "quality",
            Self::Timing => "timing",
            Self::NoClause => "no-clause",
            Self::Covered => "covered",
            Self::Overlap => "overlap",
        }
    }

    pub fn is_topic(self) -> bool {
        !matches!(self, Self::NoClause | Self::Covered | Self::Overlap)
    }
}

impl fmt::Display for DropRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for DropRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|rule| rule.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no rule of the filter"))
    }
}

/// What the filter said about a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub cluster: String,
    pub kept: bool,
    /// The rule that dropped it; none when it was kept.
    pub rule: Option<DropRule>,
    /// What it was weighed against: another cluster, a case.
    pub counterpart: Option<String>,
    pub reason: String,
}
