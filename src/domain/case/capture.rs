//! Values that a launch shows and that later launches and assertions use as `{bound:NAME}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bindings::Bindings;
use super::launch::Route;
use crate::domain::expect::Stream;

/// Where in the output of a launch a value stands: exactly one of `at` and `matches`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// `stdout` unless said; `screen` for a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// A JSONPath (RFC 9535) into the output read as JSON; the first value is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The output is one JSON value a line; the path is asked of the array of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lines: bool,
    /// A regular expression; what its first group caught is taken, or all of it when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
}

impl Capture {
    pub(super) fn faults(&self, route: Route) -> Vec<String> {
        let mut faults = Vec::new();
        if self.at.is_some() == self.matches.is_some() {
            faults.push("a value is captured by exactly one of `at` and `matches`".to_owned());
        }
        if self.lines && self.at.is_none() {
            faults.push("`lines` goes with `at`".to_owned());
        }
        if self.stream == Some(Stream::Screen) && route != Route::Terminal {
            faults.push("there is no screen: the launch is no terminal".to_owned());
        }
        if let Some(path) = &self.at {
            faults.extend(check_path(path).err());
        }
        if let Some(pattern) = &self.matches {
            faults.extend(check_pattern(pattern).err());
        }
        faults
    }
}

/// Whether a text with placeholders is a JSONPath.
pub(in crate::domain) fn check_path(path: &str) -> Result<(), String> {
    serde_json_path::JsonPath::parse(&Bindings::filled(path))
        .map(drop)
        .map_err(|error| format!("at = {path:?}: {error}"))
}

/// Whether a text with placeholders is a regular expression.
pub(in crate::domain) fn check_pattern(pattern: &str) -> Result<(), String> {
    regex::Regex::new(&Bindings::filled(pattern))
        .map(drop)
        .map_err(|error| format!("{pattern:?} is not a regular expression: {error}"))
}
