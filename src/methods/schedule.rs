//! In which order units are run, and how many cells are started at a time.

use std::collections::BTreeMap;

use crate::domain::case::CaseId;

/// What a unit took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    pub duration_ms: u64,
    /// Processor time of the candidate's processes.
    pub cpu_ms: u64,
}

impl Taken {
    /// Whether it waited for a timer or for keys most of the time, and needed no core meanwhile. On a busy machine a unit
    /// that works takes several times its processor time too.
    pub fn idles(self) -> bool {
        self.duration_ms > 8 * self.cpu_ms
    }
}

/// What units took in earlier runs.
#[derive(Debug, Default)]
pub struct Durations {
    by_candidate: BTreeMap<(String, CaseId), Taken>,
    by_case: BTreeMap<CaseId, Taken>,
}

impl Durations {
    /// A later call overrides an earlier one; for other candidates the longest counts.
    pub fn add(&mut self, candidate: &str, case: &CaseId, taken: Taken) {
        self.by_candidate
            .insert((candidate.to_owned(), case.clone()), taken);
        let longest = self.by_case.entry(case.clone()).or_insert(taken);
        *longest = taken.max(*longest);
    }

    /// What the candidate took, else what the slowest of the others did; none where nobody ran the case.
    pub fn expected(&self, candidate: &str, case: &CaseId) -> Option<Taken> {
        self.by_candidate
            .get(&(candidate.to_owned(), case.clone()))
            .or_else(|| self.by_case.get(case))
            .copied()
    }
}

/// How many cells may be on their way up at the same time: one more while the engine keeps its pace, fewer when each
/// start takes much longer than the quickest did, since then they only wait for each other.
#[derive(Debug)]
pub struct Starts {
    least: f64,
    limit: f64,
    most: f64,
    under_way: usize,
    /// The last one that asked had to wait.
    is_full: bool,
    quickest_ms: f64,
}

/// A start that takes so many times as long as the quickest one means that the engine is busy enough.
const SLOW: f64 = 2.0;

impl Starts {
    /// Begins with `least` at a time; never fewer, and never more than `most`.
    pub fn new(least: usize, most: usize) -> Self {
        let least = least.max(1) as f64;
        Self {
            least,
            limit: least,
            most: least.max(most as f64),
            under_way: 0,
            is_full: false,
            quickest_ms: f64::INFINITY,
        }
    }

    /// Takes a place, if there is one.
    pub fn begin(&mut self) -> bool {
        let free = self.under_way < self.limit as usize;
        self.under_way += usize::from(free);
        self.is_full = !free;
        free
    }

    /// Gives the place back without having learned anything.
    pub fn give_up(&mut self) {
        self.under_way -= 1;
    }

    /// A start is over, and took so long.
    pub fn end(&mut self, took_ms: f64) {
        self.under_way -= 1;
        self.quickest_ms = self.quickest_ms.min(took_ms);
        // One more, or one less, after as many starts as the limit allows.
        let step = 1.0 / self.limit;
        if took_ms > SLOW * self.quickest_ms {
            self.limit = (self.limit - step).max(self.least);
        } else if self.is_full {
            self.limit = (self.limit + step).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_durations_come_before_those_of_others() {
        let mut durations = Durations::default();
        let case = CaseId::new("a/b");
        let taken = |duration_ms| Taken {
            duration_ms,
            cpu_ms: 30,
        };
        durations.add("x", &case, taken(300));
        durations.add("x", &case, taken(100));
        durations.add("y", &case, taken(200));
        assert_eq!(durations.expected("x", &case), Some(taken(100)));
        assert_eq!(durations.expected("z", &case), Some(taken(300)));
        assert_eq!(durations.expected("x", &CaseId::new("a/c")), None);
        assert!(taken(300).idles() && !taken(200).idles());
    }

    /// An engine that serves `capacity` at a time in 10 ms; more wait for their turn.
    fn settled(capacity: usize) -> usize {
        let mut starts = Starts::new(2, 32);
        let mut n = 0;
        for _ in 0..500 {
            n = 0;
            while starts.begin() {
                n += 1;
            }
            for _ in 0..n {
                starts.end(10.0 * (n as f64 / capacity as f64).max(1.0));
            }
        }
        n
    }

    #[test]
    fn starts_grow_while_the_engine_keeps_up_and_shrink_when_it_does_not() {
        // Two at a time are all that it was ever seen to do, so twice that.
        assert!((3..=5).contains(&settled(1)), "{}", settled(1));
        assert!((7..=10).contains(&settled(4)), "{}", settled(4));
        assert_eq!(settled(100), 32);
        let mut starts = Starts::new(3, 4);
        for _ in 0..100 {
            starts.begin();
            starts.end(if starts.quickest_ms.is_infinite() {
                1.0
            } else {
                99.0
            });
        }
        assert!(starts.begin() && starts.begin() && starts.begin() && !starts.begin());
        let mut starts = Starts::new(1, 1);
        assert!(starts.begin() && !starts.begin());
        starts.give_up();
        assert!(starts.begin());
    }
}
