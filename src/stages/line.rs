//! The whole line: collect → rank → cluster → filter → queue → expand → evaluate → report. Each step is done only when
//! something that it reads has changed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::evaluate::{self, Config as Evaluation, TakeUp};
use super::sandboxes::Settings as Sandboxes;
use super::{
    Classify, Context, Failure, Kind, Result, cluster, collect, expand, filter, rank, report,
    review,
};
use crate::storage::settings;

/// `pipeline/run.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A file or folder of issues, below the project.
    pub issues: PathBuf,
    /// The case that variants are derived from.
    pub seed: String,
    /// Candidates that the suite is run on.
    pub candidates: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    pub sandboxes: Sandboxes,
    /// Do everything, whatever has changed.
    pub again: bool,
}

impl Config {
    pub fn read(context: &Context) -> Result<Self> {
        let path = context.project.settings("run");
        Ok(Self {
            settings: settings::read(&path).kind(Kind::Settings)?,
            sandboxes: Sandboxes::read(context)?,
            again: false,
        })
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub steps: Vec<Step>,
    pub evaluation: evaluate::Summary,
    /// The report's HTML file.
    pub report: PathBuf,
}

/// What became of one step.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    pub stage: &'static str,
    /// False when nothing that it reads had changed; none for what is only told.
    pub done: Option<bool>,
    pub words: String,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let mut steps = Vec::new();
    let mut tell = |stage, done, words: String| steps.push(Step { stage, done, words });

    let issues = context.project.root().join(&config.settings.issues);
    if !issues.exists() {
        return Err(Failure::settings(format!(
            "pipeline/run.toml: there are no issues at {}",
            config.settings.issues.display()
        )));
    }
    let collected = collect::run(
        context,
        collect::Config {
            source: collect::Source::Files {
                paths: vec![issues],
                repository: None,
                names: collect::Names::default(),
            },
        },
    )?;
    let changed = collected.n_new + collected.n_changed;
    let words = format!(
        "{} new, {} changed, {} as before",
        collected.n_new, collected.n_changed, collected.n_same
    );
    tell("collect", Some(changed > 0), words);

    let ranked = rank::run(
        context,
        &rank::Config {
            again: config.again,
            ..rank::Config::read(&context.project)?
        },
    )?;
    let words = format!("{} issues by {} clauses", ranked.n_issues, ranked.n_clauses);
    tell("rank", Some(!ranked.unchanged), words);

    let clustered = cluster::run(
        context,
        &cluster::Config {
            again: config.again,
            all: true,
            ..cluster::Config::read(&context.project)?
        },
    )?;
    let words = format!(
        "{} issues, {} phenomena",
        clustered.n_issues, clustered.n_clusters
    );
    tell("cluster", Some(!clustered.unchanged), words);

    let filtered = filter::run(
        context,
        &filter::Config {
            again: config.again,
            ..filter::Config::read(&context.project)?
        },
    )?;
    let words = format!("{} of {} kept", filtered.n_kept, filtered.n_clusters);
    tell("filter", Some(!filtered.unchanged), words);

    let expanded = expand::run(
        context,
        &expand::Config {
            operators: settings::read(&context.project.settings("expand")).kind(Kind::Settings)?,
            seed: config.settings.seed.clone(),
            out: context.project.variants(),
            overwrite: false,
        },
    )?;
    let words = format!(
        "{} variants of {} kept, {} dropped",
        expanded.n_kept,
        expanded.seed,
        expanded.variants.len() - expanded.n_kept
    );
    tell("expand", Some(expanded.n_written > 0), words);

    let waiting = review::waiting(context)?;
    let words: Vec<String> = waiting
        .iter()
        .map(|(kind, n)| format!("{} {n}", kind.as_str()))
        .collect();
    tell("queue", None, format!("waiting: {}", words.join(" · ")));

    let evaluation = evaluate::run(
        context,
        &Evaluation {
            candidates: config.settings.candidates.clone(),
            cases: Vec::new(),
            sandbox: config.sandboxes.sandbox,
            jobs: config.sandboxes.jobs(),
            repeat: 1,
            run: None,
            resume: None,
            take_up: match config.again {
                true => TakeUp::Nothing,
                false => TakeUp::Newest,
            },
            seed: None,
            shuffle: None,
            known: Vec::new(),
            settings: config.sandboxes.clone(),
        },
    )?;
    let words = format!(
        "run {}: {} candidates, {} verdicts",
        evaluation.run,
        evaluation.plan.candidates.len(),
        evaluation.verdicts.len()
    );
    tell("evaluate", Some(evaluation.n_run > 0), words);

    let html = evaluation.folder.join("report/report.html");
    let fresh = evaluation.n_run == 0 && !config.again && html.exists();
    let html = match fresh {
        true => html,
        false => {
            report::run(
                context,
                &report::Config {
                    run: Some(evaluation.run.clone()),
                    baseline: None,
                    out: None,
                    times: false,
                    junit: None,
                },
            )?
            .html
        }
    };
    tell("report", Some(!fresh), context.project.shown(&html));
    Ok(Summary {
        steps,
        evaluation,
        report: html,
    })
}
