//! The case language: what a file below `cases/` may say.
//!
//! A file is a test case (it has a `category`) or a positive control (it has a `class`). Both hold a fixture,
//! launches with the mock model's script, and assertions. `{nonce:NAME}`, `{workspace}`, `{outside}`, `{home}`
//! and `{state}` in any string stand for values drawn or known only at run time ([`Bindings`]).
//! What needs more than one file to judge (clauses, gating) is in [`crate::methods::suite_check`].

mod bindings;
mod fixture;
mod id;
mod launch;
mod origin;
mod places;
mod reply;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bindings::Bindings;
use bindings::placeholders;
pub use fixture::{Entry, Made, check_fixture_path};
pub use id::{CaseId, Category, ControlClass};
pub use launch::{DEFAULT_TIME_LIMIT_S, Key, Launch, Route, key_bytes};
pub use origin::{Method, Origin, Variable};
pub use places::Places;
pub use reply::{Call, Fault, Reply, When};

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

    /// Places of keys in the file, for findings about this case.
    pub fn places(&self) -> Places<'_> {
        Places::new(&self.file, &self.text)
    }

    /// Whether a launch can begin there: a place, or a folder that the fixture makes.
    fn makes_folder(&self, cwd: &str) -> bool {
        let below = cwd
            .strip_prefix("{workspace}/")
            .unwrap_or(cwd)
            .trim_end_matches('/');
        let inside = format!("{below}/");
        ["{workspace}", "{outside}", "{home}"].contains(&cwd)
            || self.fixture.iter().any(|(path, entry)| {
                let path = path.strip_prefix("{workspace}/").unwrap_or(path);
                let folder = matches!(entry, Entry::Made(made) if made.dir || made.link.is_some());
                path.starts_with(&inside) || (folder && path == below)
            })
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
        for (path, message) in fixture::conflicts(&self.fixture) {
            findings.push(Finding::new(places.of_entry("fixture", path), message));
        }
        for (launch_idx, launch) in self.launches.iter().enumerate() {
            if let Some(cwd) = launch.cwd.as_deref().filter(|cwd| !self.makes_folder(cwd)) {
                findings.push(Finding::new(
                    places.nth("launch", launch_idx),
                    format!("cwd {cwd:?} is no place and no folder of the fixture"),
                ));
            }
            for message in launch.faults() {
                findings.push(Finding::new(places.nth("launch", launch_idx), message));
            }
        }
        let drawn = json_nonces(&(&self.fixture, &self.launches));
        for (expect_idx, expect) in self.expects.iter().enumerate() {
            for message in expect.faults(&self.launches) {
                findings.push(Finding::new(places.nth("expect", expect_idx), message));
            }
            for name in json_nonces(expect) {
                if !drawn.contains(&name) {
                    findings.push(Finding::new(
                        places.nth("expect", expect_idx),
                        format!("{{nonce:{name}}} occurs neither in the fixture nor in a launch"),
                    ));
                }
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

/// Names of the nonces in any string of a value.
fn json_nonces(value: &impl Serialize) -> Vec<String> {
    let text = serde_json::to_string(value).expect("a case is plain data with string keys");
    Bindings::nonce_names(&text)
}

/// The published JSON Schema of a case file.
pub fn schema() -> Value {
    schemars::schema_for!(CaseFile).to_value()
}
