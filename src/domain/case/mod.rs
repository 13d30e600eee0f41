//! The case language: what a file below `cases/` may say.
//!
//! A file is a test case (it has a `category`) or a positive control (it has a `class`). Both hold a fixture,
//! launches with the mock model's script, and assertions. `{nonce:NAME}`, `{workspace}`, `{outside}`, `{home}`
//! and `{state}` in any string stand for values drawn or known only at run time ([`Bindings`]).
//! What needs more than one file to judge (clauses, gating) is in [`crate::methods::suite_check`].

mod bindings;
mod capture;
mod check;
mod fixture;
mod git;
mod id;
mod launch;
mod moment;
mod origin;
mod places;
mod reply;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bindings::Bindings;
pub use capture::Capture;
pub(super) use capture::{check_path, check_pattern};
pub use fixture::{Entry, Made, check_fixture_path};
pub use git::{Commit, Git};
pub use id::{CaseId, Category, ControlClass};
pub use launch::{DEFAULT_TIME_LIMIT_S, Key, KeyWait, Launch, Route, StdinIs, key_bytes};
pub use moment::{Alongside, Moment, Signal, SignalSent};
pub use origin::{Method, Origin, Variable};
pub use places::Places;
pub use reply::{Call, Fault, Finish, Reply, When};

use super::clause::{ClauseId, Scenario};
use super::expect::Expect;
use super::place::{Finding, Place};

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
    pub file: PathBuf,
    pub text: String,
}

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

    /// Where a test comes from, when it says so.
    pub fn origin(&self) -> Option<&Origin> {
        match &self.role {
            Role::Test { origin, .. } => origin.as_ref(),
            Role::Control { .. } => None,
        }
    }

    /// Places of keys in the file, for findings about this case.
    pub fn places(&self) -> Places<'_> {
        Places::new(&self.file, &self.text)
    }
}

/// The published JSON Schema of a case file.
pub fn schema() -> Value {
    schemars::schema_for!(CaseFile).to_value()
}
