//! From a list of models to a table: builds of each, a run of the suite for each candidate that came of them, and the
//! statistics over all runs. What is finished is never done again: builds that count are kept, a run of the same cases on
//! the same candidate is gone on with or taken as it is, and the figures are renewed each time.

mod settings;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Classify, Context, Failure, Kind, Result, analyze, build, evaluate};
use crate::domain::build::{Build, State};
use crate::methods::analysis::Analysis;
use crate::methods::report::{BoardFacts, Contestant, Leaderboard, leaderboard};
use crate::storage::builds;
use crate::storage::runs::Plan;
pub use settings::Settings;

/// What the stages that it is made of are run with.
pub struct Config {
    /// Its orders are the models, in the order of their names.
    pub build: build::Config,
    /// Its candidates are those that were built.
    pub evaluation: evaluate::Config,
    pub analysis: analyze::Settings,
    /// Where the table is written.
    pub out: PathBuf,
    /// Where to put the figures.
    pub figures: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub leaderboard: Leaderboard,
    /// Builds that are wanted and not there: void, aborted, or being made elsewhere.
    pub n_missing: usize,
    /// Units of all runs that our side broke.
    pub n_invalid: usize,
    /// Files that were written.
    pub files: Vec<String>,
}

/// What would be done.
#[derive(Debug, Serialize)]
pub struct Forecast {
    pub models: Vec<Expected>,
    pub n_builds: usize,
    /// If every build takes all of its time, with as many at a time as there may be.
    pub at_most_hours: f64,
    /// Of one run.
    pub n_cases: usize,
    /// Candidates that are there already.
    pub n_candidates: usize,
}

/// Of one model.
#[derive(Debug, Serialize)]
pub struct Expected {
    pub model: String,
    pub endpoint: String,
    /// What the endpoint calls it.
    pub name: String,
    pub n_wanted: usize,
    /// Builds that count and are kept.
    pub kept: Vec<String>,
    pub n_missing: usize,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    fs::create_dir_all(&config.out).kind(Kind::Environment)?;
    let _lock = lock(context, &config.out)?;
    // A fault of the suite is told before hours of building.
    planned(context, config)?;
    build::run(context, &config.build)?;
    let (contestants, facts) = contestants(context, config)?;
    let (runs, n_invalid) = evaluated(context, config, &contestants)?;
    let mut files = Vec::new();
    let analysis = match runs.is_empty() {
        true => None,
        false => Some(analysed(context, config, &contestants, &runs, &mut files)?),
    };
    let leaderboard = leaderboard(facts, &contestants, &runs, analysis.as_ref());
    let json = serde_json::to_string_pretty(&leaderboard)? + "\n";
    let mut table = csv::Writer::from_writer(Vec::new());
    for record in leaderboard.records() {
        table.write_record(record)?;
    }
    for (name, bytes) in [
        ("leaderboard.json", json.into_bytes()),
        ("leaderboard.csv", table.into_inner()?),
        ("leaderboard.md", leaderboard.markdown().into_bytes()),
    ] {
        let path = config.out.join(name);
        write(&path, &bytes).kind(Kind::Environment)?;
        files.push(context.project.shown(&path));
    }
    Ok(Summary {
        n_missing: leaderboard.n_missing(),
        leaderboard,
        n_invalid,
        files,
    })
}

/// Says what [`run`] would do, and changes nothing.
pub fn forecast(context: &Context, config: &Config) -> Result<Forecast> {
    let (contestants, facts) = contestants(context, config)?;
    let settings = &config.build.settings;
    let models: Vec<Expected> = contestants
        .iter()
        .map(|contestant| {
            let model = settings.model(&contestant.model)?;
            Ok(Expected {
                model: contestant.model.clone(),
                endpoint: model.endpoint.clone(),
                name: model.name.clone(),
                n_wanted: contestant.n_wanted,
                kept: contestant
                    .builds
                    .iter()
                    .map(|build| build.name.clone())
                    .collect(),
                n_missing: contestant.n_wanted - contestant.builds.len(),
            })
        })
        .collect::<Result<_>>()?;
    let n_builds = models.iter().map(|model| model.n_missing).sum::<usize>();
    Ok(Forecast {
        models,
        n_builds,
        at_most_hours: (n_builds.div_ceil(settings.jobs) as u64 * settings.time_limit_s) as f64
            / 3600.0,
        n_cases: facts.n_cases,
        n_candidates: contestants.iter().flat_map(delivered).count(),
    })
}

