//! Shows a run as a table, or the verdict and the evidence of one case. It stores nothing.

use serde::Serialize;

use super::sandboxes::Settings;
use super::stored_run::{self, classify};
use super::{Context, Failure, Result, repetitions};
use crate::domain::case::{Case, CaseId};
use crate::domain::verdict::{Outcome, Verdict};
use crate::methods::repetition::Unsteady;
use crate::methods::summary::{self, summarise};
use crate::methods::timeline::{self, Timeline};
use crate::storage::runs::{PlannedCase, Run, UnitOutcome};
use crate::storage::suite;

pub struct Config {
    /// The newest run when none is named.
    pub run: Option<String>,
    /// A case or a control: its id, or the end or a part of it that only one has.
    pub case: Option<String>,
    pub candidate: Option<String>,
    /// Of a run that repeats: the evidence of this one, from 1. The first that did not pass unless said, else the first.
    pub repetition: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Summary {
    Table(Table),
    Units(Units),
}

#[derive(Debug, Serialize)]
pub struct Table {
    pub run: String,
    /// Verdicts that the plan foresees and that are not there (yet).
    pub n_unfinished: usize,
    pub summary: summary::Summary,
    /// Of the candidate that was named.
    pub not_passed: Vec<Verdict>,
}

/// One case or control, for one candidate or for all of the run.
#[derive(Debug, Serialize)]
pub struct Units {
    pub run: String,
    pub case: PlannedCase,
    /// Ids of the cases that it gates, for a control.
    pub gates: Vec<CaseId>,
    pub units: Vec<Unit>,
}

#[derive(Debug, Serialize)]
pub struct Unit {
    pub candidate: String,
    /// None for a control, and while the case or one of its controls has no outcome.
    pub verdict: Option<Verdict>,
    /// The unit's own outcome, before gating; of a run that repeats, that of the repetition shown.
    pub outcome: Option<UnitOutcome>,
    /// What its repetitions showed differently.
    pub unsteady: Option<Unsteady>,
    /// Only where one candidate is shown.
    pub timeline: Option<Timeline>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let run = stored_run::open(context, config.run.as_deref())?;
    let candidate = config
        .candidate
        .as_deref()
        .map(|name| candidate(&run, name))
        .transpose()?;
    match &config.case {
        None => table(&run, candidate).map(Summary::Table),
        Some(case) => {
            let repetition = config.repetition;
            units(context, &run, case, candidate, repetition).map(Summary::Units)
        }
    }
}

fn table(run: &Run, candidate: Option<&str>) -> Result<Table> {
    let facts = run.plan.facts();
    let all = run.verdicts().map_err(classify)?;
    let n_unfinished = run.plan.candidates.len() * facts.len() - all.len();
    let shown: Vec<Verdict> = all
        .into_iter()
        .filter(|verdict| candidate.is_none_or(|name| verdict.candidate == name))
        .collect();
    Ok(Table {
        run: run.id().to_owned(),
        n_unfinished,
        summary: summarise(&shown, &facts),
        not_passed: match candidate {
            Some(_) => shown
                .into_iter()
                .filter(|verdict| verdict.outcome.is_finding())
                .collect(),
            None => Vec::new(),
        },
    })
}

fn units(
    context: &Context,
    run: &Run,
    case: &str,
    candidate: Option<&str>,
    repetition: Option<u32>,
) -> Result<Units> {
    if let Some(wanted) = repetition
        && !(1..=run.plan.repeat).contains(&wanted)
    {
        let n = run.plan.repeat;
        return Err(Failure::user(format!(
            "the run has {n} repetitions, none is number {wanted}"
        )));
    }
    let planned = planned(run, case)?;
    let verdicts = run.verdicts().map_err(classify)?;
    let mut outcomes = run.outcomes().map_err(classify)?;
    outcomes.retain(|unit| unit.case == planned.id);
    let names: Vec<&str> = run
        .plan
        .candidates
        .iter()
        .map(|planned| planned.name.as_str())
        .filter(|name| candidate.is_none_or(|wanted| *name == wanted))
        .collect();
    let script = same_scenario(context, planned);
    let unsteady = match run.plan.repeat {
        1 => Vec::new(),
        _ => repetitions::unsteady(run, &Settings::read(context)?.normalise)?,
    };
    let mut units = Vec::new();
    for name in &names {
        let own = || outcomes.iter().filter(|unit| unit.candidate == *name);
        let outcome = match repetition {
            Some(wanted) => own().find(|unit| unit.repetition == wanted),
            None => own().find(|unit| !unit.outcome.passed()).or(own().next()),
        };
        let digest = outcome.and_then(|unit| unit.evidence.as_deref());
        let timeline = match digest {
            Some(digest) if names.len() == 1 => {
                let evidence = run.evidence().read(digest).map_err(classify)?;
                Some(timeline::tell(&evidence, script.as_ref()))
            }
            _ => None,
        };
        units.push(Unit {
            candidate: (*name).to_owned(),
            verdict: verdicts
                .iter()
                .find(|verdict| verdict.case == planned.id && verdict.candidate == *name)
                .cloned(),
            outcome: outcome.cloned(),
            unsteady: unsteady
                .iter()
                .find(|unit| unit.case == planned.id && unit.candidate == *name)
                .cloned(),
            timeline,
        });
    }
    let cases = run.plan.cases.iter();
    Ok(Units {
        run: run.id().to_owned(),
        case: planned.clone(),
        gates: cases
            .filter(|case| case.controls.contains(&planned.id))
            .map(|case| case.id.clone())
            .collect(),
        units,
    })
}

/// The case as the suite has it now, if its fixture and its launches are still those of the run.
fn same_scenario(context: &Context, planned: &PlannedCase) -> Option<Case> {
    let suite = suite::read(&context.project.cases()).ok()?;
    suite
        .get(&planned.id)
        .filter(|case| suite::scenario_digest(case) == planned.scenario_digest)
        .cloned()
}

fn planned<'a>(run: &'a Run, wanted: &str) -> Result<&'a PlannedCase> {
    let wanted = wanted.trim_end_matches(".toml");
    let wanted = wanted.strip_prefix("cases/").unwrap_or(wanted);
    let ids = run.plan.cases.iter().map(|case| case.id.as_str());
    let id = the_one(wanted, ids, "case")?;
    let cases = &mut run.plan.cases.iter();
    Ok(cases
        .find(|case| case.id.as_str() == id)
        .expect("it was found among these"))
}

