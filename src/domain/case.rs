//! The case language: what a file below `cases/` may say.
//!
//! A file is a test case (it has a `category`) or a positive control (it has a `class`). Both hold a fixture,
//! launches with the mock model's script, and assertions. `{nonce:NAME}`, `{workspace}`, `{outside}`, `{home}`
//! and `{state}` in any string stand for values drawn or known only at run time ([`Bindings`]).
//! What needs more than one file to judge (clauses, gating) is in [`crate::methods::suite_check`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clause::{ClauseId, Scenario};
use super::expect::Expect;
use super::place::{Finding, Place};

/// The path of a case below `cases/` without `.toml`, with `/` between its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(String);

impl CaseId {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part; controls are named by it.
    pub fn name(&self) -> &str {
        self.0
            .rsplit('/')
            .next()
            .expect("rsplit yields at least one part")
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    Permissions,
    FileOperations,
    SessionState,
    Headless,
    DirectDrive,
    InteractiveTerminal,
    ArtifactChecks,
    Startup,
    ExtensionDiscovery,
}

impl Category {
    pub const ALL: [Self; 9] = [
        Self::Permissions,
        Self::FileOperations,
        Self::SessionState,
        Self::Headless,
        Self::DirectDrive,
        Self::InteractiveTerminal,
        Self::ArtifactChecks,
        Self::Startup,
        Self::ExtensionDiscovery,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permissions => "permissions",
            Self::FileOperations => "file-operations",
            Self::SessionState => "session-state",
            Self::Headless => "headless",
            Self::DirectDrive => "direct-drive",
            Self::InteractiveTerminal => "interactive-terminal",
            Self::ArtifactChecks => "artifact-checks",
            Self::Startup => "startup",
            Self::ExtensionDiscovery => "extension-discovery",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What kind of vacuous pass a control unmasks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ControlClass {
    /// The tool's result does reach the channel.
    Channel,
    /// The same input works through a route that the clause does not constrain.
    SameForm,
    /// The same form of input works when its target is allowed.
    Reverse,
}

/// Which method found the case, and from what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    pub method: Method,
    /// The phenomenon that people reported, for `issues`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phenomenon: Option<String>,
    /// `owner/name#number` of issues, or `package@version:path:line` of source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The seed's case id, for `expansion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// The one variable that was changed, for `expansion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<Variable>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Issues,
    Comparison,
    Expansion,
    /// Written from the document alone.
    Document,
}

/// The four variables of single-variable expansion.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Variable {
    Tool,
    InputForm,
    ErroneousParameter,
    ReturnSite,
}

impl Variable {
    pub const ALL: [Self; 4] = [
        Self::Tool,
        Self::InputForm,
        Self::ErroneousParameter,
        Self::ReturnSite,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::InputForm => "input-form",
            Self::ErroneousParameter => "erroneous-parameter",
            Self::ReturnSite => "return-site",
        }
    }
}

/// The file as written. `category`, `scenario`, `origin` and `controls` belong to a test, `class` to a control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// What is tested, as a statement about the harness.
    pub title: String,
    /// One sentence: why it matters.
    pub purpose: String,
    #[schemars(with = "String")]
    pub clause: ClauseId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Scenario>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ControlClass>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fixture: BTreeMap<String, Entry>,
    pub launch: Vec<Launch>,
    pub expect: Vec<Expect>,
}

/// One thing of the fixture: a text, or a table for anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Entry {
    Text(String),
    Made(Made),
}

/// Exactly one of `text`, `base64`, `zeros`, `link`, `hard_link`, `dir`, `fifo`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Made {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes that are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// A file of so many NUL bytes, made as a hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeros: Option<u64>,
    /// `text` or `base64` is written so many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The target of a symbolic link, as written into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// A path of the fixture that this is another name of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_link: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dir: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fifo: bool,
    /// Octal permission bits, for example `"755"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// How the candidate is entered.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `harness ARGS…`
    Cli,
    /// `harness -p PROMPT ARGS…`
    Headless,
    /// `harness api`, one request a line on standard input
    Api,
    /// `harness ARGS…` in a terminal, keys typed, screen read
    Terminal,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    pub route: Route,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Added to the environment; an empty value removes the variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where it starts; the workspace unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// For `api`: the requests, sent one a line; a string is sent as it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Value>,
    /// For `terminal`: columns and rows; 80 × 24 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<[u16; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    /// The mock model's replies, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<Reply>,
    /// Limit of this launch in seconds; 900 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_s: Option<u32>,
}

