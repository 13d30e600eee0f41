//! What a report says, before it is written in any form; its JSON form is this as it stands.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::analysis::Analysis;
use super::super::repetition::Unsteady;
use super::super::summary::{Summary, summarise};
use super::comparison::{Baseline, Comparison, compare};
use super::words::{CaseWords, of_failures};
use crate::domain::case::CaseId;
use crate::domain::results::Facts;
use crate::domain::suite::control_id;
use crate::domain::verdict::{Failure, Outcome, Reason, Verdict};

/// Slowest units that are named.
const SLOWEST: usize = 10;

#[derive(Debug, Clone, Serialize)]
pub struct RunFacts {
    pub id: String,
    pub created_at: String,
    pub tool_version: String,
    pub sandbox: String,
    pub seed: String,
    /// Digest of the suite.
    pub suite: String,
    /// How often each case and control was run.
    pub repeat: u32,
    pub candidates: Vec<CandidateFacts>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CandidateFacts {
    pub name: String,
    pub digest: String,
}

impl RunFacts {
    /// Where a candidate stands in the order of the run.
    fn place(&self, candidate: &str) -> Option<usize> {
        self.candidates.iter().position(|one| one.name == candidate)
    }
}

/// One finished unit: a case or a control, run once for a candidate.
#[derive(Debug, Clone)]
pub struct UnitFacts {
    pub candidate: String,
    pub case: CaseId,
    pub outcome: Outcome,
    pub attempt: u32,
    pub duration_ms: u64,
    pub cpu_ms: u64,
}

pub struct Inputs<'a> {
    pub run: RunFacts,
    pub facts: &'a Facts,
    /// Controls by name, and what each shows.
    pub controls: BTreeMap<String, String>,
    /// Cases and controls that are as they were when the run was made.
    pub words: BTreeMap<CaseId, CaseWords>,
    pub verdicts: Vec<Verdict>,
    pub units: &'a [UnitFacts],
    /// Verdicts that the plan foresees and that are not there (yet).
    pub n_unfinished: usize,
    pub analysis: Analysis,
    pub baseline: Option<Baseline<'a>>,
    pub unsteady: Vec<Unsteady>,
    /// Say what units took.
    pub times: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub run: RunFacts,
    pub n_unfinished: usize,
    pub summary: Summary,
    pub analysis: Analysis,
    pub cases: Facts,
    /// Of cases and controls that failed, where they are known.
    pub words: BTreeMap<CaseId, CaseWords>,
    /// By candidate as planned, then by case.
    pub verdicts: Vec<Verdict>,
    /// By name; only controls that gate a case.
    pub controls: Vec<ControlRow>,
    /// Cases and controls that our side broke.
    pub invalid: Vec<InvalidUnit>,
    /// Cases and controls whose repetitions showed different things.
    pub unsteady: Vec<Unsteady>,
    pub comparison: Option<Comparison>,
    /// Only where they were asked for: no two runs take the same time, and all else is the same for the same seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
}

/// What units took.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    pub candidates: Vec<DurationRow>,
    pub slowest: Vec<SlowUnit>,
    /// Keys are candidates, then cases and controls.
    pub units_ms: BTreeMap<String, BTreeMap<CaseId, u64>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ControlRow {
    pub name: String,
    pub title: String,
    /// Cases that it gates.
    pub n_gated: usize,
    /// Candidate → how it ended there (`pass`, or the reason).
    pub ended: BTreeMap<String, String>,
    /// Candidate → passes that are failures since this control failed.
    pub unmasked: BTreeMap<String, usize>,
    /// Candidate → why it failed there.
    pub failures: BTreeMap<String, Failure>,
}

#[derive(Debug, Clone, Serialize)]
pub struct InvalidUnit {
    pub candidate: String,
    pub case: CaseId,
    pub kind: &'static str,
    pub message: String,
    pub attempts: u32,
}

