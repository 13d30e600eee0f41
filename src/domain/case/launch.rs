//! One start of the candidate: its route, what is typed, and the limits.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bindings::Bindings;
use super::capture::Capture;
use super::moment::{Alongside, Moment, SignalSent};
use super::reply::Reply;

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
    /// How standard input goes on behind `stdin`; it ends unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_is: Option<StdinIs>,
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
    /// Starts while an earlier launch runs, instead of after all earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alongside: Option<Alongside>,
    /// Sent in this order, each at its moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalSent>,
    /// What its output shows is `{bound:NAME}` in later launches and in assertions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bind: BTreeMap<String, Capture>,
}

/// What standard input is, besides a pipe that ends or `/dev/null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StdinIs {
    /// A pipe that brings `stdin` and then neither more nor an end.
    Open,
    /// Not there: descriptor 0 is closed.
    Closed,
}

/// One step at the terminal: exactly one of the keys is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Go on when this has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<KeyWait>,
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

/// What a key waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeyWait {
    /// The screen shows this text.
    Screen(String),
    /// A moment that is no screen. Nothing waits for the keys: the reply to a request goes out meanwhile.
    Moment(Moment),
}

pub const DEFAULT_TIME_LIMIT_S: u32 = 900;

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

    pub(super) fn faults(&self) -> Vec<String> {
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
        fault(
            self.route == Route::Terminal && self.stdin_is.is_some(),
            "`stdin_is` has no meaning in a terminal",
        );
        fault(
            self.stdin_is == Some(StdinIs::Closed)
                && (self.stdin.is_some() || self.route == Route::Api),
            "nothing can be read from a closed standard input",
        );
        let base_url = self.env.contains_key("HARNESS_BASE_URL");
        fault(
            self.alongside.is_some() && base_url,
            "a launch alongside another is told apart by its HARNESS_BASE_URL; leave it alone",
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
            } else if let Some(wait) = &key.wait
                && let Err(message) = wait.check(self)
            {
                faults.push(format!("a key waits: {message}"));
            }
        }
        for (reply_idx, reply) in self.script.iter().enumerate() {
            if let Err(message) = reply.check() {
                faults.push(format!("script step {}: {message}", reply_idx + 1));
            }
        }
        for signal in &self.signals {
            if let Err(message) = signal.once.check(self) {
                faults.push(format!("signal {}: {message}", signal.send.as_str()));
            }
        }
        for (name, capture) in &self.bind {
            if !Bindings::is_name(name) {
                faults.push(format!("a value is called {name:?} in a-z, 0-9 and -"));
            }
            let found = capture.faults(self.route);
            faults.extend(
                found
                    .into_iter()
                    .map(|fault| format!("bind {name}: {fault}")),
            );
        }
        faults
    }
}

impl KeyWait {
    /// What keeps it from ever coming in that launch.
    fn check(&self, launch: &Launch) -> Result<(), String> {
        match self {
            Self::Screen(text) if text.is_empty() => Err("an empty text is on every screen".into()),
            Self::Screen(_) => Ok(()),
            Self::Moment(Moment::Screen(text)) => {
                Err(format!("a text on the screen is `wait = {text:?}`"))
            }
            Self::Moment(moment) => moment.check(launch),
        }
    }
}

/// `the screen shows ">"`, `request 2 is made`.
impl fmt::Display for KeyWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Screen(text) => write!(f, "the screen shows {text:?}"),
            Self::Moment(moment) => write!(f, "{moment}"),
        }
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
