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

/// What a limit counts → the words of its name that say so; the first that fits counts.
const COUNTED: &[(&str, &[&str])] = &[
    (
        "time",
        &[
            "timeout", "delay", "backoff", "interval", "ttl", "seconds", "secs", "sec", "ms",
            "wait", "millis", "timeouts",
        ],
    ),
    ("tries", &["retry", "retries", "attempts", "tries"]),
    ("tokens", &["tokens", "token", "window"]),
    (
        "rounds",
        &["steps", "step", "turns", "iterations", "rounds"],
    ),
    ("depth", &["depth"]),
    ("bytes", &["bytes", "kib", "mib", "kb", "mb", "size"]),
    ("characters", &["chars", "characters", "length", "width"]),
    ("lines", &["lines"]),
    (
        "entries",
        &["results", "matches", "entries", "files", "items"],
    ),
];

/// What a limit counts, as far as its name tells.
pub fn counted(name: &str) -> Option<&'static str> {
    let words = words(name);
    COUNTED
        .iter()
        .find(|(_, named)| words.iter().any(|word| named.contains(&word.as_str())))
        .map(|(counted, _)| *counted)
}

/// A limit's number in seconds, when its name says that it is one of milliseconds, else as it stands.
pub fn amount(name: &str, number: &str) -> String {
    let is_ms = words(name)
        .iter()
        .any(|word| word == "ms" || word == "millis");
    match number.parse::<f64>() {
        Ok(number) if is_ms => (number / 1000.0).to_string(),
        Ok(number) => number.to_string(),
        Err(_) => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_is_counted() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(counted(name), expected, "{name}");
        };
        check("MAX_LINE_LENGTH", Some("characters"));
        check("maxRetryDelayMs", Some("time"));
        check("MAX_RETRIES", Some("tries"));
        check("MAX", None);
        assert_eq!(amount("timeoutMs", "5000"), amount("TIMEOUT_S", "5"));
        assert_ne!(amount("timeout", "5000"), amount("TIMEOUT_S", "5"));
    }

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
