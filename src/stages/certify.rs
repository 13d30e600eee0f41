//! Proves the suite: runs the reference and every mutant on every case and control, and writes down how each fared.
//! What did not change since the last certificate, by digest of case, candidate and tool, is not run again, and a mutant
//! is run only on cases that reach the code it changes.

mod reach;
mod sample;

use std::collections::BTreeMap;

use serde::Serialize;

use super::evaluate::{self, Config as Evaluation, TakeUp};
use super::sandboxes::{SandboxKind, Settings};
use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::candidate::{REFERENCE, Source};
use crate::domain::case::CaseId;
use crate::domain::certificate::{CERTIFICATE_FORMAT, Certificate, Subject};
use crate::domain::suite::Suite;
use crate::domain::verdict::{Failure as Failed, Outcome, Reason};
use crate::methods::certificate::{self as method, Proof};
use crate::storage::runs::{Run, UnitOutcome};
use crate::storage::{candidates, certificate, documents, suite};

#[derive(Debug, Clone)]
pub struct Config {
    pub sandbox: SandboxKind,
    pub jobs: usize,
    /// Run everything, whatever the last certificate says.
    pub again: bool,
    /// Run mutants also on cases that do not reach the code they change.
    pub unreached: bool,
    pub settings: Settings,
}

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// None when nothing had to be run.
    pub run: Option<String>,
    pub n_run: usize,
    /// Units that were not run since the case does not reach what the mutant changes.
    pub n_unreached: usize,
    pub n_units: usize,
    pub n_invalid: usize,
    pub proof: Proof,
}

/// What the certificate has to be about, from the files as they are now.
struct Wanted {
    cases: BTreeMap<CaseId, String>,
    subjects: BTreeMap<String, Subject>,
    /// Mutants that break a clause which the document does not have.
    findings: Vec<String>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let suite = evaluate::suite(context)?;
    let mut wanted = wanted(context, &suite)?;
    let findings = std::mem::take(&mut wanted.findings);
    let old = match config.again {
        true => None,
        false => certificate::read(&context.project.cases()).kind(Kind::Settings)?,
    };
    let mut known = old.map_or(Vec::new(), |old| known(&old, &wanted));
    let unreached = match config.unreached {
        true => Vec::new(),
        false => reach::unreached(context, config, &wanted, &known)?,
    };
    let n_unreached = unreached.len();
    known.extend(unreached);
    let n_units = wanted.cases.len() * wanted.subjects.len();
    let n_run = n_units - known.len();
    let mut outcomes = known.clone();
    let mut run_id = None;
    let mut n_invalid = 0;
    if n_run > 0 {
        let names = wanted.subjects.keys().cloned().collect();
        let take_up = match config.again {
            true => TakeUp::Nothing,
            false => TakeUp::Unfinished,
        };
        let summary = evaluated(context, config, names, vec![], known, take_up)?;
        n_invalid = summary.n_invalid;
        outcomes = Run::open(&context.project.runs(), &summary.run)
            .and_then(|run| run.outcomes())
            .map_err(evaluate::run_failure)?;
        run_id = Some(summary.run);
    }
    let certificate = written(wanted, &outcomes);
    let mut proof = method::prove(&suite, &certificate);
    proof.findings.extend(findings);
    if n_invalid == 0 {
        certificate::write(&context.project.cases(), &certificate).kind(Kind::Environment)?;
    }
    Ok(Summary {
        run: run_id,
        n_run,
        n_unreached,
        n_units,
        n_invalid,
        proof,
    })
}

/// Whether the certificate is current and proves the suite, without running anything.
pub fn check(context: &Context) -> Result<Summary> {
    checked(context).map(|(summary, _)| summary)
}

/// And whether the certificate is current.
fn checked(context: &Context) -> Result<(Summary, bool)> {
    let suite = evaluate::suite(context)?;
    let wanted = wanted(context, &suite)?;
    let old = certificate(context)?;
    let mut proof = method::prove(&suite, &old);
    proof.findings.extend(wanted.findings.iter().cloned());
    let n_units = wanted.cases.len() * wanted.subjects.len();
    let n_run = n_units - known(&old, &wanted).len();
    let stale = stale(&old, &wanted);
    let is_current = stale.is_empty() && n_run == 0;
    for stale in stale {
        proof.findings.insert(
            0,
            format!("the certificate is stale: {stale}; type pipeline certify"),
        );
    }
    let summary = Summary {
        run: None,
        n_run,
        n_unreached: 0,
        n_units,
        n_invalid: 0,
        proof,
    };
    Ok((summary, is_current))
}

/// The same; of a current certificate, so many units are run again to see whether they end as it says.
pub fn check_by_sample(context: &Context, config: &Config, n: usize) -> Result<Summary> {
    let (mut summary, is_current) = checked(context)?;
    if n == 0 || !is_current {
        return Ok(summary);
    }
    let sampled = sample::differences(context, config, &certificate(context)?, n)?;
    summary.run = Some(sampled.run);
    summary.n_run = sampled.n_run;
    summary.n_invalid = sampled.n_invalid;
    summary.proof.findings.splice(0..0, sampled.differences);
    Ok(summary)
}

fn certificate(context: &Context) -> Result<Certificate> {
    certificate::read(&context.project.cases())
        .kind(Kind::Settings)?
        .ok_or_else(|| Failure::settings("the suite has no certificate").hint("pipeline certify"))
}

