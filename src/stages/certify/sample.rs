//! Whether a certificate tells the truth: some of its units are run again.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::{Config, evaluated, outcome, unit};
use crate::domain::case::CaseId;
use crate::domain::certificate::{Certificate, Subject};
use crate::stages::evaluate::{TakeUp, run_failure};
use crate::stages::{Context, Result};
use crate::storage::runs::{Run, hex};

/// Candidates that units are drawn from: each has to be installed.
const N_CANDIDATES: usize = 10;

/// What came of a sample.
pub(super) struct Sampled {
    pub run: String,
    pub n_run: usize,
    pub n_invalid: usize,
    /// Units that ended otherwise than the certificate says.
    pub differences: Vec<String>,
}

/// Runs `n` units, half of them recorded as failed where there are so many. Which ones is drawn by the certificate's
/// content, so that each certificate has its own.
pub(super) fn differences(
    context: &Context,
    config: &Config,
    certificate: &Certificate,
    n: usize,
) -> Result<Sampled> {
    let seed = hex(&Sha256::digest(serde_json::to_vec(certificate)?));
    let draw = |parts: &[&str]| hex(&Sha256::digest(format!("{seed}\0{}", parts.join("\0"))));
    let mut subjects: Vec<(&str, &Subject)> = certificate.subjects().collect();
    subjects.sort_by_cached_key(|(name, _)| draw(&[name]));
    subjects.truncate(N_CANDIDATES);
    let mut failed = Vec::new();
    let mut passed = Vec::new();
    for (name, subject) in &subjects {
        for case in certificate.cases.keys() {
            match subject.fails.contains_key(case) {
                true => failed.push((*name, case)),
                false => passed.push((*name, case)),
            }
        }
    }
    for units in [&mut failed, &mut passed] {
        units.sort_by_cached_key(|(name, case)| draw(&[name, case.as_str()]));
    }
    failed.truncate(n / 2);
    passed.truncate(n - failed.len());
    let drawn: BTreeSet<(&str, &CaseId)> = failed.into_iter().chain(passed).collect();
    let recorded: BTreeMap<&str, &Subject> = subjects.into_iter().collect();
    let known = recorded
        .iter()
        .flat_map(|(name, subject)| {
            certificate
                .cases
                .keys()
                .map(move |case| (*name, *subject, case))
        })
        .filter(|(name, _, case)| !drawn.contains(&(*name, *case)))
        .map(|(name, subject, case)| unit(name, case, outcome(subject.fails.get(case))))
        .collect();
    let names = recorded.keys().map(|name| (*name).to_owned()).collect();
    let summary = evaluated(context, config, names, vec![], known, TakeUp::Nothing)?;
    let run = Run::open(&context.project.runs(), &summary.run).map_err(run_failure)?;
    let mut differences = Vec::new();
    for unit in run.outcomes().map_err(run_failure)? {
        let is_drawn = drawn.contains(&(unit.candidate.as_str(), &unit.case));
        if !is_drawn || !unit.outcome.is_valid() {
            continue;
        }
        let said = recorded[unit.candidate.as_str()].fails.get(&unit.case);
        let said = said.map_or("passed", String::as_str);
        let is_now = match unit.outcome.passed() {
            true => "passed",
            false => unit.outcome.reason(),
        };
        if said != is_now {
            differences.push(format!(
                "the certificate is false: {} on {}: {said}, but now {is_now}; type pipeline certify --again",
                unit.case, unit.candidate
            ));
        }
    }
    Ok(Sampled {
        run: summary.run,
        n_run: drawn.len(),
        n_invalid: summary.n_invalid,
        differences,
    })
}