/// Over all finished units of a candidate, controls included.
#[derive(Debug, Clone, Serialize)]
pub struct DurationRow {
    pub candidate: String,
    pub n_units: usize,
    pub total_ms: u64,
    pub cpu_ms: u64,
    pub median_ms: Option<u64>,
    /// Nineteen of twenty took no longer.
    pub p95_ms: Option<u64>,
    pub longest_ms: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SlowUnit {
    pub candidate: String,
    pub case: CaseId,
    pub duration_ms: u64,
}

/// Collects everything that the forms of a report say.
pub fn compose(inputs: Inputs<'_>) -> Report {
    let Inputs {
        run,
        facts,
        controls,
        words,
        verdicts,
        units,
        n_unfinished,
        analysis,
        baseline,
        unsteady,
        times,
    } = inputs;
    let mut sorted: Vec<(Option<usize>, Verdict)> = verdicts
        .into_iter()
        .map(|verdict| (run.place(&verdict.candidate), verdict))
        .collect();
    sorted.sort_by(|(a_place, a), (b_place, b)| (a_place, &a.case).cmp(&(b_place, &b.case)));
    let verdicts: Vec<Verdict> = sorted.into_iter().map(|(_, verdict)| verdict).collect();
    let comparison = baseline.map(|baseline| {
        let candidates: Vec<&str> = run.candidates.iter().map(|one| one.name.as_str()).collect();
        compare(&baseline, &candidates, &verdicts, facts)
    });
    Report {
        summary: summarise(&verdicts, facts),
        controls: control_rows(&verdicts, units, &controls),
        invalid: invalid(&run, units),
        unsteady,
        times: times.then(|| self::times(&run, units)),
        run,
        n_unfinished,
        analysis,
        cases: facts.clone(),
        words: of_failures(&verdicts, words),
        verdicts,
        comparison,
    }
}

fn control_rows(
    verdicts: &[Verdict],
    units: &[UnitFacts],
    titles: &BTreeMap<String, String>,
) -> Vec<ControlRow> {
    let mut rows: BTreeMap<&str, ControlRow> = BTreeMap::new();
    let mut gated: BTreeMap<&str, BTreeSet<&CaseId>> = BTreeMap::new();
    for verdict in verdicts {
        let unmasked = verdict.own.passed()
            && matches!(&verdict.outcome, Outcome::Failed(f) if f.reason == Reason::Control);
        for control in &verdict.controls {
            let row = rows.entry(&control.name).or_insert_with(|| ControlRow {
                name: control.name.clone(),
                title: titles.get(&control.name).cloned().unwrap_or_default(),
                n_gated: 0,
                ended: BTreeMap::new(),
                unmasked: BTreeMap::new(),
                failures: BTreeMap::new(),
            });
            gated
                .entry(&control.name)
                .or_default()
                .insert(&verdict.case);
            row.ended
                .insert(verdict.candidate.clone(), control.ended.clone());
            let failed = Reason::ALL.iter().any(|r| r.as_str() == control.ended);
            if unmasked && failed {
                *row.unmasked.entry(verdict.candidate.clone()).or_default() += 1;
            }
        }
    }
    for unit in units {
        if let (Some(row), Outcome::Failed(failure)) =
            (rows.get_mut(unit.case.name()), &unit.outcome)
            && unit.case == control_id(&row.name)
        {
            row.failures.insert(unit.candidate.clone(), failure.clone());
        }
    }
    rows.into_iter()
        .map(|(name, row)| ControlRow {
            n_gated: gated[name].len(),
            ..row
        })
        .collect()
}

fn invalid(run: &RunFacts, units: &[UnitFacts]) -> Vec<InvalidUnit> {
    let mut invalid: Vec<InvalidUnit> = units
        .iter()
        .filter_map(|unit| match &unit.outcome {
            Outcome::Invalid(fault) => Some(InvalidUnit {
                candidate: unit.candidate.clone(),
                case: unit.case.clone(),
                kind: fault.kind.as_str(),
                message: fault.message.clone(),
                attempts: unit.attempt,
            }),
            _ => None,
        })
        .collect();
    let place = |unit: &InvalidUnit| run.place(&unit.candidate);
    invalid.sort_by(|a, b| (place(a), &a.case).cmp(&(place(b), &b.case)));
    invalid
}

fn times(run: &RunFacts, units: &[UnitFacts]) -> Times {
    let mut units_ms: BTreeMap<String, BTreeMap<CaseId, u64>> = BTreeMap::new();
    for unit in units {
        let of_candidate = units_ms.entry(unit.candidate.clone()).or_default();
        *of_candidate.entry(unit.case.clone()).or_default() += unit.duration_ms;
    }
    Times {
        candidates: run
            .candidates
            .iter()
            .map(|candidate| durations(&candidate.name, units))
            .collect(),
        slowest: slowest(units),
        units_ms,
    }
}

fn durations(candidate: &str, units: &[UnitFacts]) -> DurationRow {
    let own = || units.iter().filter(|unit| unit.candidate == candidate);
    let mut sorted: Vec<u64> = own().map(|unit| unit.duration_ms).collect();
    sorted.sort_unstable();
    // The smallest value that so many percent of all do not exceed.
    let quantile = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    };
    DurationRow {
        candidate: candidate.to_owned(),
        n_units: sorted.len(),
        total_ms: sorted.iter().sum(),
        cpu_ms: own().map(|unit| unit.cpu_ms).sum(),
        median_ms: quantile(50),
        p95_ms: quantile(95),
        longest_ms: sorted.last().copied(),
    }
}

