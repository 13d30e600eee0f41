//! One call that went, or wanted to go, to the model of a build: what was said and what it cost.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens as the endpoint counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Read by the model, those from its cache included.
    pub input: u64,
    /// Of these, read from its cache.
    pub cached: u64,
    pub output: u64,
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.input += more.input;
        self.cached += more.cached;
        self.output += more.output;
    }
}

/// A request to the gateway and its answer, without keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCall {
    /// The turn in which it was made, from 1; 0 before the first.
    pub turn: usize,
    /// Since the gateway was opened.
    pub at_ms: u64,
    pub duration_ms: u64,
    pub method: String,
    pub path: String,
    /// Why the gateway did not pass it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What was answered; none when nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The answer came to its end.
    pub whole: bool,
    /// None when the endpoint did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Null for a call that was refused, or that is no JSON.
    pub request: Value,
    pub response: String,
}

impl ModelCall {
    /// Whether the model answered.
    pub fn is_answered(&self) -> bool {
        self.refused.is_none()
            && self
                .status
                .is_some_and(|status| (200..300).contains(&status))
    }
}
