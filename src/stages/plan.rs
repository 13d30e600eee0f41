//! Plans a run on many machines: freezes all that decides verdicts, and deals the units to shards.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::evaluate::{self, Expected};
use super::sandboxes::{self, Settings};
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::program;
use crate::adapters::sandbox::Limits;
use crate::domain::evidence::EVIDENCE_FORMAT;
use crate::methods::sharding;
use crate::storage::plans::{self, PlanError, SHARD_PLAN_FORMAT, ShardPlan, StoredPlan};

#[derive(Debug, Clone)]
pub struct Config {
    /// Candidates, cases, sandbox, repetitions, seed and the name of the run, as for a run on one machine.
    pub evaluation: evaluate::Config,
    pub n_shards: u32,
    /// Let any build of this version run shards, not only this one.
    pub any_build: bool,
    /// Named by the digest, below `data/plans/`, unless said.
    pub out: Option<PathBuf>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub file: PathBuf,
    /// SHA-256 of the file.
    pub digest: String,
    /// The run that a merge will write.
    pub run: String,
    pub n_candidates: usize,
    pub n_units: usize,
    pub shards: Vec<ShardSummary>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ShardSummary {
    pub n_units: usize,
    pub n_candidates: usize,
    /// Of all its units one after the other: what they took in earlier runs, else their time limits.
    pub expected_ms: u64,
}

/// The settings of `pipeline/evaluate.toml` that verdicts depend on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frozen {
    attempts: u32,
    install_limit_s: u64,
    /// Of Docker cells.
    image: String,
    limits: Limits,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let suite = evaluate::suite(context)?;
    let evaluation = &config.evaluation;
    let sandbox = evaluation.sandbox.as_str();
    let mut named = evaluation.clone();
    named.run.get_or_insert_default();
    let run = evaluate::plan(context, &named, &suite, sandbox)?;
    let units: Vec<_> = run.units().collect();
    let expected = Expected::read(context, &suite)?;
    let expected_ms: Vec<u64> = units.iter().map(|unit| expected.ms(unit)).collect();
    let n_candidates = run.candidates.len();
    let n_of_candidate = units.len() / n_candidates.max(1);
    let durations: Vec<Vec<u64>> = expected_ms
        .chunks(n_of_candidate.max(1))
        .map(<[u64]>::to_vec)
        .collect();
    let place = |(candidate, unit)| candidate * n_of_candidate + unit;
    let shards: Vec<Vec<usize>> = sharding::deal(&durations, config.n_shards as usize)
        .into_iter()
        .map(|shard| shard.into_iter().map(place).collect())
        .collect();
    let settings = &evaluation.settings;
    let mut plan = ShardPlan {
        format: SHARD_PLAN_FORMAT,
        evidence_format: EVIDENCE_FORMAT,
        build: match config.any_build {
            true => None,
            false => Some(program::build().kind(Kind::Environment)?),
        },
        image: sandboxes::image_id(evaluation.sandbox, &settings.image)?,
        run,
        settings: serde_json::to_value(Frozen {
            attempts: settings.attempts,
            install_limit_s: settings.install_limit_s,
            image: settings.image.clone(),
            limits: settings.limits.clone(),
        })?,
        shards,
    };
    if evaluation.run.is_none() {
        // No other run of this day has this name, whatever is run between now and the merge.
        let day = context.now.format("%Y-%m-%d");
        plan.run.run = format!("{day}-{}", &plan.digest()[..8]);
    }
    let digest = plan.digest();
    let name = format!("{}.json", plans::name(&digest));
    let file = config
        .out
        .clone()
        .unwrap_or_else(|| context.project.plans().join(name));
    plans::write(&file, &plan).kind(Kind::Environment)?;
    Ok(Summary {
        file,
        digest,
        run: plan.run.run,
        n_candidates,
        n_units: units.len(),
        shards: plan
            .shards
            .iter()
            .map(|places| {
                let mut candidates: Vec<usize> = places
                    .iter()
                    .map(|place| place / n_of_candidate.max(1))
                    .collect();
                candidates.sort_unstable();
                candidates.dedup();
                ShardSummary {
                    n_units: places.len(),
                    n_candidates: candidates.len(),
                    expected_ms: places.iter().map(|place| expected_ms[*place]).sum(),
                }
            })
            .collect(),
    })
}

/// Reads a plan that a person named.
pub fn read(file: &std::path::Path) -> Result<StoredPlan> {
    plans::read(file).map_err(|error| {
        let kind = match error {
            PlanError::File { .. } => Kind::User,
            PlanError::Broken { .. } => Kind::Settings,
        };
        Failure {
            kind,
            source: error.into(),
            hints: vec!["make a plan: pipeline plan -c NAME --shards N".to_owned()],
        }
    })
}

/// The limits of a trial.
pub fn limits(plan: &StoredPlan) -> Result<Limits> {
    Ok(frozen(plan)?.limits)
}

/// Settings with what the plan has frozen in place of what the file of this machine says.
pub fn settings(plan: &StoredPlan, of_machine: Settings) -> Result<Settings> {
    let frozen = frozen(plan)?;
    Ok(Settings {
        attempts: frozen.attempts,
        install_limit_s: frozen.install_limit_s,
        image: frozen.image,
        limits: frozen.limits,
        ..of_machine
    })
}

fn frozen(plan: &StoredPlan) -> Result<Frozen> {
    serde_json::from_value(plan.plan.settings.clone())
        .map_err(|error| Failure::settings(format!("the settings of the plan: {error}")))
}
