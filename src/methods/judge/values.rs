//! The tests of an assertion, on values that were selected somewhere in the evidence.

use regex::Regex;
use serde_json::Value;
use serde_json_path::{JsonPath, NormalizedPath};

use super::location;
use crate::domain::case::Bindings;
use crate::domain::expect::Expect;

const SHOWN_CHARS: usize = 160;

/// Why an assertion does not hold.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) saw: String,
    pub(super) place: String,
}

/// What an assertion that holds has looked at.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) looked: Vec<Looked>,
    /// Where it was looked.
    pub(super) place: String,
}

/// A value that an assertion looks at, and where it stands.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) value: Value,
    pub(super) place: String,
}

/// The text itself, or what the path selects in it when it is read as JSON.
pub(super) fn parsed(
    expect: &Expect,
    bindings: &Bindings,
    text: &str,
    place: &str,
) -> Result<Vec<Looked>, Seen> {
    let Some(at) = &expect.at else {
        return Ok(vec![Looked {
            value: text.into(),
            place: place.to_owned(),
        }]);
    };
    let (json, numbers) = parse_json(text, expect.lines).map_err(|(line, error)| Seen {
        saw: format!(
            "no JSON ({error}): {}",
            short(text.lines().nth(line - 1).unwrap_or(text))
        ),
        place: format!("{place}, line {line}"),
    })?;
    let path = compiled_path(at, bindings)?;
    Ok(select(&path, &json, |location| {
        let inner = match expect.lines {
            true => location::of_lines(location, &numbers),
            false => location::of_json(location),
        };
        format!("{place}, {inner}")
    }))
}

/// The text as JSON, or an array of its lines with their numbers; else the line that is none, from 1, and why.
pub(super) fn parse_json(
    text: &str,
    lines: bool,
) -> Result<(Value, Vec<usize>), (usize, serde_json::Error)> {
    if !lines {
        let json = serde_json::from_str(text).map_err(|error| (error.line().max(1), error))?;
        return Ok((json, Vec::new()));
    }
    let mut values = Vec::new();
    let mut numbers = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            values.push(serde_json::from_str(line).map_err(|error| (idx + 1, error))?);
            numbers.push(idx + 1);
        }
    }
    Ok((Value::Array(values), numbers))
}

/// A checked case has a valid path; what a run puts into it may still spoil it.
pub(super) fn compiled_path(at: &str, bindings: &Bindings) -> Result<JsonPath, Seen> {
    let at = bindings.expand(at);
    JsonPath::parse(&at).map_err(|error| Seen {
        saw: format!("{at:?} is no JSONPath with the values of this run: {error}"),
        place: "the case".to_owned(),
    })
}

/// What the path selects; `place` says where in the evidence a location is.
pub(super) fn select(
    path: &JsonPath,
    json: &Value,
    place: impl Fn(&NormalizedPath) -> String,
) -> Vec<Looked> {
    path.query_located(json)
        .into_iter()
        .map(|node| Looked {
            value: node.node().clone(),
            place: place(node.location()),
        })
        .collect()
}

pub(super) fn test_values(
    expect: &Expect,
    bindings: &Bindings,
    looked: Vec<Looked>,
    where_looked: &str,
    none: impl Fn() -> String,
) -> Result<Held, Seen> {
    let texts: Vec<String> = looked.iter().map(|looked| as_text(&looked.value)).collect();
    let miss = |saw: String| Seen {
        saw,
        place: where_looked.to_owned(),
    };
    let all_seen = || match looked.last() {
        None => miss(none()),
        Some(last) => Seen {
            saw: short(&as_text(&last.value)),
            place: last.place.clone(),
        },
    };
    let hit = |idx: usize, around: &str| Seen {
        saw: excerpt(&texts[idx], around),
        place: format!(
            "{}{}",
            looked[idx].place,
            location::of_text(&texts[idx], texts[idx].find(around).unwrap_or(0))
        ),
    };
    if let Some(count) = expect.count
        && !count.holds(looked.len())
    {
        return Err(miss(format!("{} of them", looked.len())));
    }
    for wanted in expect.has.iter().flat_map(|texts| texts.as_slice()) {
        let wanted = bindings.expand(wanted);
        if !texts.iter().any(|text| text.contains(&wanted)) {
            return Err(all_seen());
        }
    }
    for unwanted in expect.lacks.iter().flat_map(|texts| texts.as_slice()) {
        let unwanted = bindings.expand(unwanted);
        if let Some(idx) = texts.iter().position(|text| text.contains(&unwanted)) {
            return Err(hit(idx, &unwanted));
        }
    }
    if let Some(pattern) = &expect.matches {
        let pattern = compiled_pattern(pattern, bindings)?;
        if !texts.iter().any(|text| pattern.is_match(text)) {
            return Err(all_seen());
        }
    }
    if let Some(pattern) = &expect.lacks_match {
        let pattern = compiled_pattern(pattern, bindings)?;
        for (idx, text) in texts.iter().enumerate() {
            if let Some(found) = pattern.find(text) {
                return Err(hit(idx, found.as_str()));
            }
        }
    }
    if let Some(wanted) = &expect.equals {
        let wanted = bindings.expand_json(wanted);
        if !looked.iter().any(|looked| looked.value == wanted) {
            return Err(all_seen());
        }
    }
    if let Some(other) = &expect.not_equals {
        let other = bindings.expand_json(other);
        if let Some(idx) = looked.iter().position(|looked| looked.value == other) {
            return Err(hit(idx, ""));
        }
    }
    Ok(Held {
        place: where_looked.to_owned(),
        looked,
    })
}

/// A regular expression in which the values of this run stand for themselves.
pub(super) fn compiled_pattern(text: &str, bindings: &Bindings) -> Result<Regex, Seen> {
    let escaped = Bindings(
        bindings
            .0
            .iter()
            .map(|(name, value)| (name.clone(), regex::escape(value)))
            .collect(),
    );
    let text = escaped.expand(text);
    Regex::new(&text).map_err(|error| Seen {
        saw: format!("{text:?} is no regular expression with the values of this run: {error}"),
        place: "the case".to_owned(),
    })
}

pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn short(text: &str) -> String {
    let text = text.trim_end();
    if text.chars().count() <= SHOWN_CHARS {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{head:?}…")
}

/// The text around the first place where `wanted` stands.
fn excerpt(text: &str, wanted: &str) -> String {
    let at = text.find(wanted).unwrap_or(0);
    let start = text[..at]
        .char_indices()
        .rev()
        .nth(40)
        .map_or(0, |(idx, _)| idx);
    let head = if start > 0 { "…" } else { "" };
    format!("{head}{}", short(&text[start..]))
}

pub(super) fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default()
}
