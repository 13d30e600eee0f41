//! The tests of an assertion, on values that were selected somewhere in the evidence.

use regex::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::domain::case::Bindings;
use crate::domain::expect::Expect;

const SHOWN_CHARS: usize = 160;

/// Why an assertion does not hold.
pub(super) struct Seen {
    pub(super) saw: String,
    pub(super) place: String,
}

/// A value that an assertion looks at, and where it stands.
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
    let json = if expect.lines {
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(serde_json::from_str)
            .collect::<Result<Vec<Value>, _>>()
            .map(Value::Array)
    } else {
        serde_json::from_str(text)
    };
    let json = json.map_err(|error| Seen {
        saw: format!("no JSON ({error}): {}", short(text)),
        place: place.to_owned(),
    })?;
    Ok(select(&path(at, bindings), &json, place))
}

pub(super) fn path(at: &str, bindings: &Bindings) -> JsonPath {
    JsonPath::parse(&bindings.expand(at)).expect("a checked case has a valid path")
}

pub(super) fn select(path: &JsonPath, json: &Value, place: &str) -> Vec<Looked> {
    path.query_located(json)
        .into_iter()
        .map(|node| Looked {
            value: node.node().clone(),
            place: format!("{place}, {}", node.location()),
        })
        .collect()
}

pub(super) fn test_values(
    expect: &Expect,
    bindings: &Bindings,
    looked: &[Looked],
    where_looked: &str,
    none: impl Fn() -> String,
) -> Result<(), Seen> {
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
        place: looked[idx].place.clone(),
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
        let pattern = regex(pattern, bindings);
        if !texts.iter().any(|text| pattern.is_match(text)) {
            return Err(all_seen());
        }
    }
    if let Some(pattern) = &expect.lacks_match {
        let pattern = regex(pattern, bindings);
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
    Ok(())
}

fn regex(pattern: &str, bindings: &Bindings) -> Regex {
    // A value put into a pattern stands for itself.
    let escaped = Bindings(
        bindings
            .0
            .iter()
            .map(|(name, value)| (name.clone(), regex::escape(value)))
            .collect(),
    );
    Regex::new(&escaped.expand(pattern)).expect("a checked case has a valid pattern")
}

fn as_text(value: &Value) -> String {
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
