//! What units are expected to take, by earlier runs; the longest are started first, so that none of them runs alone at the
//! end.

use std::cmp::Reverse;

use super::run_failure;
use crate::domain::suite::Suite;
use crate::methods::schedule::{Durations, Taken};
use crate::stages::{Context, Result};
use crate::storage::runs::{Run, Unit};

/// Earlier runs that are looked into.
const N_RUNS: usize = 5;

/// What units are expected to take.
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
                    let taken = Taken {
                        duration_ms: unit.duration_ms,
                        cpu_ms: unit.cpu_ms,
                    };
                    durations.add(&unit.candidate, &unit.case, taken);
                }
            }
        }
        Ok(Self { suite, durations })
    }

    /// In milliseconds. One that was never run is expected to use up its time limits.
    pub(in crate::stages) fn ms(&self, unit: &Unit) -> u64 {
        let limits_ms = || {
            let launches = self.suite.get(&unit.case).map(|case| &case.launches);
            let limits_s = launches.into_iter().flatten();
            1000 * limits_s
                .map(|one| u64::from(one.time_limit_s()))
                .sum::<u64>()
        };
        self.taken(unit)
            .map_or_else(limits_ms, |taken| taken.duration_ms)
    }

    /// Whether it waits most of the time; not known of one that was never run.
    pub(super) fn idles(&self, unit: &Unit) -> bool {
        self.taken(unit).is_some_and(Taken::idles)
    }

    pub(super) fn longest_first(&self, units: &mut [Unit]) {
        units.sort_by_cached_key(|unit| (Reverse(self.ms(unit)), unit.clone()));
    }

    fn taken(&self, unit: &Unit) -> Option<Taken> {
        self.durations.expected(&unit.candidate, &unit.case)
    }
}
