//! How numbers are shown; what has no estimate is n/a.

use crate::methods::analysis::Correlation;
use crate::methods::statistics::Interval;

pub fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "n/a".to_owned(), |rate| format!("{:.2}", 100.0 * rate))
}

pub fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.3}"))
}

pub fn correlation(of: &Correlation) -> String {
    number(of.r)
        + &of
            .interval
            .map_or_else(String::new, |i| format!(" ({:.2} to {:.2})", i.low, i.high))
}

/// An interval of an estimate that is no share, to stand in a sentence.
pub fn between(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |i| {
        format!("95 %: {:.3} to {:.3}; ", i.low, i.high)
    })
}

pub fn interval(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "n/a".to_owned(),
        |interval| format!("{:.1}–{:.1}", 100.0 * interval.low, 100.0 * interval.high),
    )
}

pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// A p value; small ones are not shown as 0.
pub fn p_value(p: Option<f64>) -> String {
    match p {
        None => "n/a".to_owned(),
        Some(p) if p < 0.0005 => format!("{p:.1e}"),
        Some(p) => format!("{p:.3}"),
    }
}
