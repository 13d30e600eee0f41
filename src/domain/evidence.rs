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

/// A request to the mock model and what it was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Since the launch began.
    pub at_ms: u64,
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    /// The JSON body; a string when it is no JSON.
    pub body: Value,
    /// Offers no tools: a title, a summary, a router.
    pub side: bool,
    pub reply: ReplyKind,
}

/// Headers of requests that are kept.
pub const KEPT_HEADERS: [&str; 4] = ["authorization", "content-type", "accept", "user-agent"];

/// How the mock answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyKind {
    /// A step of the script, from 1.
    Step(usize),
    /// A side call's canned text.
    Side,
    /// Beyond the script: the fixed final text.
    Overrun,
    /// Not a path of the protocol: 404.
    NotFound,
    /// No JSON object in the body: 400.
    BadRequest,
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
    /// Requests beyond the script, over all launches.
    pub fn n_overruns(&self) -> usize {
        self.launches
            .iter()
            .flat_map(|launch| &launch.requests)
            .filter(|exchange| exchange.reply == ReplyKind::Overrun)
            .count()
    }
}

fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}
