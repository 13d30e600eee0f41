//! `pipeline/leaderboard.toml`, or another file of this form: which models are compared, and on what.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::stages::build::{Model, Order};
use crate::stages::{Classify, Failure, Kind, Result};

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Builds of a model that says nothing else.
    pub builds: usize,
    /// Ids, categories or prefixes of ids; everything when empty.
    pub cases: Vec<String>,
    /// By the name that it has in tables, and that its builds have with a number.
    #[serde(default)]
    pub model: BTreeMap<String, Entry>,
}

/// `[model.NAME]`: a table as in `pipeline/build.toml`, and `builds`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct Entry {
    pub model: Model,
    pub builds: Option<usize>,
}

impl TryFrom<toml::Table> for Entry {
    type Error = toml::de::Error;

    fn try_from(mut table: toml::Table) -> std::result::Result<Self, Self::Error> {
        let builds = table.remove("builds").map(usize::deserialize).transpose()?;
        Ok(Self {
            model: Model::deserialize(table)?,
            builds,
        })
    }
}

impl Settings {
    pub fn read(path: &Path) -> Result<Self> {
        let settings: Self = crate::storage::settings::read(path).kind(Kind::Settings)?;
        let wrong = |message: &str| Failure::settings(format!("{}: {message}", path.display()));
        if settings.model.is_empty() {
            return Err(wrong("no model is there yet").hint(
                "write one as the comment shows: [model.NAME] with protocol, endpoint, name, context_tokens, \
                 output_tokens, key_variable",
            ));
        }
        if settings.orders().iter().any(|order| order.builds == 0) {
            return Err(wrong("builds must be at least 1"));
        }
        Ok(settings)
    }

    pub fn orders(&self) -> Vec<Order> {
        let entries = self.model.iter();
        entries
            .map(|(name, entry)| Order {
                model: Some(name.clone()),
                builds: entry.builds.unwrap_or(self.builds),
                name: None,
            })
            .collect()
    }

    pub fn models(&self) -> BTreeMap<String, Model> {
        let entries = self.model.iter();
        entries
            .map(|(name, entry)| (name.clone(), entry.model.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_its_own_number_of_builds_or_that_of_all() {
        let table = "protocol = \"openai\"\nendpoint = \"https://h/v1\"\nname = \"n\"\ncontext_tokens = 9\n\
                     output_tokens = 3\n";
        let read = |more: &str| -> std::result::Result<Settings, toml::de::Error> {
            toml::from_str(&format!(
                "builds = 3\ncases = []\n[model.one]\n{table}[model.two]\n{table}{more}"
            ))
        };
        let orders = |more: &str| -> Vec<usize> {
            let settings = read(more).expect("settings");
            settings.orders().iter().map(|order| order.builds).collect()
        };
        assert_eq!(orders(""), [3, 3]);
        assert_eq!(orders("builds = 5\n"), [3, 5]);
        for (wrong, word) in [("builds = -1\n", "-1"), ("bilds = 5\n", "bilds")] {
            let error = read(wrong).expect_err("is wrong").to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
