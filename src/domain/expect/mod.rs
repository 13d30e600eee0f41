//! Assertions of a case: what must be seen on a channel.
//!
//! The file form is the only form; [`crate::methods::judge`] reads it against the evidence.

mod check;
mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clause::Channel;

/// One assertion. `channel` says where to look, the selectors what to look at, the tests what must hold;
/// every test given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Absent only where `any`, `all` or `not` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// At least one of these holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Expect>,
    /// All of these hold; for groups inside `any` and `not`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<Expect>,
    /// This does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Expect>>,

    /// Which launch, from 1. Requests: all launches unless said; exit and output: the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<usize>,
    /// Requests: which of them; `any` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Pick>,
    /// Requests: the text of this header is looked at, instead of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Files: a path like those of the fixture; `*` stands for any part of a name. With `changed`: a folder or a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Output: `stdout` unless said; `screen` for a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// A JSONPath (RFC 9535) into the request body, or into the file or the output read as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Files and output: the text is one JSON value a line; the path is asked of the array of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lines: bool,

    /// One of the values looked at contains this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<Texts>,
    /// None of them contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Texts>,
    /// One of them matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// None of them matches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks_match: Option<String>,
    /// One of them is exactly this value (for exit: the code).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// None of them is this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_equals: Option<Value>,
    /// The values looked at meet these conditions one after the other, each by a later value than the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Condition>,
    /// The value looked at is `{bound:NAME}` in later assertions; with `matches`, what its first group caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// Exit: the code is one of these; 128 and the number for a launch that a signal of the case ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<i32>,
    /// Requests: so many milliseconds lie between the request and the one with tools before it in its launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<CountRange>,
    /// So many values were selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// Files: whether the path is there at all, of whatever kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// Files: kind, mode, content and link target are those of the fixture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<bool>,
    /// Files: octal permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Files: below `path` exactly these are new, gone or not as the fixture laid them; `*` as in `path`. Folders above
    /// them count with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
}

/// What one value has to be; every test given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<Texts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// An object that has at least these members, with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub like: BTreeMap<String, Value>,
}

/// Which requests of the launches looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a number from 1, \"any\", \"first\", \"last\" or \"side\""
)]
pub enum Pick {
    /// The nth with tools, from 1.
    Nth(usize),
    Named(PickNamed),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PickNamed {
    /// All of them, side calls too.
    Any,
    First,
    Last,
    /// Calls that offer no tools.
    Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    Stdout,
    Stderr,
    Both,
    Screen,
}

impl Stream {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Both => "both",
            Self::Screen => "screen",
        }
    }
}

/// One text, or several that must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub enum Texts {
    One(String),
    All(Vec<String>),
}

impl Texts {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::All(texts) => texts,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number, or a table of min and max")]
pub enum Count {
    Exactly(usize),
    Range(CountRange),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountRange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
}

impl Count {
    pub fn holds(self, n: usize) -> bool {
        match self {
            Self::Exactly(wanted) => n == wanted,
            Self::Range(range) => range.holds(n),
        }
    }
}

impl CountRange {
    pub fn holds(self, n: usize) -> bool {
        self.min.is_none_or(|min| n >= min) && self.max.is_none_or(|max| n <= max)
    }
}

impl Expect {
    /// The members of a group; none for an assertion that looks at a channel itself.
    pub fn members(&self) -> impl Iterator<Item = &Self> {
        let not = self.not.as_deref();
        self.any.iter().chain(&self.all).chain(not)
    }

    /// The assertions in it that look at a channel: itself, or those of its groups.
    pub fn leaves(&self) -> Vec<&Self> {
        let inner: Vec<&Self> = self.members().flat_map(Self::leaves).collect();
        if inner.is_empty() { vec![self] } else { inner }
    }

    /// Whether it can hold because nothing happened at all; such an assertion needs a control.
    pub fn is_absence(&self) -> bool {
        if !self.any.is_empty() {
            return self.any.iter().any(Self::is_absence);
        }
        if !self.all.is_empty() {
            return self.all.iter().all(Self::is_absence);
        }
        if let Some(inner) = &self.not {
            return !inner.is_absence();
        }
        let selects_none = match self.count {
            Some(count) => count.holds(0),
            None => false,
        };
        let positive = self.has.is_some()
            || self.matches.is_some()
            || self.equals.is_some()
            || self.exists == Some(true)
            || self.mode.is_some()
            || self.bind.is_some()
            || self.after_ms.is_some()
            || !self.order.is_empty()
            || self.changed.as_ref().is_some_and(|paths| !paths.is_empty())
            || !self.one_of.is_empty();
        !positive
            && (self.lacks.is_some()
                || self.lacks_match.is_some()
                || self.not_equals.is_some()
                || self.exists == Some(false)
                || self.unchanged == Some(true)
                || self.changed.is_some()
                || selects_none)
    }
}
