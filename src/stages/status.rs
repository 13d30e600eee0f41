//! What each stage holds, what is stale, what the methods yield, and what to do next. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::evaluate::{self, run_failure};
use super::scoring::ScoringConfig;
use super::{Classify, Context, Failure, Kind, Result, certify};
use crate::domain::case::Case;
use crate::domain::clause::ClauseId;
use crate::domain::decision::SubjectKind;
use crate::domain::document::Document;
use crate::methods::rounds::{self, Round};
use crate::methods::yields::{self, Facts, Yield};
use crate::storage::database::Database;
use crate::storage::runs::Run;
use crate::storage::{certificate, documents, issues, reviews, stage_log};

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub issues: usize,
    /// Stages of mining that were finished: name → when.
    pub finished: BTreeMap<String, String>,
    /// What waits for a reviewer, by kind.
    pub waiting: BTreeMap<String, usize>,
    pub suite: Suite,
    pub yields: Vec<Yield>,
    /// Of expansion, the first first.
    pub rounds: Vec<Round>,
    /// The newest runs, newest first.
    pub runs: Vec<RunLine>,
    /// What is out of date, and what to type.
    pub stale: Vec<String>,
    /// Whether to read on; none when there is nothing to read.
    pub reading: Option<String>,
    pub next: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Suite {
    pub n_cases: usize,
    pub n_controls: usize,
    pub by_category: BTreeMap<String, usize>,
    pub n_clauses: usize,
    pub clauses_without_case: Vec<ClauseId>,
}

#[derive(Debug, Clone, Serialize)]
pub struct RunLine {
    pub run: String,
    pub n_units: usize,
    pub n_missing: usize,
    pub n_invalid: usize,
    /// Candidates and their passes of all cases with a verdict.
    pub passed: BTreeMap<String, (usize, usize)>,
}

/// Runs that are listed.
const N_RUNS: usize = 5;
const STAGES: [&str; 4] = ["collect", "rank", "cluster", "filter"];

pub fn run(context: &Context) -> Result<Summary> {
    let suite = evaluate::suite(context)?;
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let database = Database::open_to_read(&context.project.database()).kind(Kind::Environment)?;
    let mut finished = BTreeMap::new();
    for stage in STAGES {
        if let Some(entry) = stage_log::last(&database, stage)? {
            finished.insert(stage.to_owned(), entry.finished_at);
        }
    }
    let waiting = super::review::waiting(context)?;
    let mut decisions = Vec::new();
    for kind in SubjectKind::ALL {
        decisions.extend(reviews::read(&context.project.reviews(), kind).kind(Kind::Settings)?);
    }
    let tests: Vec<&Case> = suite.tests().collect();
    let certificate = certificate::read(&context.project.cases()).kind(Kind::Settings)?;
    let yields = yields::yields(&Facts {
        decisions: &decisions,
        waiting: &waiting,
        suite: &tests,
        certificate: certificate.as_ref(),
    });
    let rounds = rounds::rounds(&tests, certificate.as_ref());
    let anchored: BTreeSet<&ClauseId> = tests.iter().map(|case| &case.clause).collect();
    let mut by_category = BTreeMap::new();
    for case in &tests {
        let category = case.category().expect("a test has a category");
        *by_category.entry(category.to_string()).or_default() += 1;
    }
    Ok(Summary {
        issues: issues::counts(&database)?
            .values()
            .map(|count| count.n_issues as usize)
            .sum(),
        waiting: waiting
            .into_iter()
            .map(|(kind, n)| (kind.as_str().to_owned(), n))
            .collect(),
        suite: Suite {
            n_cases: tests.len(),
            n_controls: suite.controls().count(),
            by_category,
            n_clauses: document.clauses().count(),
            clauses_without_case: document
                .clauses()
                .map(|clause| &clause.id)
                .filter(|id| !anchored.contains(id))
                .cloned()
                .collect(),
        },
        reading: super::review::reading(context)?.map(|reading| reading.sentence()),
        next: match finished.is_empty() {
            true => "try the whole line: pipeline run".to_owned(),
            false => yields::next(&yields),
        },
        yields,
        rounds,
        runs: run_lines(context)?,
        stale: stale(context, &database, &document, &finished)?,
        finished,
    })
}

fn run_lines(context: &Context) -> Result<Vec<RunLine>> {
    let runs = context.project.runs();
    let mut lines = Vec::new();
    for id in Run::list(&runs)
        .map_err(run_failure)?
        .into_iter()
        .rev()
        .take(N_RUNS)
    {
        let run = Run::open(&runs, &id).map_err(run_failure)?;
        let mut passed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for verdict in run.verdicts().map_err(run_failure)? {
            let (n_passed, n_counted) = passed.entry(verdict.candidate).or_default();
            *n_passed += usize::from(verdict.outcome.passed());
            *n_counted += usize::from(verdict.outcome.rule().counted);
        }
        let outcomes = run.outcomes().map_err(run_failure)?;
        let n_missing = match &run.merged {
            Some(merged) => merged.n_missing,
            None => run.missing().map_err(run_failure)?.len(),
        };
        lines.push(RunLine {
            n_units: run.plan.n_units(),
            n_missing,
            n_invalid: outcomes
                .iter()
                .filter(|unit| !unit.outcome.is_valid())
                .count(),
            passed,
            run: id,
        });
    }
    Ok(lines)
}

/// A stage is stale when one before it was finished later; the certificate, when what it is about has changed.
fn stale(
    context: &Context,
    database: &Database,
    document: &Document,
    finished: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    if let Some(entry) = stage_log::last(database, "rank")? {
        let scoring = ScoringConfig::read(&context.project)?;
        if entry.inputs != scoring.inputs(database, document)? {
            stale
                .push("issues, document or settings have changed since rank: pipeline rank".into());
        }
    }
    for pair in STAGES[1..].windows(2) {
        let (before, after) = (finished.get(pair[0]), finished.get(pair[1]));
        match (before, after) {
            (Some(before), Some(after)) if before > after => {
                stale.push(format!(
                    "{0} is older than {1}: pipeline {0}",
                    pair[1], pair[0]
                ));
            }
            (Some(_), None) => stale.push(format!("{0} was never run: pipeline {0}", pair[1])),
            _ => {}
        }
    }
    match certify::check(context) {
        Ok(summary) if summary.n_run == 0 && summary.proof.findings.is_empty() => {}
        Ok(summary) => stale.push(format!(
            "the certificate: {} units to run, {} findings: pipeline certify",
            summary.n_run,
            summary.proof.findings.len()
        )),
        Err(failure) => stale.push(format!("the certificate: {failure}: pipeline certify")),
    }
    Ok(stale)
}
