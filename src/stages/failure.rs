//! What a stage hands to the surface when it cannot go on: a kind, a source and hints that say what to type.

use std::fmt;

use crate::domain::place::Finding;

/// Who has to do something about it; the surface maps it to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command's words are off, or name something that is not there.
    User,
    /// A file that people write is wrong; the text names the file and the line.
    Settings,
    /// The machine lacks something: a daemon, a permission, room on the disk, the network.
    Environment,
    /// A bug of ours.
    Internal,
    /// Somebody pressed Ctrl-C; what was finished is kept.
    Interrupted,
    /// A shard was cut short, here and now; what was finished is kept.
    Again,
    /// A shard cannot be run here at all: what it needs is not what was planned.
    Never,
}

#[derive(Debug)]
pub struct Failure {
    pub kind: Kind,
    pub source: anyhow::Error,
    pub hints: Vec<String>,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            source: anyhow::Error::msg(message.into()),
            hints: Vec::new(),
        }
    }

    pub fn user(message: impl Into<String>) -> Self {
        Self::new(Kind::User, message)
    }

    pub fn settings(message: impl Into<String>) -> Self {
        Self::new(Kind::Settings, message)
    }

    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Kind::Environment, message)
    }

    /// Faults in files that people write, one a line.
    pub fn findings(findings: &[Finding]) -> Self {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        Self::settings(lines.join("\n"))
    }

    /// Says what to type.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.source)
    }
}

/// What nobody classified is a bug of ours.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            kind: Kind::Internal,
            source: error.into(),
            hints: Vec::new(),
        }
    }
}

/// Gives an error its kind on the way up.
pub trait Classify<T> {
    fn kind(self, kind: Kind) -> Result<T>;
}

impl<T, E: Into<anyhow::Error>> Classify<T> for std::result::Result<T, E> {
    fn kind(self, kind: Kind) -> Result<T> {
        self.map_err(|error| Failure {
            kind,
            source: error.into(),
            hints: Vec::new(),
        })
    }
}