fn slowest(units: &[UnitFacts]) -> Vec<SlowUnit> {
    let mut sorted: Vec<&UnitFacts> = units.iter().collect();
    sorted.sort_by(|a, b| {
        (b.duration_ms, &a.candidate, &a.case).cmp(&(a.duration_ms, &b.candidate, &b.case))
    });
    sorted
        .into_iter()
        .take(SLOWEST)
        .map(|unit| SlowUnit {
            candidate: unit.candidate.clone(),
            case: unit.case.clone(),
            duration_ms: unit.duration_ms,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(case: &str, duration_ms: u64) -> UnitFacts {
        UnitFacts {
            candidate: "a".into(),
            case: CaseId::new(case),
            outcome: Outcome::Passed,
            attempt: 1,
            duration_ms,
            cpu_ms: 1,
        }
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let units: Vec<UnitFacts> = (1..=20).map(|n| unit(&format!("c/{n}"), n * 10)).collect();
        let row = durations("a", &units);
        assert_eq!((row.median_ms, row.p95_ms), (Some(100), Some(190)));
        assert_eq!((row.longest_ms, row.total_ms), (Some(200), 2100));
        assert_eq!(durations("b", &units).median_ms, None);
        assert_eq!(durations("a", &units[..1]).median_ms, Some(10));
        assert_eq!(slowest(&units)[0].duration_ms, 200);
        assert_eq!(slowest(&units).len(), SLOWEST);
    }

    #[test]
    fn a_control_tells_which_passes_it_unmasked() {
        let failed = Outcome::failed(Reason::Timeout);
        let verdict = |case: &str, own: Outcome, controls: &[(&str, &Outcome)]| {
            let controls = controls
                .iter()
                .map(|(name, outcome)| ((*name).to_owned(), (*outcome).clone()));
            Verdict::gated("a", &CaseId::new(case), own, controls.collect())
        };
        let rows = control_rows(
            &[
                verdict(
                    "p/1",
                    Outcome::Passed,
                    &[("x", &failed), ("y", &Outcome::Passed)],
                ),
                verdict("p/2", Outcome::Passed, &[("x", &failed)]),
                verdict("p/3", Outcome::failed(Reason::Assertion), &[("x", &failed)]),
            ],
            &[UnitFacts {
                outcome: failed.clone(),
                ..unit("controls/x", 1)
            }],
            &BTreeMap::new(),
        );
        assert_eq!(rows[0].failures["a"].reason, Reason::Timeout);
        let told: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.name.as_str(),
                    row.n_gated,
                    row.ended["a"].as_str(),
                    row.unmasked.get("a").copied(),
                )
            })
            .collect();
        assert_eq!(told, [("x", 3, "timeout", Some(2)), ("y", 1, "pass", None)]);
    }
}
