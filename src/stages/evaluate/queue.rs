//! Units that are to be run, the first ones first. A unit that waits for a timer most of the time needs a cell and no
//! core: such units are begun before all others, so many that cells are left for units that the cores can work on
//! meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::storage::runs::Unit;

/// A unit that is to be run.
pub(super) struct Waiting {
    pub(super) unit: Unit,
    pub(super) attempt: u32,
    /// A machine that broke an attempt is given time.
    not_before: Instant,
    idles: bool,
}

impl Waiting {
    /// `idles`: it is expected to wait most of the time.
    pub(super) fn new(unit: Unit, idles: bool) -> Self {
        Self {
            unit,
            attempt: 1,
            not_before: Instant::now(),
            idles,
        }
    }

    pub(super) fn again(self) -> Self {
        let pause = Duration::from_millis(400 << self.attempt.min(6));
        Self {
            attempt: self.attempt + 1,
            not_before: Instant::now() + pause,
            ..self
        }
    }
}

pub(super) struct Queue {
    working: VecDeque<Waiting>,
    idling: VecDeque<Waiting>,
    places: Arc<Semaphore>,
}

/// Held while a unit that idles is under way.
pub(super) type Place = Option<OwnedSemaphorePermit>;

impl Queue {
    /// At most `most_idling` units that idle are under way while others are left.
    pub(super) fn new(most_idling: usize) -> Self {
        Self {
            working: VecDeque::new(),
            idling: VecDeque::new(),
            places: Arc::new(Semaphore::new(most_idling)),
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        match waiting.idles {
            true => self.idling.push_back(waiting),
            false => self.working.push_back(waiting),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.working.is_empty() && self.idling.is_empty()
    }

    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&Waiting) -> bool) {
        self.working.retain(&mut is_kept);
        self.idling.retain(is_kept);
    }

    /// The next unit whose time has come.
    pub(super) fn next(&mut self) -> Option<(Waiting, Place)> {
        if let Ok(place) = self.places.clone().try_acquire_owned()
            && let Some(next) = first_due(&mut self.idling)
        {
            return Some((next, Some(place)));
        }
        first_due(&mut self.working)
            .or_else(|| first_due(&mut self.idling))
            .map(|next| (next, None))
    }
}

fn first_due(units: &mut VecDeque<Waiting>) -> Option<Waiting> {
    let now = Instant::now();
    let idx = units.iter().position(|one| one.not_before <= now)?;
    units.remove(idx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::CaseId;

    fn waiting(case: &str, idles: bool) -> Waiting {
        let unit = Unit {
            candidate: "x".to_owned(),
            case: CaseId::new(case),
            repetition: 1,
        };
        Waiting::new(unit, idles)
    }

    #[test]
    fn units_that_idle_come_first_and_leave_room_for_others() {
        let mut queue = Queue::new(1);
        for (case, idles) in [("w/1", false), ("i/1", true), ("i/2", true), ("w/2", false)] {
            queue.push(waiting(case, idles));
        }
        let mut begun = Vec::new();
        let (first, place) = queue.next().expect("one is due");
        begun.push(first.unit.case.to_string());
        begun.push(queue.next().expect("one is due").0.unit.case.to_string());
        drop(place);
        while let Some((next, _)) = queue.next() {
            begun.push(next.unit.case.to_string());
        }
        assert_eq!(begun, ["i/1", "w/1", "i/2", "w/2"]);
    }

    #[test]
    fn units_that_idle_do_not_wait_when_nothing_else_is_left() {
        let mut queue = Queue::new(1);
        for case in ["i/1", "i/2"] {
            queue.push(waiting(case, true));
        }
        let places = [queue.next(), queue.next()].map(|next| next.expect("one is due").1);
        assert!(places[0].is_some() && places[1].is_none() && queue.is_empty());
    }

    #[test]
    fn a_unit_that_is_tried_again_is_not_due_at_once() {
        let mut queue = Queue::new(1);
        queue.push(waiting("w/1", false).again());
        assert!(queue.next().is_none() && !queue.is_empty());
    }
}