/// One table is made by one process at a time: two would pay for the same builds.
fn lock(context: &Context, out: &Path) -> Result<File> {
    let path = out.join(".lock");
    let lock = File::create(&path).kind(Kind::Environment)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(Failure::user(format!(
            "another process makes the table in {}",
            context.project.shown(out)
        ))
        .hint("wait for it: two at a time would pay for the same builds")),
        Err(fs::TryLockError::Error(error)) => Err(error).kind(Kind::Environment),
    }
}

/// The cases that every candidate is run on.
fn planned(context: &Context, config: &Config) -> Result<Plan> {
    let suite = evaluate::suite(context)?;
    let sandbox = config.evaluation.sandbox.as_str();
    evaluate::plan(context, &config.evaluation, &suite, sandbox)
}

/// What there is of each model; of more builds than are wanted the earliest.
fn contestants(context: &Context, config: &Config) -> Result<(Vec<Contestant>, BoardFacts)> {
    let plan = planned(context, config)?;
    let made = build::known(context, &config.build)?;
    let first = made.first().expect("the settings have a model");
    let facts = BoardFacts {
        builder: first.builder.clone(),
        document: first.document.clone(),
        n_cases: plan.facts().len(),
        suite: plan.suite,
    };
    let orders = config.build.orders.iter().zip(made);
    let contestants = orders.map(|(order, made)| {
        let is_lost = |build: &&Build| matches!(build.state, State::Void | State::Aborted);
        let n_left_out = made.builds.iter().filter(is_lost).count();
        let counted = made.builds.into_iter().filter(|build| build.state.counts());
        Contestant {
            model: order.model.clone().expect("every order here has a model"),
            n_wanted: order.builds,
            builds: counted.take(order.builds).collect(),
            n_left_out,
        }
    });
    Ok((contestants.collect(), facts))
}

fn delivered(contestant: &Contestant) -> impl Iterator<Item = &Build> {
    let builds = contestant.builds.iter();
    builds.filter(|build| build.state == State::Passed)
}

/// Build → its run, and how many units our side broke in all of them.
fn evaluated(
    context: &Context,
    config: &Config,
    contestants: &[Contestant],
) -> Result<(BTreeMap<String, String>, usize)> {
    let mut runs = BTreeMap::new();
    let mut n_invalid = 0;
    for build in contestants.iter().flat_map(delivered) {
        let candidate = builds::candidate_in(&config.build.folder.join(&build.name));
        if !candidate.is_dir() {
            return Err(Failure::user(format!(
                "the candidate of the build {} is gone: {}",
                build.name,
                candidate.display()
            ))
            .hint("bring it back, or remove the folder of the build: then it is built again"));
        }
        let evaluation = evaluate::Config {
            candidates: vec![candidate.display().to_string()],
            ..config.evaluation.clone()
        };
        context
            .progress
            .note(&format!("{}: is evaluated", build.name));
        let evaluated = evaluate::run(context, &evaluation)?;
        n_invalid += evaluated.n_invalid;
        runs.insert(build.name.clone(), evaluated.run);
    }
    Ok((runs, n_invalid))
}

/// The statistics over all runs.
fn analysed(
    context: &Context,
    config: &Config,
    contestants: &[Contestant],
    runs: &BTreeMap<String, String>,
    files: &mut Vec<String>,
) -> Result<Analysis> {
    let models = contestants.iter().flat_map(|contestant| {
        delivered(contestant).map(|build| (build.name.clone(), contestant.model.clone()))
    });
    let estimates = config.out.join("estimates.csv");
    let summary = analyze::run(
        context,
        &analyze::Config {
            source: analyze::Source::Runs(runs.values().cloned().collect()),
            settings: config.analysis.clone(),
            models: models.collect(),
            compare: None,
            facts: None,
            figures: config.figures.clone(),
            csv_out: Some(estimates.clone()),
        },
    )?;
    files.push(context.project.shown(&estimates));
    files.extend(summary.figures);
    Ok(summary.analysis)
}

/// In place of what was there, at once.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}
