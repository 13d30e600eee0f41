//! Since when the endpoint owes an answer. A builder whose model has fallen silent waits, or tries again and again; that
//! is no result of the model, so whoever runs the build wants to know for how long it has been so.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Statuses by which an endpoint finds fault with the request itself: that is an answer, and the builder's to mend.
const FINDS_FAULT: [u16; 3] = [400, 413, 422];

#[derive(Debug, Default)]
pub struct Owed(Mutex<Option<Instant>>);

impl Owed {
    /// A call is passed on. What failed before is still owed.
    pub fn begin(&self) {
        self.since().get_or_insert_with(Instant::now);
    }

    /// A piece of an answer with this status came: the rest is owed from now on. Errors pay nothing back.
    pub fn piece(&self, status: u16) {
        if (200..300).contains(&status) {
            *self.since() = Some(Instant::now());
        }
    }

    /// An answer with this status came to its end.
    pub fn end(&self, status: u16) {
        if (200..300).contains(&status) || FINDS_FAULT.contains(&status) {
            *self.since() = None;
        }
    }

    /// How long an answer has been owed; zero when none is.
    pub fn duration(&self) -> Duration {
        self.since().map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_owed_until_one_ends() {
        let owed = Owed::default();
        let since = |owed: &Owed| *owed.since();
        assert_eq!(owed.duration(), Duration::ZERO);
        owed.begin();
        let first = since(&owed).expect("is owed");
        // Errors, and further tries, change nothing.
        for status in [500, 429, 404] {
            owed.piece(status);
            owed.end(status);
            owed.begin();
        }
        assert_eq!(since(&owed), Some(first));
        owed.piece(200);
        assert!(since(&owed) >= Some(first), "the rest is owed");
        owed.end(200);
        assert_eq!(since(&owed), None);
        owed.begin();
        owed.end(400);
        assert_eq!(since(&owed), None);
    }
}
