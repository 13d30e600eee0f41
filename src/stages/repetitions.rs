//! What the repetitions of a run's units showed differently, from the stored evidence.

use std::collections::BTreeMap;

use super::stored_run::classify;
use super::{Failure, Result};
use crate::domain::case::CaseId;
use crate::methods::repetition::{Normalisation, Rule, Unsteady, differences};
use crate::storage::runs::{Run, UnitOutcome};

/// By candidate as planned, then by case; empty for a run that does not repeat. Two repetitions that ended differently
/// are compared where there are such, else the first one and the first that showed something else.
pub fn unsteady(run: &Run, rules: &[Rule]) -> Result<Vec<Unsteady>> {
    if run.plan.repeat < 2 {
        return Ok(Vec::new());
    }
    let normalisation = Normalisation::new(rules)
        .map_err(|error| Failure::settings(format!("pipeline/evaluate.toml: {error}")))?;
    let mut units: BTreeMap<(String, CaseId), Vec<UnitOutcome>> = BTreeMap::new();
    for unit in run.outcomes().map_err(classify)? {
        let key = (unit.candidate.clone(), unit.case.clone());
        units.entry(key).or_default().push(unit);
    }
    let mut found = Vec::new();
    for candidate in &run.plan.candidates {
        for case in &run.plan.cases {
            if let Some(repetitions) = units.get(&(candidate.name.clone(), case.id.clone())) {
                found.extend(compared(run, repetitions, &normalisation)?);
            }
        }
    }
    Ok(found)
}

fn compared(
    run: &Run,
    repetitions: &[UnitOutcome],
    normalisation: &Normalisation,
) -> Result<Option<Unsteady>> {
    let Some((first, others)) = repetitions.split_first() else {
        return Ok(None);
    };
    let store = run.evidence();
    let read = |unit: &UnitOutcome| match &unit.evidence {
        Some(digest) => store.read(digest).map(Some).map_err(classify),
        None => Ok(None),
    };
    let ended_otherwise = |unit: &&UnitOutcome| unit.outcome.reason() != first.outcome.reason();
    let flaky = others.iter().find(ended_otherwise);
    let unsteady = |other: &UnitOutcome, differences| Unsteady {
        candidate: first.candidate.clone(),
        case: first.case.clone(),
        ended: repetitions
            .iter()
            .map(|unit| unit.outcome.reason().to_owned())
            .collect(),
        flaky: flaky.is_some(),
        compared: (first.repetition, other.repetition),
        differences,
    };
    let one = read(first)?;
    let candidates: Vec<&UnitOutcome> = match flaky {
        Some(other) => vec![other],
        None => others.iter().collect(),
    };
    for other in candidates {
        let differences = match (&one, read(other)?) {
            (Some(one), Some(other)) => differences(one, &other, normalisation),
            _ => Vec::new(),
        };
        if flaky.is_some() || !differences.is_empty() {
            return Ok(Some(unsteady(other, differences)));
        }
    }
    Ok(None)
}