/// One step at the terminal: exactly one of the keys is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Go on when the screen shows this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// `enter`, `tab`, `shift-tab`, `esc`, `up`, `down`, `left`, `right`, `backspace`, `ctrl-a` … `ctrl-z`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub press: Option<String>,
    /// Pasted at once, in bracketed-paste marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paste: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<[u16; 2]>,
}

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

/// Whether a file is a test case or a control.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    Test {
        category: Category,
        scenario: Scenario,
        origin: Option<Origin>,
        /// Names of the controls that gate it.
        controls: Vec<String>,
    },
    Control {
        class: ControlClass,
    },
}

/// A case whose file is whole in itself; its text is kept for places and digests.
#[derive(Debug, Clone)]
pub struct Case {
    pub id: CaseId,
    pub role: Role,
    pub title: String,
    pub purpose: String,
    pub clause: ClauseId,
    pub fixture: BTreeMap<String, Entry>,
    pub launches: Vec<Launch>,
    pub expects: Vec<Expect>,
    pub file: std::path::PathBuf,
    pub text: String,
}

pub const DEFAULT_TIME_LIMIT_S: u32 = 900;

impl Case {
    /// Parses one file; every finding that can be had from this file alone is returned.
    pub fn parse(id: CaseId, file: &Path, text: &str) -> Result<Self, Vec<Finding>> {
        let parsed: CaseFile = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            vec![Finding::new(
                Place::of_offset(file, text, offset),
                error.message().trim().to_owned(),
            )]
        })?;
        let places = Places::new(file, text);
        let mut findings = Vec::new();
        let role = match (parsed.category, parsed.class) {
            (Some(category), None) => Role::Test {
                category,
                scenario: parsed.scenario.unwrap_or_else(|| {
                    findings.push(Finding::new(
                        places.top(),
                        "a test case says `scenario = \"ordinary\"` or `\"boundary\"`",
                    ));
                    Scenario::Ordinary
                }),
                origin: parsed.origin,
                controls: parsed.controls,
            },
            (None, Some(class)) => {
                if parsed.scenario.is_some()
                    || parsed.origin.is_some()
                    || !parsed.controls.is_empty()
                {
                    findings.push(Finding::new(
                        places.of("class"),
                        "a control has no scenario, origin or controls",
                    ));
                }
                Role::Control { class }
            }
            _ => {
                return Err(vec![Finding::new(
                    places.top(),
                    "a file has either a `category` (test case) or a `class` (control)",
                )]);
            }
        };
        let case = Self {
            id,
            role,
            title: parsed.title,
            purpose: parsed.purpose,
            clause: parsed.clause,
            fixture: parsed.fixture,
            launches: parsed.launch,
            expects: parsed.expect,
            file: file.to_path_buf(),
            text: text.to_owned(),
        };
        case.check(&places, &mut findings);
        if findings.is_empty() {
            Ok(case)
        } else {
            Err(findings)
        }
    }

    pub fn is_control(&self) -> bool {
        matches!(self.role, Role::Control { .. })
    }

    pub fn category(&self) -> Option<Category> {
        match self.role {
            Role::Test { category, .. } => Some(category),
            Role::Control { .. } => None,
        }
    }

    pub fn scenario(&self) -> Option<Scenario> {
        match self.role {
            Role::Test { scenario, .. } => Some(scenario),
            Role::Control { .. } => None,
        }
    }

    pub fn controls(&self) -> &[String] {
        match &self.role {
            Role::Test { controls, .. } => controls,
            Role::Control { .. } => &[],
        }
    }

    /// Places of keys in the file, for findings about this case.
    pub fn places(&self) -> Places<'_> {
        Places::new(&self.file, &self.text)
    }

    fn check(&self, places: &Places<'_>, findings: &mut Vec<Finding>) {
        if self.title.trim().is_empty() || self.purpose.trim().is_empty() {
            findings.push(Finding::new(
                places.top(),
                "title and purpose say something",
            ));
        }
        if self.launches.is_empty() {
            findings.push(Finding::new(
                places.top(),
                "a case has at least one [[launch]]",
            ));
        }
        if self.expects.is_empty() {
            findings.push(Finding::new(
                places.top(),
                "a case has at least one [[expect]]",
            ));
        }
        for (path, entry) in &self.fixture {
            let place = || places.of_entry("fixture", path);
            if let Err(message) = check_fixture_path(path) {
                findings.push(Finding::new(place(), message));
            }
            if let Entry::Made(made) = entry
                && let Err(message) = made.check()
            {
                findings.push(Finding::new(place(), message));
            }
        }
        for (launch_idx, launch) in self.launches.iter().enumerate() {
            for message in launch.faults() {
                findings.push(Finding::new(places.nth("launch", launch_idx), message));
            }
        }
        for (expect_idx, expect) in self.expects.iter().enumerate() {
            for message in expect.faults(&self.launches) {
                findings.push(Finding::new(places.nth("expect", expect_idx), message));
            }
        }
        for (offset, name) in placeholders(&self.text) {
            if !Bindings::is_known(name) {
                findings.push(Finding::new(
                    Place::of_offset(&self.file, &self.text, offset),
                    format!(
                        "{{{name}}} is no placeholder: use {{nonce:NAME}}, {{workspace}}, {{outside}}, {{home}} or {{state}}"
                    ),
                ));
            }
        }
    }
}