fn candidate<'a>(run: &'a Run, wanted: &str) -> Result<&'a str> {
    let names = run.plan.candidates.iter().map(|c| c.name.as_str());
    the_one(wanted, names, "candidate")
}

/// The name that is, else the only one that ends in, else the only one that contains what is wanted.
fn the_one<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, what: &str) -> Result<&'a str> {
    let names: Vec<&str> = names.collect();
    if let Some(name) = names.iter().find(|name| **name == wanted) {
        return Ok(name);
    }
    let ending = format!("/{wanted}");
    let mut found: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.ends_with(&ending))
        .collect();
    if found.is_empty() {
        found = names
            .iter()
            .copied()
            .filter(|name| name.contains(wanted))
            .collect();
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::user(format!("the run has no {what} {wanted:?}"))),
        several => {
            let n = several.len();
            let first = several[..n.min(8)].join(", ");
            let more = if n > 8 { ", …" } else { "" };
            Err(Failure::user(format!(
                "{wanted:?} names {n} {what}s: {first}{more}"
            )))
        }
    }
}

impl Unit {
    /// How it ended: the verdict, or the unit's own outcome where there is no verdict.
    pub fn ended(&self) -> Option<&Outcome> {
        let own = self.outcome.as_ref().map(|unit| &unit.outcome);
        self.verdict
            .as_ref()
            .map(|verdict| &verdict.outcome)
            .or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_short_while_it_is_the_only_one() {
        let names = ["a/read", "b/read", "b/read-link", "c/write"];
        let check = |wanted: &str, expected: std::result::Result<&str, &str>| match (
            the_one(wanted, names.into_iter(), "case"),
            expected,
        ) {
            (Ok(name), Ok(expected)) => assert_eq!(name, expected),
            (Err(failure), Err(part)) => {
                assert!(failure.to_string().contains(part), "{failure}");
            }
            (got, _) => panic!("{wanted}: {got:?}"),
        };
        check("b/read", Ok("b/read"));
        check("read-link", Ok("b/read-link"));
        check("wri", Ok("c/write"));
        check("read", Err("names 2 cases: a/read, b/read"));
        check("x", Err("has no case \"x\""));
    }
}
