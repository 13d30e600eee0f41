//! Runs one shard of a plan. What earlier attempts at the shard have finished is not run again, wherever they ran and
//! however they ended; nothing of it is gated, since a control may have been run by another shard.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::evaluate::{self, Ledger, Work, changed_case, drawn_seed, find, run_failure};
use super::sandboxes::{self, SandboxKind, Settings};
use super::{Classify, Context, Failure, Kind, Result, plan};
use crate::adapters::program;
use crate::domain::evidence::EVIDENCE_FORMAT;
use crate::domain::shard::ShardId;
use crate::domain::suite::Suite;
use crate::storage::plans::StoredPlan;
use crate::storage::runs::{EvidenceStore, Plan, RunError, UnitOutcome};
use crate::storage::shards::{self, Attempt, Claim, Machine, Measured, SHARD_FORMAT};
use crate::storage::{candidates, suite};

#[derive(Debug, Clone)]
pub struct Config {
    pub plan: PathBuf,
    pub shard: ShardId,
    /// Where attempts are kept.
    pub shards: PathBuf,
    pub jobs: usize,
    /// Of this machine.
    pub settings: Settings,
}

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub plan: String,
    pub shard: ShardId,
    /// The folder of this attempt; none when the shard was sealed before.
    pub folder: Option<PathBuf>,
    pub n_units: usize,
    /// Units that this attempt ran; the others were finished before.
    pub n_run: usize,
    /// Units that our side broke, after all attempts. With some the shard is not sealed.
    pub n_invalid: usize,
    pub sealed: bool,
    /// How the units that were run ended, before gating: reason → number.
    pub ended: BTreeMap<String, usize>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let plan = plan::read(&config.plan)?;
    if config.shard.of() != plan.n_shards() {
        let n = plan.n_shards();
        return Err(Failure::user(format!(
            "the plan has {n} shards, so none is {}",
            config.shard
        ))
        .hint(format!("--shard {}/{n}", config.shard.index().min(n))));
    }
    attempt(context, config, &plan).map_err(|failure| match failure.kind {
        // Another machine may do it, or this one later.
        Kind::Environment | Kind::Interrupted => Failure {
            kind: Kind::Again,
            ..failure
        },
        _ => failure,
    })
}

fn attempt(context: &Context, config: &Config, plan: &StoredPlan) -> Result<Summary> {
    // That the cases obey the document was found when they were planned; here they are the same, or the shard is refused.
    let ids = plan.plan.run.cases.iter().map(|case| &case.id);
    let suite = suite::read_some(&context.project.cases(), ids)
        .map_err(|findings| Failure::findings(&findings))?;
    let kind = sandbox(&plan.plan.run)?;
    let settings = plan::settings(plan, config.settings.clone())?;
    let image = sandboxes::image_id(kind, &settings.image)?;
    let measured = measured(context, config.shard, plan, &suite, image.clone())?;
    let folder = shards::folder_of_shard(&config.shards, plan, config.shard);
    let earlier = shards::finished(&folder, plan, config.shard).map_err(run_failure)?;
    for refusal in &earlier.refused {
        context.progress.note(&format!("left out: {refusal}"));
    }
    let places = plan.places(config.shard);
    let missing: Vec<_> = places
        .iter()
        .filter(|place| !earlier.done.contains(place))
        .map(|place| plan.units()[*place].clone())
        .collect();
    let mut summary = Summary {
        plan: plan.digest.clone(),
        shard: config.shard,
        folder: None,
        n_units: places.len(),
        n_run: missing.len(),
        n_invalid: 0,
        sealed: true,
        ended: BTreeMap::new(),
    };
    if missing.is_empty() && earlier.is_sealed {
        return Ok(summary);
    }
    let claim = Claim {
        format: SHARD_FORMAT,
        attempt: drawn_seed()?,
        shard: config.shard,
        measured,
        machine: machine(context)?,
    };
    let mut kept = Kept {
        attempt: Attempt::begin(&folder, claim).map_err(run_failure)?,
        goes_on_with: format!(
            "pipeline evaluate --plan {} --shard {} --shards {}",
            config.plan.display(),
            config.shard,
            config.shards.display()
        ),
        ended: BTreeMap::new(),
        n_invalid: 0,
    };
    if !missing.is_empty() {
        // By its id: its name may come to mean another one meanwhile.
        let image = image.as_ref().unwrap_or(&settings.image);
        let work = async {
            let work = Work {
                plan: &plan.plan.run,
                suite: &suite,
                expected: Some(&evaluate::Expected::read(context, &suite)?),
                sandbox: sandboxes::open(context, kind, image).await?,
                settings: &settings,
                jobs: config.jobs,
            };
            evaluate::run_units(context, work, missing, &mut kept).await
        };
        evaluate::runtime(config.jobs, work)?;
    }
    summary.folder = Some(kept.attempt.folder().to_path_buf());
    summary.ended = kept.ended;
    summary.n_invalid = kept.n_invalid;
    summary.sealed = kept.n_invalid == 0;
    if summary.sealed {
        kept.attempt.seal(earlier.kept).map_err(run_failure)?;
    }
    Ok(summary)
}

