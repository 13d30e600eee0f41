//! How far two scenarios are apart, in [0, 1]: 0 for the same structure, 1 for nothing in common.
//!
//! A scenario is seen as four bags of shapes. Shapes forget names, contents and numbers, and keep what can make an
//! implementation behave differently: which tool, what kind of entry, what form of path, what sort of value, where
//! the result is looked for.
//!
//! With *a* and *b* the bags of one part, the distance of the part is 1 − |a ∩ b| / |a ∪ b| (0 when both are empty);
//! for the steps, whose order counts, it is the edit distance over the longer length. The distance is the mean of the
//! four parts, weighed as `pipeline/expand.toml` says.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::scenario::{Lies, calls, lies};
use super::ways::{self, STREAM};
use crate::domain::case::{Case, Entry};

/// What each part weighs; they need not add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    pub steps: f64,
    pub fixture: f64,
    pub arguments: f64,
    pub returned: f64,
}

/// The shapes of one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    steps: Vec<String>,
    fixture: Bag,
    arguments: Bag,
    returned: Bag,
}

type Bag = BTreeMap<String, usize>;

impl Shape {
    pub fn of(case: &Case) -> Self {
        Self {
            steps: steps(case),
            fixture: bag(case.fixture.iter().map(|(path, entry)| {
                format!("{} {}", place(path), entry_shape(case, path, entry))
            })),
            arguments: arguments(case),
            returned: bag(case.expects.iter().map(|expect| {
                let channel = expect.channel.map_or("any", |channel| channel.as_str());
                let stream = expect.stream.map_or("", |stream| stream.as_str());
                format!("{channel} {stream} {}", expect.at.as_deref().unwrap_or(""))
            })),
        }
    }

    pub fn distance(&self, other: &Self, weights: Weights) -> f64 {
        let parts = [
            (weights.steps, edits(&self.steps, &other.steps)),
            (weights.fixture, apart(&self.fixture, &other.fixture)),
            (weights.arguments, apart(&self.arguments, &other.arguments)),
            (weights.returned, apart(&self.returned, &other.returned)),
        ];
        let all: f64 = parts.iter().map(|(weight, _)| weight).sum();
        parts
            .iter()
            .map(|(weight, distance)| weight * distance)
            .sum::<f64>()
            / all
    }
}

fn steps(case: &Case) -> Vec<String> {
    let mut steps = Vec::new();
    for launch in &case.launches {
        steps.push(format!("launch {:?}", launch.route));
        let streamed = launch.args.iter().any(|arg| arg == STREAM);
        for reply in &launch.script {
            // A reply in pieces, or in a stream, is another thing to put together.
            if streamed || reply.piece_bytes.is_some() {
                steps.push(format!(
                    "streamed {streamed} pieces {}",
                    reply.piece_bytes.is_some()
                ));
            }
            if let Some(fault) = reply.fault {
                steps.push(format!("fault {}", fault.as_str()));
            }
            for call in reply.all_calls() {
                steps.push(format!("call {}", call.call));
            }
            if reply.is_raw() {
                steps.push("body".to_owned());
            }
            if reply.say.is_some() {
                steps.push("say".to_owned());
            }
        }
        for key in &launch.keys {
            let kind = [
                ("wait", key.wait.is_some()),
                ("type", key.r#type.is_some()),
                ("press", key.press.is_some()),
                ("paste", key.paste.is_some()),
            ];
            let kind = kind.iter().find(|(_, given)| *given);
            steps.push(format!("key {}", kind.map_or("resize", |(name, _)| name)));
        }
    }
    steps
}

/// Arguments of calls, flags of launches, and the requests of the evaluation API.
fn arguments(case: &Case) -> Bag {
    let mut shapes = Vec::new();
    for call in calls(case) {
        match call.arguments {
            Some(arguments) => shapes.extend(arguments.iter().map(|(name, value)| {
                let shape = if name == super::scenario::PATH_PARAMETER {
                    path_shape(case, value)
                } else {
                    value_shape(value)
                };
                format!("{name} {shape}")
            })),
            None => shapes.push("no object".to_owned()),
        }
    }
    for launch in &case.launches {
        shapes.extend(
            launch
                .args
                .iter()
                .filter(|arg| arg.starts_with('-'))
                .map(|arg| match arg.split_once('=') {
                    Some((flag, _)) => format!("{flag} joined"),
                    None => arg.clone(),
                }),
        );
        shapes.extend(launch.args.windows(2).filter_map(|pair| {
            let number: Value = pair[1].parse::<f64>().ok()?.into();
            Some(format!("{} {}", pair[0], value_shape(&number)))
        }));
        for request in &launch.requests {
            shapes.extend(
                request
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| format!("request {name} {}", value_shape(value))),
            );
            let options = request.get("options").and_then(Value::as_object);
            shapes.extend(
                options
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| format!("option {name} {}", value_shape(value))),
            );
        }
    }
    for (_, settings) in ways::settings_of(case) {
        shapes.extend(
            settings
                .iter()
                .filter(|(_, value)| !value.is_object() && !value.is_array())
                .map(|(name, value)| format!("setting {name} {}", value_shape(value))),
        );
    }
    bag(shapes)
}

