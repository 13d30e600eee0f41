//! The mock model's script: one reply a step.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A step of the script: what the model says (`say`, `call`, `calls`), or what is sent as it stands (`body`, `events`),
/// or a `fault`; a fault that breaks a reply off may stand beside the reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// A text; may stand beside `call` or `calls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// The name of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Its arguments: a table, or a string that is sent as it stands (malformed JSON).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Value>,
    /// The call's id; `call-N-M` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Several calls in one reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// Why the model stopped, when it did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    /// The body as it stands: a table is sent as JSON (as the only event of a stream), a string byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The events of a stream as they stand: the data of each, a table as JSON, a string byte for byte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// For `status`: the HTTP status. Also for `body` (200 unless said) and `error-event` (500 unless said).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// For `status`: the `retry-after` header, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
    /// For `cut` and `stall`: so many bytes of the body are sent; 0 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u32>,
    /// Headers of the reply, beside or instead of the usual ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Milliseconds of silence before the first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u32>,
    /// The body is sent in pieces of so many bytes, whatever they cut through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_bytes: Option<u32>,
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

/// Why a model stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The reply reached the limit of its length.
    Length,
    /// A filter of content stopped it.
    Filter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// An HTTP error status with an error object as body.
    Status,
    /// No answer until the candidate gives up.
    Hang,
    /// The connection ends without an answer.
    Drop,
    /// The connection ends in the middle of the reply.
    Cut,
    /// The reply stops in the middle, and the connection stays open until the candidate gives up.
    Stall,
    /// A stream breaks off with an error event in its middle; a whole reply is the error alone.
    ErrorEvent,
    /// A 200 whose body (or only event) is no JSON.
    Malformed,
    /// A 200 with neither text nor calls.
    Empty,
    /// A 400 that says that the request is too long for the model, in the words of the protocol.
    ContextLength,
}

impl Fault {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Hang => "hang",
            Self::Drop => "drop",
            Self::Cut => "cut",
            Self::Stall => "stall",
            Self::ErrorEvent => "error-event",
            Self::Malformed => "malformed",
            Self::Empty => "empty",
            Self::ContextLength => "context-length",
        }
    }

    /// Whether it happens in the middle of a reply, which the step may give.
    pub fn breaks_off(self) -> bool {
        matches!(self, Self::Cut | Self::Stall | Self::ErrorEvent)
    }
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

    /// Whether it is sent as it stands.
    pub fn is_raw(&self) -> bool {
        self.body.is_some() || !self.events.is_empty()
    }

    pub fn is_side(&self) -> bool {
        self.when == Some(When::ToolsAbsent)
    }
}

