//! Assertions of a case: what must be seen on a channel.
//!
//! The file form is the only form; [`crate::methods::judge`] reads it against the evidence.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::{Bindings, Launch, Route};
use super::clause::Channel;

/// One assertion. `channel` says where to look, the selectors what to look at, the tests what must hold;
/// every test given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Absent only where `any` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// At least one of these holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Expect>,

    /// Which launch, from 1. Requests: all launches unless said; exit and output: the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<usize>,
    /// Requests: which of them; `any` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Pick>,
    /// Files: a path like those of the fixture; `*` stands for any part of a name.
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
    /// Exit: the code is one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<i32>,
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
            Self::Range(range) => {
                range.min.is_none_or(|min| n >= min) && range.max.is_none_or(|max| n <= max)
            }
        }
    }
}

impl Expect {
    /// Whether it can hold because nothing happened at all; such an assertion needs a control.
    pub fn is_absence(&self) -> bool {
        if !self.any.is_empty() {
            return self.any.iter().any(Self::is_absence);
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
            || !self.one_of.is_empty();
        !positive
            && (self.lacks.is_some()
                || self.lacks_match.is_some()
                || self.not_equals.is_some()
                || self.exists == Some(false)
                || self.unchanged == Some(true)
                || selects_none)
    }

    /// What is wrong with it in itself or beside these launches.
    pub(super) fn faults(&self, launches: &[Launch]) -> Vec<String> {
        if !self.any.is_empty() {
            let mut faults: Vec<String> = self
                .any
                .iter()
                .flat_map(|expect| expect.faults(launches))
                .collect();
            let bare = Self {
                any: self.any.clone(),
                ..Self::default()
            };
            if *self != bare {
                faults.push("`any` stands alone; put the rest into its members".to_owned());
            }
            return faults;
        }
        let Some(channel) = self.channel else {
            return vec!["an assertion has a `channel` or `any`".to_owned()];
        };
        let mut faults = Vec::new();
        let mut fault = |wrong: bool, text: &str| {
            if wrong {
                faults.push(text.to_owned());
            }
        };
        let texts = self.has.is_some()
            || self.lacks.is_some()
            || self.matches.is_some()
            || self.lacks_match.is_some();
        let values = self.equals.is_some() || self.not_equals.is_some();
        let files_only = self.exists.is_some() || self.unchanged.is_some() || self.mode.is_some();
        fault(
            !(texts || values || files_only || self.count.is_some() || !self.one_of.is_empty()),
            "it asserts nothing: give has, lacks, matches, lacks_match, equals, not_equals, one_of, count, exists, unchanged or mode",
        );
        fault(
            channel != Channel::Requests && self.request.is_some(),
            "`request` belongs to channel \"requests\"",
        );
        fault(
            (channel == Channel::Files) != self.path.is_some(),
            "`path` belongs to channel \"files\", always",
        );
        fault(
            channel != Channel::Files && files_only,
            "`exists`, `unchanged` and `mode` belong to channel \"files\"",
        );
        fault(
            channel != Channel::Output && self.stream.is_some(),
            "`stream` belongs to channel \"output\"",
        );
        fault(
            channel == Channel::Exit && (texts || self.at.is_some() || self.count.is_some()),
            "channel \"exit\" takes equals, not_equals or one_of",
        );
        fault(
            channel != Channel::Exit && !self.one_of.is_empty(),
            "`one_of` belongs to channel \"exit\"",
        );
        fault(
            channel == Channel::Files && self.launch.is_some(),
            "files are looked at after the last launch; `launch` has no meaning here",
        );
        fault(self.lines && self.at.is_none(), "`lines` goes with `at`");
        fault(
            self.lines && !matches!(channel, Channel::Files | Channel::Output),
            "`lines` belongs to the channels \"files\" and \"output\"",
        );
        fault(
            channel == Channel::Requests && self.at.is_none() && self.count.is_none(),
            "a request is looked at through `at`, a JSONPath such as $.messages[-1].content",
        );
        fault(
            self.count.is_some() && self.at.is_none() && channel != Channel::Requests,
            "`count` goes with `at`",
        );
        if let Some(path) = &self.at
            && let Err(error) = serde_json_path::JsonPath::parse(&Bindings::filled(path))
        {
            faults.push(format!("at = {path:?}: {error}"));
        }
        for pattern in [&self.matches, &self.lacks_match].into_iter().flatten() {
            if let Err(error) = regex::Regex::new(&Bindings::filled(pattern)) {
                faults.push(format!("{pattern:?} is not a regular expression: {error}"));
            }
        }
        for text in [&self.has, &self.lacks].into_iter().flatten() {
            if text.as_slice().is_empty() || text.as_slice().iter().any(String::is_empty) {
                faults.push("an empty text is in everything".to_owned());
            }
        }
        faults.extend(self.unreachable(channel, launches));
        faults
    }

    /// Assertions that no run can ever reach.
    fn unreachable(&self, channel: Channel, launches: &[Launch]) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(n) = self.launch
            && (n == 0 || n > launches.len())
        {
            faults.push(format!(
                "launch {n} is never reached: the case has {}",
                launches.len()
            ));
            return faults;
        }
        let looked_at: Vec<&Launch> = match (self.launch, channel) {
            (Some(n), _) => vec![&launches[n - 1]],
            (None, Channel::Output | Channel::Exit) => launches.last().into_iter().collect(),
            (None, _) => launches.iter().collect(),
        };
        if let Some(Pick::Nth(n)) = self.request {
            let n_reachable: usize = looked_at.iter().map(|launch| launch.n_steps()).sum();
            if n == 0 || n > n_reachable {
                faults.push(format!(
                    "request {n} is never reached: the script answers {n_reachable}"
                ));
            }
        }
        let terminal = looked_at
            .iter()
            .any(|launch| launch.route == Route::Terminal);
        if self.stream == Some(Stream::Screen) && !terminal {
            faults.push("there is no screen: no launch looked at is a terminal".to_owned());
        }
        faults
    }
}

