//! Which units need not be run, since the case does not reach the code that the mutant changes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, Wanted, evaluated, unit};
use crate::domain::candidate::REFERENCE;
use crate::domain::case::CaseId;
use crate::domain::evidence::Evidence;
use crate::domain::verdict::Outcome;
use crate::methods::reach::{EditedLines, Reach, edited_lines};
use crate::stages::evaluate::{TakeUp, run_failure};
use crate::stages::{Classify, Context, Kind, Result};
use crate::storage::candidates;
use crate::storage::runs::{Run, UnitOutcome};

/// The candidate that writes down what of the reference's code ran.
const PROBE: &str = "reach";

/// Where it writes, as evidence names it.
const WRITTEN: &str = "{home}/.reach";

/// Runs the probe, if the project has one, on each case on which at least two mutants wait. Returns how those that the
/// case does not reach fare: as the reference, which has to pass.
pub(super) fn unreached(
    context: &Context,
    config: &Config,
    wanted: &Wanted,
    known: &[UnitOutcome],
) -> Result<Vec<UnitOutcome>> {
    let folder = context.project.candidates();
    if candidates::find(&folder, PROBE).is_err() {
        return Ok(Vec::new());
    }
    let known: BTreeSet<(&str, &CaseId)> = known
        .iter()
        .map(|unit| (unit.candidate.as_str(), &unit.case))
        .collect();
    let mutants = wanted.subjects.keys().filter(|name| *name != REFERENCE);
    let mut waiting: BTreeMap<&CaseId, Vec<&String>> = BTreeMap::new();
    for mutant in mutants {
        for case in wanted.cases.keys() {
            if !known.contains(&(mutant.as_str(), case)) {
                waiting.entry(case).or_default().push(mutant);
            }
        }
    }
    waiting.retain(|_, mutants| mutants.len() > 1);
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let cases = waiting.keys().map(|case| case.to_string()).collect();
    let take_up = match config.again {
        true => TakeUp::Nothing,
        false => TakeUp::Newest,
    };
    let summary = evaluated(context, config, vec![PROBE.into()], cases, vec![], take_up)?;
    let run = Run::open(&context.project.runs(), &summary.run).map_err(run_failure)?;
    let mut reaches = BTreeMap::new();
    for unit in run.outcomes().map_err(run_failure)? {
        if let Some(digest) = &unit.evidence {
            let evidence = run.evidence().read(digest).map_err(run_failure)?;
            reaches.insert(unit.case, reach(&evidence));
        }
    }
    let mut edits = BTreeMap::new();
    for mutant in waiting.values().flatten() {
        if !edits.contains_key(mutant) {
            edits.insert(mutant, edited(context, mutant)?);
        }
    }
    let mut unreached = Vec::new();
    for (case, mutants) in &waiting {
        let Some(Some(reach)) = reaches.get(case) else {
            continue;
        };
        for mutant in mutants {
            let edits = edits[mutant].as_ref();
            if edits.is_some_and(|edits| !edits.iter().any(|lines| reach.touches(lines))) {
                unreached.push(unit(mutant, case, Outcome::Passed));
            }
        }
    }
    Ok(unreached)
}

fn reach(evidence: &Evidence) -> Option<Reach> {
    let written = evidence.files_after.get(WRITTEN)?;
    Reach::parse(written.text.as_ref()?)
}

/// The lines of the reference that a mutant changes; none when it changes something else.
fn edited(context: &Context, mutant: &str) -> Result<Option<Vec<EditedLines>>> {
    let folder = context.project.candidates();
    let file =
        candidates::read_mutant(&folder.join(format!("{mutant}.toml"))).kind(Kind::Settings)?;
    if file.of != REFERENCE {
        return Ok(None);
    }
    let mut edited = Vec::new();
    for edit in &file.edit {
        let text = std::fs::read_to_string(folder.join(REFERENCE).join(&edit.file))?;
        edited.push(edited_lines(&text, edit));
    }
    Ok(edited.into_iter().collect())
}
