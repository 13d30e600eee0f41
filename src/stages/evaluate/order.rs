//! The order in which units are started: the longest first, so that none of them runs alone at the end.

use std::cmp::Reverse;

use super::run_failure;
use crate::domain::suite::Suite;
use crate::methods::schedule::Durations;
use crate::stages::{Context, Result};
use crate::storage::runs::{Run, Unit};

/// Earlier runs that are looked into.
const N_RUNS: usize = 5;

/// What units are expected to take, in milliseconds.
pub(in crate::stages) struct Expected<'a> {
    suite: &'a Suite,
    durations: Durations,
}

impl<'a> Expected<'a> {
    /// By the newest runs.
    pub(in crate::stages) fn read(context: &Context, suite: &'a Suite) -> Result<Self> {
        let runs = context.project.runs();
        let ids = Run::list(&runs).map_err(run_failure)?;
        let mut durations = Durations::default();
        for id in &ids[ids.len().saturating_sub(N_RUNS)..] {
            // A run that cannot be read tells nothing.
            let outcomes = Run::open(&runs, id).and_then(|run| run.outcomes());
            for unit in outcomes.into_iter().flatten() {
                if unit.evidence.is_some() {
                    durations.add(&unit.candidate, &unit.case, unit.duration_ms);
                }
            }
        }
        Ok(Self { suite, durations })
    }

    /// One that was never run is expected to use up its time limits.
    pub(in crate::stages) fn ms(&self, unit: &Unit) -> u64 {
        let limits_ms = || {
            let launches = self.suite.get(&unit.case).map(|case| &case.launches);
            let limits_s = launches.into_iter().flatten();
            1000 * limits_s
                .map(|one| u64::from(one.time_limit_s()))
                .sum::<u64>()
        };
        self.durations
            .expected_ms(&unit.candidate, &unit.case)
            .unwrap_or_else(limits_ms)
    }
}

pub(super) fn longest_first(context: &Context, suite: &Suite, units: &mut [Unit]) -> Result<()> {
    let expected = Expected::read(context, suite)?;
    units.sort_by_cached_key(|unit| (Reverse(expected.ms(unit)), unit.clone()));
    Ok(())
}
