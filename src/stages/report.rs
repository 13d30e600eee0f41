//! Writes the report of a run: HTML, Markdown, JSON and CSV of the same facts, in the run's folder unless said.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::stored_run::{self, classify};
use super::{Classify, Context, Kind, Result};
use crate::domain::case::CaseId;
use crate::domain::results::{self, Facts};
use crate::methods::analysis::analyse;
use crate::methods::report::{
    Baseline, CandidateFacts, Inputs, Report, RunFacts, UnitFacts, compose, html, markdown,
};
use crate::methods::timeline::{self, Timeline};
use crate::storage::runs::{Plan, Run, UnitOutcome};
use crate::storage::{suite, verdict_table};

pub struct Config {
    /// The newest run when none is named.
    pub run: Option<String>,
    /// The run that verdicts are compared with.
    pub baseline: Option<String>,
    /// Instead of `report/` in the run's folder.
    pub out: Option<PathBuf>,
    /// Say how long things took too.
    pub times: bool,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub run: String,
    pub folder: PathBuf,
    pub html: PathBuf,
    pub n_verdicts: usize,
    pub n_failed: usize,
    pub n_invalid: usize,
    pub n_unfinished: usize,
    /// None without a baseline.
    pub n_regressions: Option<usize>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let run = stored_run::open(context, config.run.as_deref())?;
    let facts = stored_run::facts(context, &run.plan);
    let outcomes = run.outcomes().map_err(classify)?;
    let baseline = config
        .baseline
        .as_deref()
        .map(|id| stored_run::open(context, Some(id)))
        .transpose()?;
    let report = composed(&run, &facts, &outcomes, baseline.as_ref(), config.times)?;
    let rows = results::rows(&report.verdicts, &facts, &BTreeMap::new());

    let evidence = evidence(context, &run, &outcomes);
    let folder = config
        .out
        .clone()
        .unwrap_or_else(|| run.folder().join("report"));
    std::fs::create_dir_all(&folder).kind(Kind::Environment)?;
    let page = folder.join("report.html");
    let json = serde_json::to_string_pretty(&report)? + "\n";
    write(&page, &html(&report, &evidence))?;
    write(&folder.join("report.md"), &markdown(&report))?;
    write(&folder.join("report.json"), &json)?;
    write(&folder.join("verdicts.csv"), &verdict_table::text(&rows))?;
    Ok(Summary {
        run: run.id().to_owned(),
        html: page,
        folder,
        n_verdicts: report.verdicts.len(),
        n_failed: report.summary.all.failed,
        n_invalid: report.summary.all.invalid,
        n_unfinished: report.n_unfinished,
        n_regressions: report.comparison.map(|c| c.regressions.len()),
    })
}

fn composed(
    run: &Run,
    facts: &Facts,
    outcomes: &[UnitOutcome],
    baseline: Option<&Run>,
    times: bool,
) -> Result<Report> {
    let verdicts = run.verdicts().map_err(classify)?;
    let plan = &run.plan;
    let units: Vec<UnitFacts> = outcomes
        .iter()
        .map(|unit| UnitFacts {
            candidate: unit.candidate.clone(),
            case: unit.case.clone(),
            outcome: unit.outcome.clone(),
            attempt: unit.attempt,
            duration_ms: unit.duration_ms,
            cpu_ms: unit.cpu_ms,
        })
        .collect();
    let before = match baseline {
        Some(run) => run.verdicts().map_err(classify)?,
        None => Vec::new(),
    };
    let controls = plan.cases.iter().filter(|case| case.category.is_none());
    let rows = results::rows(&verdicts, facts, &BTreeMap::new());
    Ok(compose(Inputs {
        run: RunFacts {
            id: plan.run.clone(),
            created_at: plan.created_at.clone(),
            tool_version: plan.tool_version.clone(),
            sandbox: plan.sandbox.clone(),
            seed: plan.seed.clone(),
            suite: plan.suite.clone(),
            candidates: plan
                .candidates
                .iter()
                .map(|candidate| CandidateFacts {
                    name: candidate.name.clone(),
                    digest: candidate.digest.clone(),
                })
                .collect(),
        },
        facts,
        controls: controls
            .map(|case| (case.id.name().to_owned(), case.title.clone()))
            .collect(),
        n_unfinished: plan.candidates.len() * facts.len() - verdicts.len(),
        verdicts,
        units: &units,
        analysis: analyse(&rows),
        baseline: baseline.map(|old| Baseline {
            run: old.id(),
            verdicts: &before,
            changed_cases: changed(plan, &old.plan),
        }),
        times,
    }))
}

/// Cases that both plans hold with different files.
fn changed(now: &Plan, before: &Plan) -> BTreeSet<CaseId> {
    let digests: BTreeMap<&CaseId, &str> = before
        .cases
        .iter()
        .map(|case| (&case.id, case.digest.as_str()))
        .collect();
    now.cases
        .iter()
        .filter(|case| {
            let old = digests.get(&case.id);
            old.is_some_and(|digest| *digest != case.digest)
        })
        .map(|case| case.id.clone())
        .collect()
}

/// Loads the evidence of a unit. Evidence that is not there or broken is no reason to have no report.
fn evidence<'a>(
    context: &Context,
    run: &'a Run,
    outcomes: &'a [UnitOutcome],
) -> impl Fn(&str, &CaseId) -> Option<Timeline> + 'a {
    let digests: BTreeMap<(&str, &CaseId), &str> = outcomes
        .iter()
        .filter_map(|unit| {
            let digest = unit.evidence.as_deref()?;
            Some(((unit.candidate.as_str(), &unit.case), digest))
        })
        .collect();
    let suite = suite::read(&context.project.cases()).ok();
    let scenarios: BTreeMap<&CaseId, &str> = run
        .plan
        .cases
        .iter()
        .map(|case| (&case.id, case.scenario_digest.as_str()))
        .collect();
    let evidence = run.evidence();
    move |candidate, case| {
        let digest = digests.get(&(candidate, case))?;
        let seen = evidence.read(digest).ok()?;
        let now = suite.as_ref().and_then(|suite| suite.get(case));
        let same = now.filter(|now| {
            let digest = suite::scenario_digest(now);
            scenarios.get(case) == Some(&digest.as_str())
        });
        Some(timeline::tell(&seen, same))
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).kind(Kind::Environment)
}