/// A fixture path is relative to the workspace or opens with a place; it never climbs.
pub fn check_fixture_path(path: &str) -> Result<(), String> {
    let rest = ["{outside}/", "{home}/", "{state}/", "{workspace}/"]
        .iter()
        .find_map(|place| path.strip_prefix(place))
        .unwrap_or(path);
    let climbs = rest.split('/').any(|part| part == ".." || part == ".");
    if rest.is_empty() || rest.starts_with('/') || rest.contains('\0') || climbs {
        Err(format!(
            "fixture path {path:?} leaves its place: write it relative, without `..`"
        ))
    } else {
        Ok(())
    }
}

impl Made {
    fn check(&self) -> Result<(), String> {
        let n_kinds = usize::from(self.text.is_some())
            + usize::from(self.base64.is_some())
            + usize::from(self.zeros.is_some())
            + usize::from(self.link.is_some())
            + usize::from(self.hard_link.is_some())
            + usize::from(self.dir)
            + usize::from(self.fifo);
        if n_kinds != 1 {
            return Err(
                "give exactly one of text, base64, zeros, link, hard_link, dir, fifo".to_owned(),
            );
        }
        if let Some(mode) = &self.mode
            && !u32::from_str_radix(mode, 8).is_ok_and(|bits| bits <= 0o7777)
        {
            return Err(format!("mode {mode:?} is not octal, like \"644\""));
        }
        if self.times.is_some() && self.text.is_none() && self.base64.is_none() {
            return Err("times goes with text or base64".to_owned());
        }
        Ok(())
    }
}

impl Launch {
    pub fn time_limit_s(&self) -> u32 {
        self.time_limit_s.unwrap_or(DEFAULT_TIME_LIMIT_S)
    }

