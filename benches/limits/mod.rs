//! Limits of figures: each is told beside its figure, and a benchmark ends with exit code 1 past one of them.

use std::sync::atomic::{AtomicBool, Ordering};

static PAST: AtomicBool = AtomicBool::new(false);

/// `limit 15`, and whether the figure is over it; an infinite limit is none.
pub fn limit(figure: f64, most: f64) -> String {
    if most.is_infinite() {
        return "no limit".to_owned();
    }
    // A figure that is no number keeps no limit.
    if figure <= most {
        return format!("limit {most}");
    }
    PAST.store(true, Ordering::Relaxed);
    format!("limit {most}, over the limit")
}

/// Ends the benchmark, when all figures are told.
pub fn end() {
    if PAST.load(Ordering::Relaxed) {
        std::process::exit(1);
    }
}
