//! Moments in the life of a launch, and what happens at them: another launch starts, a signal is sent.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fixture::check_fixture_path;
use super::launch::{Launch, Route};

/// A moment that can be told from outside, so that what happens at it happens at the same point of every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// The launch has made so many requests with tools. The reply to the last of them waits for what happens.
    Request(usize),
    /// Its screen shows this text. No key is typed meanwhile.
    Screen(String),
    /// Something lies at this path, written as in the fixture. Nothing waits.
    File(String),
}

/// Starts a launch while an earlier one runs, instead of after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alongside {
    /// The number of the earlier launch, from 1.
    pub launch: usize,
    /// The moment of the earlier launch at which this one starts.
    pub once: Moment,
    /// The moment of this launch at which the earlier one may go on; its end unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
}

/// A signal that is sent to the process group of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalSent {
    pub send: Signal,
    pub once: Moment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    Hup,
    Int,
    Quit,
    Kill,
    Term,
}

impl Signal {
    /// Its number on Linux.
    pub fn number(self) -> i32 {
        match self {
            Self::Hup => 1,
            Self::Int => 2,
            Self::Quit => 3,
            Self::Kill => 9,
            Self::Term => 15,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hup => "hup",
            Self::Int => "int",
            Self::Quit => "quit",
            Self::Kill => "kill",
            Self::Term => "term",
        }
    }
}

impl Moment {
    /// What keeps this moment from ever coming in that launch.
    pub(super) fn check(&self, launch: &Launch) -> Result<(), String> {
        match self {
            Self::Request(n) if *n == 0 || *n > launch.n_steps() => Err(format!(
                "request {n} is never made: the script answers {}",
                launch.n_steps()
            )),
            Self::Screen(_) if launch.route != Route::Terminal => {
                Err("there is no screen: the launch is no terminal".to_owned())
            }
            Self::Screen(text) if text.is_empty() => Err("an empty text is on every screen".into()),
            Self::File(path) => check_fixture_path(path),
            Self::Request(_) | Self::Screen(_) => Ok(()),
        }
    }
}

/// After "once": `request 2 is made`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(n) => write!(f, "request {n} is made"),
            Self::Screen(text) => write!(f, "the screen shows {text:?}"),
            Self::File(path) => write!(f, "{path} is there"),
        }
    }
}