fn evaluated(
    context: &Context,
    config: &Config,
    candidates: Vec<String>,
    cases: Vec<String>,
    known: Vec<UnitOutcome>,
    take_up: TakeUp,
) -> Result<evaluate::Summary> {
    let evaluation = Evaluation {
        candidates,
        cases,
        known,
        sandbox: config.sandbox,
        jobs: config.jobs,
        repeat: 1,
        run: None,
        resume: None,
        take_up,
        seed: None,
        shuffle: None,
        settings: config.settings.clone(),
    };
    evaluate::run(context, &evaluation)
}

fn wanted(context: &Context, suite: &Suite) -> Result<Wanted> {
    let folder = context.project.candidates();
    let mut names = vec![REFERENCE.to_owned()];
    names.extend(candidates::mutants(&folder).kind(Kind::Settings)?);
    let mut subjects = BTreeMap::new();
    let mut findings = Vec::new();
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    for name in names {
        let candidate = candidates::find(&folder, &name).kind(Kind::Settings)?;
        let mutant = match &candidate.source {
            Source::Tree(_) => None,
            Source::Mutant { file, .. } => {
                Some(candidates::read_mutant(file).kind(Kind::Settings)?)
            }
        };
        let breaks = mutant.iter().flat_map(|mutant| &mutant.breaks);
        for clause in breaks.filter(|clause| document.clause(clause).is_none()) {
            findings.push(format!(
                "{name} breaks {clause}, which the document has not"
            ));
        }
        let subject = Subject {
            digest: candidates::candidate_digest(&candidate).kind(Kind::Settings)?,
            vacuous: mutant.is_some_and(|mutant| mutant.vacuous),
            fails: BTreeMap::new(),
        };
        subjects.insert(name, subject);
    }
    Ok(Wanted {
        cases: suite
            .all()
            .map(|case| (case.id.clone(), suite::case_digest(case)))
            .collect(),
        subjects,
        findings,
    })
}

/// Whether the sources that decide outcomes are those that made the certificate.
fn is_by_this_tool(certificate: &Certificate) -> bool {
    certificate.tool_sources == env!("DECIDING_SOURCES")
}

/// Outcomes of the old certificate that are still good.
fn known(old: &Certificate, wanted: &Wanted) -> Vec<UnitOutcome> {
    if !is_by_this_tool(old) {
        return Vec::new();
    }
    let mut known = Vec::new();
    for (name, subject) in old.subjects() {
        let same = wanted
            .subjects
            .get(name)
            .is_some_and(|now| now.digest == subject.digest);
        for (case, digest) in old.cases.iter().filter(|_| same) {
            if wanted.cases.get(case) == Some(digest) {
                known.push(unit(name, case, outcome(subject.fails.get(case))));
            }
        }
    }
    known
}

/// A unit whose outcome is known without running it.
fn unit(candidate: &str, case: &CaseId, outcome: Outcome) -> UnitOutcome {
    UnitOutcome {
        candidate: candidate.to_owned(),
        case: case.clone(),
        repetition: 1,
        attempt: 1,
        outcome,
        evidence: None,
        duration_ms: 0,
        cpu_ms: 0,
    }
}

/// An outcome again, from the word that the certificate keeps of it.
fn outcome(fail: Option<&String>) -> Outcome {
    match fail {
        None => Outcome::Passed,
        Some(word) => {
            let reason = Reason::ALL
                .into_iter()
                .find(|reason| reason.as_str() == word);
            Outcome::Failed(Failed {
                reason: reason.unwrap_or(Reason::Assertion),
                expected: String::new(),
                saw: "known from the certificate".to_owned(),
                place: String::new(),
            })
        }
    }
}

fn stale(old: &Certificate, wanted: &Wanted) -> Vec<String> {
    let mut stale = Vec::new();
    if !is_by_this_tool(old) {
        stale.push(format!(
            "version {} of the tool made it, from other sources",
            old.tool_version
        ));
    }
    for id in old
        .cases
        .keys()
        .chain(wanted.cases.keys())
        .collect::<std::collections::BTreeSet<_>>()
    {
        if old.cases.get(id) != wanted.cases.get(id) {
            stale.push(format!("{id} has changed"));
        }
    }
    let old: BTreeMap<&str, &Subject> = old.subjects().collect();
    let now: BTreeMap<&str, &Subject> = wanted
        .subjects
        .iter()
        .map(|(name, subject)| (name.as_str(), subject))
        .collect();
    for name in old
        .keys()
        .chain(now.keys())
        .collect::<std::collections::BTreeSet<_>>()
    {
        let facts = |subject: &&Subject| (subject.digest.clone(), subject.vacuous);
        if old.get(name).map(facts) != now.get(name).map(facts) {
            stale.push(format!("{name} has changed"));
        }
    }
    stale
}

fn written(wanted: Wanted, outcomes: &[UnitOutcome]) -> Certificate {
    let mut subjects = wanted.subjects;
    for unit in outcomes.iter().filter(|unit| !unit.outcome.passed()) {
        if let Some(subject) = subjects.get_mut(&unit.candidate) {
            subject
                .fails
                .insert(unit.case.clone(), unit.outcome.reason().to_owned());
        }
    }
    let reference = subjects
        .remove(REFERENCE)
        .expect("the reference is always wanted");
    Certificate {
        format: CERTIFICATE_FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tool_sources: env!("DECIDING_SOURCES").to_owned(),
        cases: wanted.cases,
        reference,
        mutants: subjects,
    }
}
