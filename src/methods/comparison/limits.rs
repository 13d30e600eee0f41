//! Numbers with a name that bound something.

use super::source::Fact;
use super::terms::words;
use crate::domain::difference::FactKind;

/// A constant in capitals, or another name that speaks of a limit. 0, 1 and negative numbers limit nothing.
pub fn limit(name: &str, number: i64, line: usize) -> Option<Fact> {
    const WORDS: &[&str] = &[
        "max",
        "min",
        "limit",
        "timeout",
        "retry",
        "retries",
        "delay",
        "backoff",
        "size",
        "count",
        "depth",
        "cap",
        "window",
        "budget",
        "threshold",
        "ttl",
        "interval",
        "length",
        "steps",
        "turns",
        "attempts",
        "lines",
        "chars",
        "bytes",
        "tokens",
        "seconds",
    ];
    let is_capital = name.chars().any(char::is_alphabetic) && name == name.to_uppercase();
    let speaks = words(name)
        .iter()
        .any(|word| WORDS.contains(&word.as_str()));
    if number < 2 || !(is_capital || speaks) {
        return None;
    }
    let mut fact = Fact::new(FactKind::Limit, name, format!("{name} = {number}"), line);
    fact.value = Some(number.to_string());
    Some(fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_by_its_name() {
        let check = |name: &str, number: i64, expected: Option<&str>| {
            let found = limit(name, number, 1).map(|fact| fact.shown);
            assert_eq!(found.as_deref(), expected, "{name}");
        };
        check("READ_LIMIT", 1000, Some("READ_LIMIT = 1000"));
        check("maxLines", 5, Some("maxLines = 5"));
        check("timeout_s", 60, Some("timeout_s = 60"));
        check("ANSWER", 42, Some("ANSWER = 42"));
        check("answer", 42, None);
        check("MAX_RETRIES", 1, None);
    }
}