/// In words: `requests $.messages[-1].content lacks "…"`.
impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.any.is_empty() {
            let parts: Vec<String> = self.any.iter().map(ToString::to_string).collect();
            return write!(f, "any of: {}", parts.join(" | "));
        }
        f.write_str(self.channel.map_or("?", Channel::as_str))?;
        if let Some(n) = self.launch {
            write!(f, " of launch {n}")?;
        }
        match self.request {
            Some(Pick::Nth(n)) => write!(f, " number {n}")?,
            Some(Pick::Named(PickNamed::First)) => f.write_str(" (first)")?,
            Some(Pick::Named(PickNamed::Last)) => f.write_str(" (last)")?,
            Some(Pick::Named(PickNamed::Side)) => f.write_str(" (without tools)")?,
            Some(Pick::Named(PickNamed::Any)) | None => {}
        }
        if let Some(path) = &self.path {
            write!(f, " {path}")?;
        }
        if let Some(stream) = self.stream {
            write!(f, " {}", stream.as_str())?;
        }
        if let Some(at) = &self.at {
            write!(f, " {at}")?;
        }
        let texts = |f: &mut fmt::Formatter<'_>, word: &str, texts: &Option<Texts>| match texts {
            Some(texts) => write!(f, " {word} {}", quoted(texts.as_slice())),
            None => Ok(()),
        };
        texts(f, "has", &self.has)?;
        texts(f, "lacks", &self.lacks)?;
        if let Some(pattern) = &self.matches {
            write!(f, " matches /{pattern}/")?;
        }
        if let Some(pattern) = &self.lacks_match {
            write!(f, " matches nowhere /{pattern}/")?;
        }
        if let Some(value) = &self.equals {
            write!(f, " equals {value}")?;
        }
        if let Some(value) = &self.not_equals {
            write!(f, " differs from {value}")?;
        }
        if !self.one_of.is_empty() {
            write!(f, " is one of {:?}", self.one_of)?;
        }
        match self.count {
            Some(Count::Exactly(n)) => write!(f, " counts {n}")?,
            Some(Count::Range(range)) => {
                let end = |end: Option<usize>| end.map_or_else(String::new, |n| n.to_string());
                write!(f, " counts {}..{}", end(range.min), end(range.max))?;
            }
            None => {}
        }
        match self.exists {
            Some(true) => f.write_str(" exists")?,
            Some(false) => f.write_str(" is absent")?,
            None => {}
        }
        match self.unchanged {
            Some(true) => f.write_str(" is unchanged")?,
            Some(false) => f.write_str(" is changed")?,
            None => {}
        }
        if let Some(mode) = &self.mode {
            write!(f, " has mode {mode}")?;
        }
        Ok(())
    }
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    texts.join(" and ")
}