fn value_shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(number) => match number.as_i64() {
            Some(0) => "zero".to_owned(),
            Some(number) if number < 0 => "negative".to_owned(),
            Some(number) if number >= 1000 => "great".to_owned(),
            Some(_) => "number".to_owned(),
            None => "fraction".to_owned(),
        },
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::String(text) if text.trim().is_empty() => "blank".to_owned(),
        Value::String(text) => text_shape(text),
        Value::Array(items) => format!("list {}", items.len().min(2)),
        Value::Object(_) => "object".to_owned(),
    }
}

fn text_shape(text: &str) -> String {
    let mut shape = vec!["text"];
    if !text.is_ascii() {
        shape.push("unicode");
    }
    if text.contains('\n') {
        shape.push("lines");
    }
    shape.join(" ")
}

fn path_shape(case: &Case, value: &Value) -> String {
    let Some(path) = value.as_str().filter(|path| !path.trim().is_empty()) else {
        return value_shape(value);
    };
    let mut shape = vec![place(path).to_owned()];
    let parts: Vec<&str> = path.split('/').collect();
    if parts.contains(&"..") {
        shape.push("dot-dot".to_owned());
    }
    if path.ends_with('/') {
        shape.push("slash".to_owned());
    }
    if !path.is_ascii() {
        shape.push("unicode".to_owned());
    }
    if path.contains(' ') {
        shape.push("blank".to_owned());
    }
    if is_in_capitals(path) {
        shape.push("capitals".to_owned());
    }
    if parts
        .iter()
        .any(|part| part.starts_with('.') && part.len() > 2)
    {
        shape.push("hidden".to_owned());
    }
    shape.push(match lies(case, path) {
        Lies::Nothing => "nothing".to_owned(),
        Lies::File(entry) => entry_shape(case, path, entry),
        Lies::Link { target } => link_shape(case, target),
        Lies::Folder => "folder".to_owned(),
        Lies::Beneath { target, .. } => format!("beneath a {}", link_shape(case, target)),
        Lies::Special => "special".to_owned(),
    });
    shape.join(" ")
}

/// How the target is written, and whether it is a link again.
fn link_shape(case: &Case, target: &str) -> String {
    let way = if target.starts_with(['{', '/']) {
        place(target)
    } else if target.starts_with("..") {
        "climbing"
    } else {
        "relative"
    };
    let again = matches!(lies(case, target), Lies::Link { .. });
    format!("link {way}{}", if again { " to a link" } else { "" })
}

/// Whether the name before its ending has letters, and all of them are capitals.
fn is_in_capitals(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.contains(char::is_uppercase) && !stem.contains(char::is_lowercase)
}

/// Relative, absolute inside, or elsewhere.
fn place(path: &str) -> &str {
    if let Some(end) = path.strip_prefix('{').and_then(|rest| rest.find('}')) {
        &path[1..=end]
    } else if path.starts_with('/') {
        "absolute"
    } else {
        "relative"
    }
}

fn entry_shape(case: &Case, path: &str, entry: &Entry) -> String {
    match entry {
        Entry::Text(text) if text.is_empty() => "empty".to_owned(),
        Entry::Text(_) if path == ways::SETTINGS_FILES[1] => "local settings".to_owned(),
        Entry::Text(_) => name_shape("file", path),
        Entry::Made(made) => {
            if let Some(target) = &made.link {
                name_shape(&link_shape(case, target), path)
            } else if made.hard_link.is_some() {
                "hard link".to_owned()
            } else if made.dir {
                "folder".to_owned()
            } else if made.fifo {
                "pipe".to_owned()
            } else if made.times.is_some_and(|times| times > 100) || made.zeros.is_some() {
                "large".to_owned()
            } else {
                name_shape("bytes", path)
            }
        }
    }
}

fn name_shape(kind: &str, path: &str) -> String {
    let mut shape = kind.to_owned();
    if !path.is_ascii() {
        shape += " unicode";
    }
    if path.contains(' ') {
        shape += " blank";
    }
    if is_in_capitals(path) {
        shape += " capitals";
    }
    shape
}

fn bag(shapes: impl IntoIterator<Item = String>) -> Bag {
    let mut bag = Bag::new();
    for shape in shapes {
        *bag.entry(shape).or_default() += 1;
    }
    bag
}

