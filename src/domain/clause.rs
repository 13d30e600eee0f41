//! A clause: one point of observable behaviour, the unit that cases are anchored to.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest;
use super::place::Place;

/// `chapter.feature.point`; never changes once published.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClauseId(String);

impl ClauseId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The slug of the chapter that the clause stands in.
    pub fn chapter(&self) -> &str {
        self.0.split('.').next().expect("an id has three parts")
    }
}

impl fmt::Display for ClauseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ClauseId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part_ok = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && !part.ends_with('-')
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if text.split('.').count() == 3 && text.split('.').all(part_ok) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "{text:?} is not a clause id: write chapter.feature.point in lower case"
            ))
        }
    }
}

impl TryFrom<String> for ClauseId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ClauseId> for String {
    fn from(id: ClauseId) -> Self {
        id.0
    }
}

/// Whether a clause, or the scenario of a case, is what normally happens or a limit of it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    Ordinary,
    Boundary,
}

/// One of the four places where an effect is looked for; nothing else is ever looked at.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    Requests,
    Files,
    Exit,
    Output,
}

impl Channel {
    pub const ALL: [Self; 4] = [Self::Requests, Self::Files, Self::Exit, Self::Output];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Files => "files",
            Self::Exit => "exit",
            Self::Output => "output",
        }
    }
}

impl FromStr for Channel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|channel| channel.as_str() == text)
            .ok_or_else(|| {
                format!("{text:?} is not a channel: use requests, files, exit or output")
            })
    }
}

impl Scenario {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Boundary => "boundary",
        }
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ordinary" => Ok(Self::Ordinary),
            "boundary" => Ok(Self::Boundary),
            _ => Err(format!("{text:?} is neither ordinary nor boundary")),
        }
    }
}

/// The four texts are Markdown, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    pub id: ClauseId,
    pub kind: Scenario,
    pub syntax: String,
    pub meaning: String,
    pub behaviour: String,
    pub channels: BTreeSet<Channel>,
    /// Only clauses of the consistency chapter relate others.
    pub relates: Vec<ClauseId>,
    pub place: Place,
}

impl Clause {
    /// Digest of what the clause says, wherever it stands: another one when its wording is another one.
    pub fn digest(&self) -> String {
        let texts = [&self.syntax, &self.meaning, &self.behaviour];
        let channels = self.channels.iter().map(|channel| channel.as_str());
        let parts = [self.id.as_str(), self.kind.as_str()].into_iter();
        let parts = parts.chain(texts.map(String::as_str)).chain(channels);
        digest::of(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_three_lower_case_parts() {
        let check =
            |text: &str, ok: bool| assert_eq!(text.parse::<ClauseId>().is_ok(), ok, "{text}");
        check("tools.read.range", true);
        check("in-session.compact.nothing-to-do", true);
        check("tools.read", false);
        check("tools.read.range.x", false);
        check("Tools.read.range", false);
        check("tools..range", false);
        check("tools.read.-x", false);
    }
}
