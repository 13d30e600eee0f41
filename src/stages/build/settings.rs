//! `pipeline/build.toml`: limits, prompts, and the models that can build.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::adapters::gateway::{Protocol, Upstream};
use crate::adapters::sandbox::Limits;
use crate::domain::digest;
use crate::domain::secret::Secret;
use crate::stages::sandboxes::SandboxKind;
use crate::stages::{Classify, Context, Failure, Kind, Result};

/// Of memory, that must be left for programs when all folders are full.
const ROOM_MIB: u64 = 1024;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub sandbox: SandboxKind,
    /// Builds at the same time.
    pub jobs: usize,
    pub max_turns: usize,
    pub max_submissions: usize,
    /// Wall clock, from the first turn on.
    pub time_limit_s: u64,
    /// How long the endpoint may owe an answer before the build is no result of the model.
    pub silence_limit_s: u64,
    /// The part of a model's context window at which the history is compacted.
    pub compact_at: f64,
    /// What the builder is told in its first turn.
    pub task: String,
    /// What it is told in each further one.
    pub further: String,
    /// Of the builder's cell.
    pub limits: Limits,
    /// By the name that `--model` takes.
    #[serde(default)]
    pub model: BTreeMap<String, Model>,
}

/// `[model.NAME]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub protocol: Protocol,
    /// What the protocol's path is put behind, as `https://HOST/v1`.
    pub endpoint: String,
    /// What the endpoint calls it.
    pub name: String,
    /// Tokens of its context window.
    pub context_tokens: u64,
    /// Tokens of one answer at most.
    pub output_tokens: u64,
    /// The variable of the environment that holds the key; none for an endpoint without one.
    #[serde(default)]
    pub key_variable: Option<String>,
}

impl Settings {
    pub fn read(context: &Context) -> Result<Self> {
        let path = context.project.settings("build");
        let settings: Self = crate::storage::settings::read(&path).kind(Kind::Settings)?;
        let faults = [
            (settings.jobs == 0, "jobs must be at least 1"),
            (settings.max_turns == 0, "max_turns must be at least 1"),
            (
                settings.max_submissions == 0,
                "max_submissions must be at least 1",
            ),
            (
                !(0.1..=1.0).contains(&settings.compact_at),
                "compact_at must lie between 0.1 and 1",
            ),
            (
                settings.silence_limit_s == 0,
                "silence_limit_s must be at least 1",
            ),
            (
                2 * (settings.limits.folder_mib + settings.limits.tmp_mib) + ROOM_MIB
                    > settings.limits.memory_mib,
                "two folders of folder_mib, two of tmp_mib and 1024 MiB for programs are more than memory_mib",
            ),
        ];
        if let Some((_, fault)) = faults.iter().find(|(found, _)| *found) {
            return Err(Failure::settings(format!("{}: {fault}", path.display())));
        }
        Ok(settings)
    }

    pub fn silence_limit(&self) -> Duration {
        Duration::from_secs(self.silence_limit_s)
    }

    /// Digest of what two builds of a model have to have in common: limits, prompts and the model's table. Comments, other
    /// models, and how many builds run at a time are none of it.
    pub fn digest(&self, model: Option<&Model>) -> String {
        let alike = json!({
            "max_turns": self.max_turns,
            "max_submissions": self.max_submissions,
            "time_limit_s": self.time_limit_s,
            "silence_limit_s": self.silence_limit_s,
            "compact_at": self.compact_at,
            "task": self.task,
            "further": self.further,
            "limits": self.limits,
            "model": model,
        });
        digest::of([alike.to_string()])
    }

    pub fn model(&self, name: &str) -> Result<&Model> {
        self.model.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.model.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "none is there yet".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            Failure::user(format!("pipeline/build.toml has no [model.{name}]; {known}")).hint(
                format!(
                    "write one as its comment shows: [model.{name}] with protocol, endpoint, name, context_tokens, \
                     output_tokens, key_variable"
                ),
            )
        })
    }
}

impl Model {
    /// The way to the endpoint, with the key of the environment.
    pub fn upstream(&self, silence_limit: Duration) -> Result<Upstream> {
        let key = match &self.key_variable {
            None => None,
            Some(variable) => Some(key(variable)?),
        };
        let (protocol, endpoint) = (self.protocol, &self.endpoint);
        Upstream::new(protocol, endpoint, &self.name, key, silence_limit).kind(Kind::Settings)
    }
}

fn key(variable: &str) -> Result<Secret> {
    let text = std::env::var(variable).unwrap_or_default();
    if text.is_empty() {
        return Err(Failure::environment(format!(
            "{variable} holds no key of the model's endpoint"
        ))
        .hint(format!("export {variable}=…")));
    }
    Secret::new(&text)
        .ok_or_else(|| Failure::environment(format!("{variable} holds signs that no key has")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_what_builds_have_in_common() {
        let table = |name: &str| {
            format!(
                "[model.{name}]\nprotocol = \"openai\"\nendpoint = \"https://h/v1\"\nname = \"{name}\"\n\
                 context_tokens = 9\noutput_tokens = 3\n"
            )
        };
        let read = |text: &str| -> Settings { toml::from_str(text).expect("settings") };
        let text = include_str!("../../../pipeline/build.toml").to_owned() + &table("one");
        let of = |text: &str| {
            let settings = read(text);
            settings.digest(settings.model.get("one"))
        };
        let same = text.replace("jobs = 3", "jobs = 1 # fewer") + &table("two");
        assert_ne!(text, same);
        assert_eq!(of(&text), of(&same));
        for (old, new) in [
            ("context_tokens = 9", "context_tokens = 8"),
            ("max_turns       = 24", "max_turns = 23"),
            ("Read the whole document", "Read the document"),
            ("pids = 512", "pids = 511"),
        ] {
            let other = text.replace(old, new);
            assert_ne!(text, other, "{old}");
            assert_ne!(of(&text), of(&other), "{old}");
        }
        let settings = read(&text);
        assert_ne!(settings.digest(None), of(&text));
    }
}
