//! What the source of a harness shows, and where the sources of two harnesses differ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::clause::ClauseId;

/// What kind of thing a source handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactKind {
    /// A name that is typed to start something, in a shell or in a session.
    Command,
    Flag,
    /// A function that the model may call.
    Tool,
    /// A parameter of a tool; its key is `tool.parameter`.
    Parameter,
    ExitCode,
    /// An error that is raised or reported, with its message.
    Error,
    /// A condition under which a piece of source leaves off, or says something else.
    Check,
    /// An exception that is caught.
    Handler,
    /// A number with a name.
    Limit,
    /// A call that changes or asks something outside of the program.
    Effect,
}

impl FactKind {
    pub const ALL: [Self; 10] = [
        Self::Command,
        Self::Flag,
        Self::Tool,
        Self::Parameter,
        Self::ExitCode,
        Self::Error,
        Self::Check,
        Self::Handler,
        Self::Limit,
        Self::Effect,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Flag => "flag",
            Self::Tool => "tool",
            Self::Parameter => "parameter",
            Self::ExitCode => "exit-code",
            Self::Error => "error",
            Self::Check => "check",
            Self::Handler => "handler",
            Self::Limit => "limit",
            Self::Effect => "effect",
        }
    }

    /// Its key is a name that users or the model write, the same wherever it stands in the source.
    pub fn is_named(self) -> bool {
        matches!(
            self,
            Self::Command | Self::Flag | Self::Tool | Self::Parameter | Self::ExitCode
        )
    }
}

impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for FactKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no kind of fact"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The target handles it, the candidate does not.
    Missing,
    /// Both have it, with different values.
    Differs,
    /// The candidate handles it, the target does not.
    Extra,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Missing, Self::Differs, Self::Extra];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Differs => "differs",
            Self::Extra => "extra",
        }
    }
}

impl FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|side| side.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no side of a difference"))
    }
}

/// What one side has: where, and with which value when it has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sight {
    /// `path:line`, the path below the root of the tree.
    pub place: String,
    /// As the source says it: a message, a name, a value.
    pub shown: String,
}

/// The clause from whose text a difference follows best, and how good the evidence is (0 to 1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    pub clause: ClauseId,
    pub score: f64,
    /// The next best ones.
    pub others: Vec<ClauseId>,
}

/// One difference between a candidate and a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// `target/module/kind-xxxxxxxx`; the same for every candidate that differs in the same way.
    pub id: String,
    /// `chapter.feature` of the document, or [`OUTSIDE`].
    pub module: String,
    pub kind: FactKind,
    pub side: Side,
    /// In words.
    pub title: String,
    /// Absent for [`Side::Extra`].
    pub target: Option<Sight>,
    /// For [`Side::Missing`] the function that serves the clause, if there is one.
    pub candidate: Option<Sight>,
    /// None: not derivable from the document.
    pub trace: Option<Trace>,
}

/// The module of source that no feature of the document claims.
pub const OUTSIDE: &str = "outside";

/// What a reader said about a difference; further fields of the line are for readers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Judgement {
    /// The id of the difference.
    pub difference: String,
    /// The clause that was named first.
    pub clause: ClauseId,
    /// That clause speaks of the matter at the place.
    pub right: bool,
}