fn apart(a: &Bag, b: &Bag) -> f64 {
    let mut n_shared = 0;
    let mut n_all = 0;
    for shape in a
        .keys()
        .chain(b.keys().filter(|shape| !a.contains_key(*shape)))
    {
        let (in_a, in_b) = (
            a.get(shape).copied().unwrap_or(0),
            b.get(shape).copied().unwrap_or(0),
        );
        n_shared += in_a.min(in_b);
        n_all += in_a.max(in_b);
    }
    if n_all == 0 {
        0.0
    } else {
        1.0 - n_shared as f64 / n_all as f64
    }
}

/// Insertions, deletions and replacements, over the longer length.
fn edits(a: &[String], b: &[String]) -> f64 {
    let longest = a.len().max(b.len());
    if longest == 0 {
        return 0.0;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, step) in a.iter().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = before + usize::from(step != other);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()] as f64 / longest as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;

    const EVEN: Weights = Weights {
        steps: 1.0,
        fixture: 1.0,
        arguments: 1.0,
        returned: 1.0,
    };

    fn shape(fixture: &str, script: &str, expect: &str) -> Shape {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\
             [fixture]\n{fixture}\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"\nscript = [{script}]\n[[expect]]\n{expect}\n"
        );
        let case = Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text)
            .unwrap_or_else(|findings| panic!("{findings:?}"));
        Shape::of(&case)
    }

    const EXIT: &str = "channel = \"exit\"\nequals = 0";

    #[test]
    fn names_and_contents_do_not_count() {
        let a = shape(
            "\"a.txt\" = \"x\"",
            "{ call = \"read\", with = { path = \"a.txt\", limit = 3 } }",
            EXIT,
        );
        let b = shape(
            "\"b.md\" = \"other\"",
            "{ call = \"read\", with = { path = \"b.md\", limit = 7 } }",
            EXIT,
        );
        assert_eq!(a.distance(&b, EVEN), 0.0);
    }

    #[test]
    fn each_part_moves_the_distance_by_its_weight() {
        let seed = (
            "\"a.txt\" = \"x\"",
            "{ call = \"read\", with = { path = \"a.txt\" } }",
            EXIT,
        );
        let check = |fixture: &str, script: &str, expect: &str, expected: f64| {
            let distance =
                shape(seed.0, seed.1, seed.2).distance(&shape(fixture, script, expect), EVEN);
            assert!((distance - expected).abs() < 1e-9, "{script}: {distance}");
        };
        // One of two steps.
        check(
            seed.0,
            "{ call = \"grep\", with = { path = \"a.txt\" } }",
            EXIT,
            0.5 / 4.0,
        );
        // The only entry and the form of the only argument.
        check(
            "\"a.txt\" = { link = \"{outside}/k\" }",
            seed.1,
            EXIT,
            2.0 / 4.0,
        );
        // The only argument.
        check(
            seed.0,
            "{ call = \"read\", with = { path = \"{workspace}/a.txt\" } }",
            EXIT,
            1.0 / 4.0,
        );
        // The only place looked at.
        check(
            seed.0,
            seed.1,
            "channel = \"output\"\nhas = \"x\"",
            1.0 / 4.0,
        );
        // Nothing in common but the launch.
        check(
            "\"d\" = { dir = true }",
            "{ say = \"x\" }",
            "channel = \"output\"\nhas = \"x\"",
            3.5 / 4.0,
        );
    }

    #[test]
    fn it_is_symmetric_and_bounded() {
        let all = [
            shape("\"a\" = \"x\"", "{ say = \"x\" }", EXIT),
            shape(
                "\"a\" = \"\"",
                "{ call = \"read\", with = { path = \"a\" } }, { fault = \"hang\" }",
                EXIT,
            ),
            shape(
                "\"ü b\" = { fifo = true }",
                "{ call = \"list\", with = { depth = 0 } }",
                "channel = \"output\"\nhas = \"x\"",
            ),
        ];
        for a in &all {
            assert_eq!(a.distance(a, EVEN), 0.0);
            for b in &all {
                let distance = a.distance(b, EVEN);
                assert!((0.0..=1.0).contains(&distance));
                assert_eq!(distance, b.distance(a, EVEN));
            }
        }
    }

    #[test]
    fn edits_are_counted_over_the_longer_list() {
        let list = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let check = |a: &str, b: &str, expected: f64| {
            assert_eq!(edits(&list(a), &list(b)), expected, "{a} {b}");
        };
        check("", "", 0.0);
        check("abc", "abc", 0.0);
        check("abc", "adc", 1.0 / 3.0);
        check("abc", "ab", 1.0 / 3.0);
        check("", "ab", 1.0);
        check("kitten", "sitting", 3.0 / 7.0);
    }
}
