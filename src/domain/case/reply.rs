//! The mock model's script: one reply a step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A step of the script: exactly one of `say`, `call`, `calls`, `fault`; `say` may stand beside `call` or `calls`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// The name of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Its arguments: a table, or a string that is sent as it stands (malformed JSON).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    /// The call's id; `call-N` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Several calls in one reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// For `status`: the HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// For `status`: the `retry-after` header, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
    /// For `cut`: the connection ends after so many bytes of the body; 0 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u32>,
    /// `tools absent`: only for calls that offer no tools (compaction, titles); they consume no other step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// The step serves so many requests; 1 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// For readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// An HTTP error status with an error object as body.
    Status,
    /// No answer until the candidate gives up.
    Hang,
    /// The connection ends in the middle of the reply.
    Cut,
    /// A 200 whose body is no JSON.
    Malformed,
    /// A 200 with neither text nor calls.
    Empty,
    /// A 400 with the error code `context_length_exceeded`.
    ContextLength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum When {
    #[serde(rename = "tools absent")]
    ToolsAbsent,
}

impl Reply {
    /// The calls of this reply, from either spelling; empty for a text or a fault.
    pub fn all_calls(&self) -> Vec<Call> {
        match &self.call {
            Some(name) => vec![Call {
                call: name.clone(),
                with: self.with.clone(),
                id: self.id.clone(),
            }],
            None => self.calls.clone(),
        }
    }

    pub fn is_side(&self) -> bool {
        self.when == Some(When::ToolsAbsent)
    }
}

impl Reply {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let calls = self.call.is_some() || !self.calls.is_empty();
        if self.call.is_some() && !self.calls.is_empty() {
            return Err("give `call` or `calls`, not both");
        }
        if (self.with.is_some() || self.id.is_some()) && self.call.is_none() {
            return Err("`with` and `id` go with `call`");
        }
        match (self.fault, calls || self.say.is_some()) {
            (None, false) => return Err("give say, call, calls or fault"),
            (Some(Fault::Cut), _) | (None, true) | (Some(_), false) => {}
            (Some(_), true) => return Err("only a `cut` has a reply to cut"),
        }
        if (self.fault == Some(Fault::Status)) != self.code.is_some() {
            return Err("`code` goes with fault \"status\", always");
        }
        if self.code.is_some_and(|code| !(300..600).contains(&code)) {
            return Err("`code` is an HTTP status from 300 to 599");
        }
        if self.retry_after_s.is_some() && self.fault != Some(Fault::Status) {
            return Err("`retry_after_s` goes with fault \"status\"");
        }
        if self.after_bytes.is_some() && self.fault != Some(Fault::Cut) {
            return Err("`after_bytes` goes with fault \"cut\"");
        }
        if self.times == Some(0) {
            return Err("`times` is at least 1");
        }
        if self.is_side() && calls {
            return Err("a reply to a call without tools has no calls");
        }
        Ok(())
    }
}