    /// Main steps that the script can serve; a request beyond them is an overrun.
    pub fn n_steps(&self) -> usize {
        self.script
            .iter()
            .filter(|reply| !reply.is_side())
            .map(|reply| reply.times.unwrap_or(1) as usize)
            .sum()
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |wrong: bool, text: &str| {
            if wrong {
                faults.push(text.to_owned());
            }
        };
        fault(
            (self.route == Route::Headless) != self.prompt.is_some(),
            "`prompt` belongs to route \"headless\", and only there",
        );
        fault(
            (self.route == Route::Api) == self.requests.is_empty(),
            "`requests` belong to route \"api\", and only there",
        );
        fault(
            self.route != Route::Terminal && (self.size.is_some() || !self.keys.is_empty()),
            "`size` and `keys` belong to route \"terminal\"",
        );
        fault(
            matches!(self.route, Route::Api | Route::Terminal) && self.stdin.is_some(),
            "`stdin` belongs to the routes \"cli\" and \"headless\"",
        );
        fault(self.time_limit_s == Some(0), "a time limit is at least 1 s");
        for key in &self.keys {
            let n_given = usize::from(key.wait.is_some())
                + usize::from(key.r#type.is_some())
                + usize::from(key.press.is_some())
                + usize::from(key.paste.is_some())
                + usize::from(key.resize.is_some());
            if n_given != 1 {
                faults.push("a key is exactly one of wait, type, press, paste, resize".to_owned());
            } else if let Some(name) = &key.press
                && key_bytes(name).is_none()
            {
                faults.push(format!("{name:?} is no key"));
            }
        }
        for (reply_idx, reply) in self.script.iter().enumerate() {
            if let Err(message) = reply.check() {
                faults.push(format!("script step {}: {message}", reply_idx + 1));
            }
        }
        faults
    }
}

/// What a named key sends.
pub fn key_bytes(name: &str) -> Option<Vec<u8>> {
    let bytes: &[u8] = match name {
        "enter" => b"\r",
        "tab" => b"\t",
        "shift-tab" => b"\x1b[Z",
        "esc" => b"\x1b",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "backspace" => b"\x7f",
        _ => {
            let letter = name.strip_prefix("ctrl-")?.as_bytes();
            return match letter {
                [letter @ b'a'..=b'z'] => Some(vec![letter - b'a' + 1]),
                _ => None,
            };
        }
    };
    Some(bytes.to_vec())
}

impl Reply {
    fn check(&self) -> Result<(), &'static str> {
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

/// Finds lines of keys in a case file.
pub struct Places<'a> {
    file: &'a Path,
    text: &'a str,
}

impl<'a> Places<'a> {
    fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text }
    }

    pub fn top(&self) -> Place {
        Place::new(self.file, 1)
    }

    /// The line of a top-level key.
    pub fn of(&self, key: &str) -> Place {
        self.line(|line| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        })
    }

    /// The line of the nth `[[table]]`, counted from 0.
    pub fn nth(&self, table: &str, n: usize) -> Place {
        let header = format!("[[{table}]]");
        let line = self
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.trim() == header)
            .nth(n);
        Place::new(self.file, line.map_or(1, |(idx, _)| idx + 1))
    }

    fn of_entry(&self, table: &str, key: &str) -> Place {
        let quoted = format!("\"{key}\"");
        let place = self.line(|line| line.starts_with(&quoted) || line.starts_with(key));
        if place.line == 1 {
            self.line(|line| line.trim() == format!("[{table}]"))
        } else {
            place
        }
    }

    fn line(&self, wanted: impl Fn(&str) -> bool) -> Place {
        let line = self.text.lines().position(|line| wanted(line.trim_start()));
        Place::new(self.file, line.map_or(1, |idx| idx + 1))
    }
}

/// The names inside `{…}` that look like placeholders, with their offsets.
fn placeholders(text: &str) -> Vec<(usize, &str)> {
    text.match_indices('{')
        .filter_map(|(start, _)| {
            let rest = &text[start + 1..];
            let end = rest.find('}')?;
            let name = &rest[..end];
            let looks = name.starts_with("nonce:")
                || ["workspace", "outside", "home", "state", "nonce"].contains(&name);
            looks.then_some((start, name))
        })
        .collect()
}

/// What the placeholders of one run stand for: `nonce:secret` → its value, `workspace` → its path inside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bindings(pub BTreeMap<String, String>);

impl Bindings {
    /// Names of the nonces that a case mentions, in order.
    pub fn nonce_names(case_text: &str) -> Vec<String> {
        let mut names: Vec<String> = placeholders(case_text)
            .into_iter()
            .filter_map(|(_, name)| name.strip_prefix("nonce:"))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn is_known(name: &str) -> bool {
        match name.strip_prefix("nonce:") {
            Some(nonce) => {
                !nonce.is_empty()
                    && nonce
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            }
            None => ["workspace", "outside", "home", "state"].contains(&name),
        }
    }

    /// The text with each placeholder filled by a letter, to check its form before any value is known.
    pub fn filled(text: &str) -> String {
        let mut out = text.to_owned();
        for (_, name) in placeholders(text) {
            out = out.replace(&format!("{{{name}}}"), "x");
        }
        out
    }

    /// Replaces every placeholder that has a value; other braces stay.
    pub fn expand(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut out = text.to_owned();
        for (name, value) in &self.0 {
            out = out.replace(&format!("{{{name}}}"), value);
        }
        out
    }

    /// The same in every string of a JSON value, keys included.
    pub fn expand_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text)),
            Value::Array(items) => items.iter().map(|item| self.expand_json(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| (self.expand(key), self.expand_json(item)))
                .collect(),
            other => other.clone(),
        }
    }

    /// The reverse, for showing evidence: values become their names again.
    pub fn redact(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (name, value) in self.0.iter().filter(|(name, _)| name.starts_with("nonce:")) {
            out = out.replace(value.as_str(), &format!("{{{name}}}"));
        }
        out
    }
}

/// The published JSON Schema of a case file.
pub fn schema() -> Value {
    schemars::schema_for!(CaseFile).to_value()
}
