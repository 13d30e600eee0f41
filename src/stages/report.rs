//! Writes the report of a run: HTML, Markdown, JSON and CSV of the same facts, in the run's folder unless said.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::sandboxes::Settings;
use super::stored_run::{self, classify};
use super::{Classify, Context, Kind, Result, repetitions};
use crate::adapters::junit;
use crate::domain::case::CaseId;
use crate::domain::results::{self, Facts};
use crate::domain::suite::Suite;
use crate::domain::verdict::{Outcome, Verdict};
use crate::methods::analysis::analyse;
use crate::methods::report::{
    Baseline, CandidateFacts, CaseWords, Comparison, Inputs, NOT_RUN, Report, RunFacts, UnitFacts,
    compose, html, markdown,
};
use crate::methods::timeline::{self, Timeline};
use crate::storage::runs::{Plan, Run, UnitOutcome};
use crate::storage::{suite, verdict_table};

mod words;

pub struct Config {
    /// The newest run when none is named.
    pub run: Option<String>,
    /// The run that verdicts are compared with.
    pub baseline: Option<String>,
    /// Instead of `report/` in the run's folder.
    pub out: Option<PathBuf>,
    /// Say how long things took too.
    pub times: bool,
    /// Write the verdicts as JUnit XML into this file too; with a baseline, only what got worse is a failure in it.
    pub junit: Option<PathBuf>,
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
    pub n_flaky: usize,
    /// None without a baseline.
    pub comparison: Option<Comparison>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let run = stored_run::open_whole(context, config.run.as_deref())?;
    let facts = stored_run::facts(context, &run.plan);
    let outcomes = run.outcomes().map_err(classify)?;
    let baseline = config
        .baseline
        .as_deref()
        .map(|id| stored_run::open_whole(context, Some(id)))
        .transpose()?;
    let unsteady = match run.plan.repeat {
        1 => Vec::new(),
        _ => repetitions::unsteady(&run, &Settings::read(context)?.normalise)?,
    };
    let (suite, _) = suite::read_what_can_be(&context.project.cases());
    let report = Report {
        unsteady,
        ..composed(
            &run,
            &facts,
            words::words(context, &run.plan, &suite),
            &outcomes,
            baseline.as_ref(),
            config.times,
        )?
    };
    let rows = results::rows(&report.verdicts, &facts, &BTreeMap::new());

    let evidence = evidence(&suite, &run, &outcomes);
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
    if let Some(file) = &config.junit {
        write(file, &junit(&report, &outcomes)?)?;
    }
    Ok(Summary {
        run: run.id().to_owned(),
        html: page,
        folder,
        n_verdicts: report.verdicts.len(),
        n_failed: report.summary.all.failed,
        n_invalid: report.summary.all.invalid,
        n_unfinished: report.n_unfinished,
        n_flaky: report.summary.all.flaky,
        comparison: report.comparison,
    })
}

fn composed(
    run: &Run,
    facts: &Facts,
    words: BTreeMap<CaseId, CaseWords>,
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
            repeat: plan.repeat,
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
        words,
        n_unfinished: plan.candidates.len() * facts.len() - verdicts.len(),
        verdicts,
        units: &units,
        analysis: analyse(&rows),
        baseline: baseline.map(|old| Baseline {
            run: old.id(),
            verdicts: &before,
            changed_cases: changed(plan, &old.plan),
        }),
        unsteady: Vec::new(),
        times,
    }))
}

/// The verdicts as JUnit XML. Against a baseline what is as it was passes, so that only what got worse fails the build.
fn junit(report: &Report, outcomes: &[UnitOutcome]) -> Result<String> {
    let mut durations: BTreeMap<(&str, &CaseId), u64> = BTreeMap::new();
    for unit in outcomes {
        *durations.entry((&unit.candidate, &unit.case)).or_default() += unit.duration_ms;
    }
    let mut verdicts = report.verdicts.clone();
    let mut title = report.run.id.clone();
    if let Some(comparison) = &report.comparison {
        title += &format!(" against {}", comparison.baseline);
        let worse: BTreeSet<(&str, &CaseId)> = comparison
            .regressions
            .iter()
            .chain(&comparison.lost)
            .map(|change| (change.candidate.as_str(), &change.case))
            .collect();
        for verdict in &mut verdicts {
            if !worse.contains(&(verdict.candidate.as_str(), &verdict.case)) {
                verdict.outcome = Outcome::Passed;
            }
        }
        for change in comparison.lost.iter().filter(|change| change.is == NOT_RUN) {
            let outcome = Outcome::NotAsked {
                why: format!("not run here, {} in {}", change.was, comparison.baseline),
            };
            let verdict = Verdict::gated(&change.candidate, &change.case, outcome, Vec::new());
            let after = |other: &Verdict| other.candidate == change.candidate;
            let at = verdicts
                .iter()
                .rposition(after)
                .map_or(verdicts.len(), |at| at + 1);
            verdicts.insert(at, verdict);
        }
    }
    Ok(junit::xml(
        &title,
        &verdicts,
        &report.cases,
        |candidate, case| durations.get(&(candidate, case)).copied(),
    )?)
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
    suite: &'a Suite,
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
        let same = suite.get(case).filter(|now| {
            let digest = suite::scenario_digest(now);
            scenarios.get(case) == Some(&digest.as_str())
        });
        Some(timeline::tell(&seen, same))
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).kind(Kind::Environment)
}