/// What verdicts depend on, as it is on this machine; it must be what was planned.
fn measured(
    context: &Context,
    shard: ShardId,
    plan: &StoredPlan,
    suite: &Suite,
    image: Option<String>,
) -> Result<Measured> {
    let planned = &plan.plan.run;
    let never = |why: String| Failure::new(Kind::Never, why);
    if let Some(case) = changed_case(suite, planned) {
        return Err(never(format!("{case} is not as it was planned"))
            .hint("bring the cases of the plan here, or plan again: pipeline plan"));
    }
    let cases = planned.cases.iter().filter_map(|case| suite.get(&case.id));
    let names: BTreeSet<&str> = plan
        .places(shard)
        .iter()
        .map(|place| plan.units()[*place].candidate.as_str())
        .collect();
    let mut digests = BTreeMap::new();
    for candidate in &planned.candidates {
        if names.contains(candidate.name.as_str()) {
            let found = find(context, &candidate.source).map_err(|failure| Failure {
                kind: Kind::Never,
                ..failure
            })?;
            let digest = candidates::candidate_digest(&found).kind(Kind::Settings)?;
            digests.insert(candidate.name.clone(), digest);
        }
    }
    let measured = Measured {
        plan: plan.digest.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        build: program::build().kind(Kind::Environment)?,
        evidence_format: EVIDENCE_FORMAT,
        sandbox: sandbox(planned)?.as_str().to_owned(),
        image,
        suite: suite::digest(cases),
        candidates: digests,
    };
    match measured.difference(plan) {
        Some(why) => {
            Err(never(why).hint("bring what was planned here, or plan again: pipeline plan"))
        }
        None => Ok(measured),
    }
}

fn sandbox(planned: &Plan) -> Result<SandboxKind> {
    let name = &planned.sandbox;
    <SandboxKind as clap::ValueEnum>::from_str(name, false)
        .map_err(|_| Failure::new(Kind::Never, format!("there is no sandbox {name:?} here")))
}

fn machine(context: &Context) -> Result<Machine> {
    const ENGINE: [&str; 6] = [
        "JOB_COMPLETION_INDEX",
        "SLURMD_NODENAME",
        "SLURM_ARRAY_JOB_ID",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_JOB_ID",
        "SLURM_RESTART_COUNT",
    ];
    let about = nix::sys::utsname::uname()?;
    Ok(Machine {
        host: about.nodename().to_string_lossy().into_owned(),
        kernel: about.release().to_string_lossy().into_owned(),
        pid: std::process::id(),
        started_at: context.timestamp(),
        engine: ENGINE
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect(),
    })
}

/// An attempt that counts what it keeps.
struct Kept {
    attempt: Attempt,
    goes_on_with: String,
    ended: BTreeMap<String, usize>,
    n_invalid: usize,
}

impl Ledger for Kept {
    fn evidence(&self) -> EvidenceStore {
        self.attempt.evidence()
    }

    fn record(&mut self, units: &[UnitOutcome]) -> std::result::Result<(), RunError> {
        self.attempt.record(units)?;
        for unit in units {
            let reason = unit.outcome.reason().to_owned();
            *self.ended.entry(reason).or_default() += 1;
            self.n_invalid += usize::from(!unit.outcome.is_valid());
        }
        Ok(())
    }

    fn goes_on_with(&self) -> String {
        self.goes_on_with.clone()
    }
}
