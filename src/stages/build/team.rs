//! Who builds for an order: the builder, its model, and what the record of each of its builds begins with.

use std::time::Duration;

use super::builder::{Builder, CommandBuilder};
use super::opencode::OpenCode;
use super::settings::Model;
use super::{Config, Order};
use crate::adapters::gateway::Upstream;
use crate::domain::build::{Build, State};
use crate::domain::digest;
use crate::stages::{Context, Failure, Result};
use crate::storage::candidates;

pub struct Team<'a> {
    pub order: &'a Order,
    pub builder: Box<dyn Builder>,
    model: Option<&'a Model>,
    pub record: Build,
}

/// One for each order. `document` is what builders are given.
pub fn teams<'a>(context: &Context, config: &'a Config, document: &str) -> Result<Vec<Team<'a>>> {
    let document = digest::of([document]);
    let skeleton = candidates::digest(&context.project.skeleton())?;
    let team = |order: &'a Order| {
        let settings = &config.settings;
        let model = match &order.model {
            Some(name) => Some(settings.model(name)?),
            None => None,
        };
        let builder: Box<dyn Builder> = match (&config.builder, model) {
            (Some(command), _) => Box::new(CommandBuilder::new(command, &config.show)?),
            (None, Some(model)) => Box::new(OpenCode::new(context, model, settings.compact_at)?),
            (None, None) => {
                return Err(Failure::user("OpenCode builds with a model")
                    .hint("pipeline build --model NAME, or --builder COMMAND"));
            }
        };
        let record = Build {
            name: String::new(),
            state: State::Running,
            why: None,
            builder: builder.name(),
            packages: builder.packages(),
            model: order.model.clone(),
            started_at: context.timestamp(),
            duration_ms: 0,
            settings: settings.digest(model),
            document: document.clone(),
            skeleton: skeleton.clone(),
            sandbox: config.sandbox.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            turns: Vec::new(),
            submissions: Vec::new(),
        };
        Ok(Team {
            order,
            builder,
            model,
            record,
        })
    };
    config.orders.iter().map(team).collect()
}

impl Team<'_> {
    /// The way to the model, with the key of the environment; none without a model.
    pub fn upstream(&self, silence_limit: Duration) -> Result<Option<Upstream>> {
        let upstream = self.model.map(|model| model.upstream(silence_limit));
        upstream.transpose()
    }

    /// Of all builds, in whatever state, those that are repetitions of what this team builds, the earliest first. Without
    /// a model nothing is repeated.
    pub fn made(&self, all: &[Build]) -> Vec<Build> {
        let own = |build: &&Build| build.model.is_some() && build.is_repetition_of(&self.record);
        let mut made: Vec<Build> = all.iter().filter(own).cloned().collect();
        // Names end with a number.
        made.sort_by_cached_key(|build| {
            let name = build.name.clone();
            (build.started_at.clone(), name.len(), name)
        });
        made
    }
}
