//! What was seen of one case on the four channels; everything that a judge may know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::{Bindings, CaseId};

/// The whole of one attempt at one case. Stored before it is judged, and never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub format: u32,
    pub case: CaseId,
    pub bindings: Bindings,
    pub launches: Vec<LaunchEvidence>,
    /// Keys are paths as a fixture writes them: `a.txt`, `{outside}/b`, `{home}/c`, `{state}/d`.
    pub files_before: BTreeMap<String, FileState>,
    pub files_after: BTreeMap<String, FileState>,
    /// At the end there was more than is read back; what is not in `files_after` may be there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_cut: bool,
}

pub const EVIDENCE_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchEvidence {
    pub argv: Vec<String>,
    pub exit: Exit,
    pub stdout: Text,
    pub stderr: Text,
    /// The last screen of a terminal, one line a row, trailing blanks cut.
    pub screen: Option<String>,
    /// Keys that were never sent since the screen condition before them never held.
    pub keys_unsent: usize,
    /// Signals that were never sent since their moment never came.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub signals_unsent: usize,
    /// Values that were to be caught and are not in the output. Nothing was launched after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbound: Vec<String>,
    /// Since the first launch began; 0 for evidence of older runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub started_ms: u64,
    pub requests: Vec<Exchange>,
    /// Requests beyond the limit of what is kept of a launch; they were answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_requests_unkept: usize,
    pub duration_ms: u64,
    pub cpu_ms: u64,
    pub out_of_memory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Everything was killed at the time limit.
    TimedOut,
    /// The moment of another launch at which it was to start never came.
    NeverStarted,
}

/// Output as text; invalid UTF-8 is replaced, and what is over the limit is cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    pub cut: bool,
}

/// A request to the mock model and what it was answered. What is optional is absent from evidence of older runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// When it was there in full, since the launch began.
    pub at_ms: u64,
    pub method: String,
    /// With the query.
    pub path: String,
    pub headers: BTreeMap<String, String>,
    /// The JSON body as it came; a string when it is no JSON.
    pub body: Value,
    /// What the body says in the form of chat completions, when it came in another protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Value>,
    /// Offers no tools: a title, a summary, a router.
    pub side: bool,
    pub reply: ReplyKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
}

impl Exchange {
    /// The request in the form of chat completions, whatever protocol it came in.
    pub fn chat(&self) -> &Value {
        self.chat.as_ref().unwrap_or(&self.body)
    }
}

/// Headers of requests that are kept.
pub const KEPT_HEADERS: [&str; 7] = [
    "accept",
    "anthropic-version",
    "authorization",
    "content-type",
    "user-agent",
    "x-api-key",
    "x-goog-api-key",
];

/// How the mock answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyKind {
    /// A step of the script, from 1.
    Step(usize),
    /// A side call's canned text.
    Side,
    /// Beyond the script: the fixed final text.
    Overrun,
    /// No call of the model, and answered all the same: `HEAD`, the list of models, a count of tokens.
    Service,
    /// Not a path of any protocol: 404.
    NotFound,
    /// No JSON object in the body: 400.
    BadRequest,
    /// A body over the limit: 413.
    TooLarge,
    /// The candidate broke off in the middle of its request.
    Unfinished,
}

/// What went out. Times are since the launch began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The HTTP status; absent when no head went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the head went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ms: Option<u64>,
    /// When the last byte went out, or the candidate was seen to have left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Bytes of the body.
    pub n_bytes: usize,
    pub end: SentEnd,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentEnd {
    /// Still open when the launch was over.
    #[default]
    Open,
    /// All of it went out.
    Whole,
    /// Broken off, as the script wants it.
    Cut,
    /// The candidate left before the end.
    Left,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    pub size: u64,
    /// SHA-256 of the content of a file, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The content, when it is text of at most [`KEPT_TEXT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where a symbolic link points, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

pub const KEPT_TEXT_BYTES: u64 = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    File,
    Dir,
    Link,
    Fifo,
    Other,
}

impl Evidence {
    /// Requests beyond the script or beyond what is kept, over all launches.
    pub fn n_overruns(&self) -> usize {
        self.launches
            .iter()
            .map(|launch| {
                let beyond = |exchange: &&Exchange| exchange.reply == ReplyKind::Overrun;
                launch.requests.iter().filter(beyond).count() + launch.n_requests_unkept
            })
            .sum()
    }
}

fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_of_older_runs_are_read_and_written_as_they_were() {
        let old = r#"{"at_ms":1,"method":"POST","path":"/v1/chat/completions","headers":{},"body":{"model":"m"},"side":false,"reply":{"step":1}}"#;
        let exchange: Exchange = serde_json::from_str(old).expect("is read");
        assert_eq!(exchange.chat()["model"], "m");
        assert_eq!(exchange.sent, None);
        assert_eq!(serde_json::to_string(&exchange).expect("is written"), old);
    }
}