impl Reply {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let calls = self.call.is_some() || !self.calls.is_empty();
        let said = calls || self.say.is_some();
        let raw = self.is_raw();
        if self.call.is_some() && !self.calls.is_empty() {
            return Err("give `call` or `calls`, not both");
        }
        if (self.with.is_some() || self.id.is_some()) && self.call.is_none() {
            return Err("`with` and `id` go with `call`");
        }
        if said && raw {
            return Err(
                "`body` and `events` are sent as they stand: no say, call or calls beside them",
            );
        }
        match self.fault {
            None if !said && !raw => return Err("give say, call, calls, body, events or fault"),
            Some(fault) if (said || raw) && !fault.breaks_off() => {
                return Err("only cut, stall and error-event have a reply to break off");
            }
            _ => {}
        }
        if self.finish.is_some() && (!said || self.fault == Some(Fault::ErrorEvent)) {
            return Err("`finish` goes with say, call or calls");
        }
        let status = self.fault == Some(Fault::Status);
        if status && self.code.is_none() {
            return Err("fault \"status\" has a `code`");
        }
        let lowest = match self.fault {
            Some(Fault::Status | Fault::ErrorEvent) => Some(300),
            _ => raw.then_some(200),
        };
        match (self.code, lowest) {
            (Some(code), Some(lowest)) if !(lowest..600).contains(&code) => {
                return Err(
                    "`code` is an HTTP status: from 300 to 599 for an error, from 200 to 599 for a body",
                );
            }
            (Some(_), None) => {
                return Err("`code` goes with fault \"status\" or \"error-event\", or with `body`");
            }
            _ => {}
        }
        if self.retry_after_s.is_some() && !status {
            return Err("`retry_after_s` goes with fault \"status\"");
        }
        if self.after_bytes.is_some() && !matches!(self.fault, Some(Fault::Cut | Fault::Stall)) {
            return Err("`after_bytes` goes with fault \"cut\" or \"stall\"");
        }
        let silent = matches!(self.fault, Some(Fault::Hang | Fault::Drop));
        if silent && (!self.headers.is_empty() || self.piece_bytes.is_some()) {
            return Err("nothing is sent by \"hang\" and \"drop\": no `headers`, no `piece_bytes`");
        }
        if self.fault == Some(Fault::Hang) && self.delay_ms.is_some() {
            return Err("\"hang\" never answers: no `delay_ms`");
        }
        if !self
            .headers
            .iter()
            .all(|(name, value)| is_header(name, value))
        {
            return Err(
                "`headers` are names of letters, digits and -, with values of printable ASCII; none of length or connection",
            );
        }
        if self.piece_bytes == Some(0) {
            return Err("`piece_bytes` is at least 1");
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

/// Whether a header can be sent; those of the framing are the server's own. Values may hold placeholders.
fn is_header(name: &str, value: &str) -> bool {
    let framing = ["content-length", "transfer-encoding", "connection"];
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !name.is_empty()
        && name.chars().all(letter)
        && !framing.contains(&name.to_ascii_lowercase().as_str())
        && value.chars().all(|c| (' '..='~').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_one_thing() {
        let check = |step: &str, expected: &str| {
            let reply: Reply = toml::from_str(step).expect("known keys");
            let seen = reply.check().err().unwrap_or_default();
            match expected {
                "" => assert_eq!(seen, "", "{step}"),
                part => assert!(seen.contains(part), "{step}: {seen:?}"),
            }
        };
        check("say = 'x'", "");
        check(
            "say = 'x'\ncall = 'read'\nwith = '{'\nfinish = 'length'",
            "",
        );
        check(
            "calls = [{ call = 'a', id = 'x' }, { call = 'b', id = 'x' }]",
            "",
        );
        check("body = { choices = 5 }\ncode = 200", "");
        check("events = ['x', {}]\npiece_bytes = 1\ndelay_ms = 5", "");
        check(
            "fault = 'status'\ncode = 429\nheaders = { retry-after-ms = '7' }",
            "",
        );
        check("fault = 'stall'\nafter_bytes = 4\ncall = 'read'", "");
        check("fault = 'cut'\nevents = ['x']", "");
        check("fault = 'error-event'\ncode = 529", "");
        check("fault = 'drop'\ndelay_ms = 5", "");

        check("note = 'x'", "give say");
        check("call = 'a'\ncalls = [{ call = 'b' }]", "not both");
        check("say = 'x'\nwith = {}", "go with `call`");
        check("say = 'x'\nbody = {}", "as they stand");
        check("say = 'x'\nfault = 'hang'", "to break off");
        check("body = {}\nfault = 'malformed'", "to break off");
        check("finish = 'length'\nfault = 'empty'", "`finish`");
        check("fault = 'status'", "has a `code`");
        check("fault = 'status'\ncode = 200", "300 to 599");
        check("body = {}\ncode = 99", "200 to 599");
        check("say = 'x'\ncode = 400", "`code` goes with");
        check("fault = 'empty'\nretry_after_s = 1", "`retry_after_s`");
        check("fault = 'hang'\nafter_bytes = 1", "`after_bytes`");
        check("fault = 'hang'\ndelay_ms = 1", "`delay_ms`");
        check("fault = 'drop'\nheaders = { a = 'b' }", "nothing is sent");
        check("say = 'x'\nheaders = { Connection = 'close' }", "`headers`");
        check("say = 'x'\nheaders = { a = 'ö' }", "`headers`");
        check("say = 'x'\npiece_bytes = 0", "`piece_bytes`");
        check("say = 'x'\ntimes = 0", "`times`");
        check("call = 'x'\nwhen = 'tools absent'", "no calls");
    }
}
