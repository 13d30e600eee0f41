//! OpenCode as the builder: the packages that `pipeline prepare` installs, configured for the gateway alone.

use serde_json::json;

use super::builder::Builder;
use super::settings::Model;
use crate::adapters::gateway::{BASE_PATH, Protocol};
use crate::adapters::sandbox::Mount;
use crate::stages::adapted::{self, PACKAGES};
use crate::stages::trial::PORT;
use crate::stages::{Context, Failure, Result};

/// The candidate whose packages these are.
const ADAPTER: &str = "adapters/opencode";

#[derive(Debug)]
pub struct OpenCode {
    version: String,
    packages: Mount,
    config: String,
}

impl OpenCode {
    /// `compact_at` is the part of the model's context window at which OpenCode compacts the history.
    pub fn new(context: &Context, model: &Model, compact_at: f64) -> Result<Self> {
        let tree = context.project.candidates().join(ADAPTER);
        let adapted = adapted::read(context, &tree, ADAPTER)?.ok_or_else(|| {
            Failure::environment(format!(
                "{} is not there: OpenCode is installed by it",
                context.project.shown(&tree)
            ))
        })?;
        let packages = adapted.mounts().pop().ok_or_else(|| {
            Failure::settings(format!("{ADAPTER}/adapter.toml names no packages"))
        })?;
        Ok(Self {
            version: adapted.adapter.version,
            packages,
            config: config(model, compact_at),
        })
    }

    fn program() -> String {
        format!("{PACKAGES}/node_modules/opencode-linux-x64/bin/opencode")
    }
}

impl Builder for OpenCode {
    fn name(&self) -> String {
        format!("opencode {}", self.version)
    }

    fn packages(&self) -> Option<String> {
        let digest = self.packages.host.file_name()?;
        Some(digest.to_string_lossy().into_owned())
    }

    fn mounts(&self) -> Vec<Mount> {
        vec![self.packages.clone()]
    }

    fn env(&self) -> Vec<(String, String)> {
        [
            ("OPENCODE_CONFIG_CONTENT", self.config.as_str()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    fn start(&self) -> Option<(Vec<String>, String)> {
        Some((
            vec![Self::program(), "--version".to_owned()],
            self.version.clone(),
        ))
    }

    fn turn(&self, turn: usize, prompt: &str) -> Vec<String> {
        let mut argv = vec![
            Self::program(),
            "run".into(),
            "--format".into(),
            "json".into(),
        ];
        if turn > 1 {
            argv.push("--continue".into());
        }
        argv.extend(["--".into(), prompt.to_owned()]);
        argv
    }
}

/// OpenCode compacts when `limit.input` less `compaction.reserved` is reached, so that the two say the part.
fn config(model: &Model, compact_at: f64) -> String {
    let name = format!("gateway/{}", model.name);
    let package = match model.protocol {
        Protocol::Openai => "@ai-sdk/openai-compatible",
        Protocol::Anthropic => "@ai-sdk/anthropic",
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a part of a window is a number of tokens"
    )]
    let compacted = (model.context_tokens as f64 * compact_at) as u64;
    json!({
        "model": name,
        "small_model": name,
        "provider": { "gateway": {
            "npm": package,
            "options": {
                "baseURL": format!("http://127.0.0.1:{PORT}{BASE_PATH}"),
                // The key is the gateway's.
                "apiKey": "none",
                // Models think for long before their first word, and the gateway has a limit of its own.
                "timeout": false,
            },
            "models": { &model.name: { "limit": {
                "context": model.context_tokens,
                "input": model.context_tokens,
                "output": model.output_tokens,
            } } },
        } },
        "compaction": { "auto": true, "reserved": model.context_tokens - compacted },
        // Nobody can be asked, and the cell has nothing to protect; the two that need a network would only fail.
        "permission": { "*": "allow", "webfetch": "deny", "websearch": "deny", "question": "deny" },
        "autoupdate": false,
        "share": "disabled",
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opencode_is_told_where_to_compact_and_no_key() {
        let model = Model {
            protocol: Protocol::Openai,
            endpoint: "https://h/v1".into(),
            name: "m".into(),
            context_tokens: 200_000,
            output_tokens: 32_000,
            key_variable: Some("SECRET".into()),
        };
        let config: serde_json::Value =
            serde_json::from_str(&config(&model, 0.8)).expect("is JSON");
        let limit = &config["provider"]["gateway"]["models"]["m"]["limit"];
        let reserved = config["compaction"]["reserved"].as_u64().expect("a number");
        assert_eq!(limit["input"].as_u64(), Some(reserved + 160_000));
        assert_eq!(config["provider"]["gateway"]["options"]["apiKey"], "none");
        assert!(!config.to_string().contains("https://h"));
    }
}
