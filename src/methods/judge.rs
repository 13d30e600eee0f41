//! Judges the stored evidence of one run of a case: a pure function, so that a mended assertion needs no container.
//!
//! Order: a launch that was killed at its limit, died of a signal or could not be entered fails whatever the
//! assertions say, since an absence would hold for it; then the assertions; then requests beyond the script.

use regex::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

use crate::domain::case::{Bindings, Case, Route};
use crate::domain::clause::Channel;
use crate::domain::evidence::{Evidence, Exchange, Exit, FileState, LaunchEvidence};
use crate::domain::expect::{Expect, Pick, PickNamed, Stream};
use crate::domain::verdict::{Failure, Outcome, Reason};

/// A shell's code for "found, but cannot be executed" and "not found": the entry did not start.
const NOT_STARTED: [i32; 2] = [126, 127];

pub fn judge(case: &Case, evidence: &Evidence) -> Outcome {
    for (idx, launch) in evidence.launches.iter().enumerate() {
        if let Some(failure) = ended_badly(idx + 1, launch) {
            return Outcome::Failed(failure);
        }
    }
    for expect in &case.expects {
        if let Err(seen) = holds(expect, case, evidence) {
            return Outcome::Failed(Failure {
                reason: Reason::Assertion,
                expected: expect.to_string(),
                saw: seen.saw,
                place: seen.place,
            });
        }
    }
    match evidence.n_overruns() {
        0 => Outcome::Passed,
        n => Outcome::Failed(Failure {
            reason: Reason::ScriptOverrun,
            expected: "no request beyond the script".to_owned(),
            saw: format!("{n} beyond it"),
            place: "requests".to_owned(),
        }),
    }
}

fn ended_badly(number: usize, launch: &LaunchEvidence) -> Option<Failure> {
    let failure = |reason, saw: String| {
        Some(Failure {
            reason,
            expected: "the launch ends by itself".to_owned(),
            saw,
            place: format!("launch {number}"),
        })
    };
    if launch.keys_unsent > 0 {
        return Some(Failure {
            reason: Reason::Assertion,
            expected: "the screen comes to show what the keys wait for".to_owned(),
            saw: format!(
                "{} keys never typed; the screen ends with {}",
                launch.keys_unsent,
                short(last_line(launch.screen.as_deref().unwrap_or_default()))
            ),
            place: format!("launch {number}, screen"),
        });
    }
    match launch.exit {
        Exit::TimedOut => failure(
            Reason::Timeout,
            format!("killed after {} s", launch.duration_ms / 1000),
        ),
        _ if launch.out_of_memory => failure(Reason::Crash, "killed over its memory limit".into()),
        Exit::Signal(signal) => failure(Reason::Crash, format!("died of signal {signal}")),
        Exit::Code(code) if NOT_STARTED.contains(&code) && launch.requests.is_empty() => failure(
            Reason::Contract,
            format!("exit {code}: {}", short(last_line(&launch.stderr.text))),
        ),
        Exit::Code(_) => None,
    }
}

/// Why an assertion does not hold.
struct Seen {
    saw: String,
    place: String,
}

/// A value that an assertion looks at, and where it stands.
struct Looked {
    value: Value,
    place: String,
}

fn holds(expect: &Expect, case: &Case, evidence: &Evidence) -> Result<(), Seen> {
    if !expect.any.is_empty() {
        let mut seen = Vec::new();
        for member in &expect.any {
            match holds(member, case, evidence) {
                Ok(()) => return Ok(()),
                Err(miss) => seen.push(miss),
            }
        }
        let saw: Vec<String> = seen.iter().map(|miss| miss.saw.clone()).collect();
        let places: Vec<String> = seen.into_iter().map(|miss| miss.place).collect();
        return Err(Seen {
            saw: saw.join(" | "),
            place: places.join(" | "),
        });
    }
    match expect.channel.expect("a checked case names the channel") {
        Channel::Requests => requests(expect, evidence),
        Channel::Files => files(expect, evidence),
        Channel::Exit => exit(expect, evidence),
        Channel::Output => output(expect, case, evidence),
    }
}

/// The launches looked at, with their numbers from 1.
fn launches<'a>(
    expect: &Expect,
    evidence: &'a Evidence,
    all: bool,
) -> Vec<(usize, &'a LaunchEvidence)> {
    let numbered = evidence
        .launches
        .iter()
        .enumerate()
        .map(|(idx, launch)| (idx + 1, launch));
    match expect.launch {
        Some(n) => numbered.filter(|(number, _)| *number == n).collect(),
        None if all => numbered.collect(),
        None => numbered.last().into_iter().collect(),
    }
}

fn requests(expect: &Expect, evidence: &Evidence) -> Result<(), Seen> {
    let all: Vec<(String, &Exchange)> = launches(expect, evidence, true)
        .into_iter()
        .flat_map(|(number, launch)| {
            let numbered = launch.requests.iter().enumerate();
            numbered.map(move |(idx, one)| (format!("launch {number}, request {}", idx + 1), one))
        })
        .collect();
    let main = all.iter().filter(|(_, exchange)| !exchange.side);
    let picked: Vec<&(String, &Exchange)> = match expect.request {
        None | Some(Pick::Named(PickNamed::Any)) => all.iter().collect(),
        Some(Pick::Named(PickNamed::Side)) => {
            all.iter().filter(|(_, exchange)| exchange.side).collect()
        }
        Some(Pick::Named(PickNamed::First)) => main.take(1).collect(),
        Some(Pick::Named(PickNamed::Last)) => main.last().into_iter().collect(),
        Some(Pick::Nth(n)) => main.skip(n.saturating_sub(1)).take(1).collect(),
    };
    let looked: Vec<Looked> = match &expect.at {
        None => picked
            .iter()
            .map(|(place, exchange)| Looked {
                value: exchange.body.clone(),
                place: place.clone(),
            })
            .collect(),
        Some(at) => {
            let path = path(at, &evidence.bindings);
            picked
                .iter()
                .flat_map(|(place, exchange)| select(&path, &exchange.body, place))
                .collect()
        }
    };
    let none = || match picked.len() {
        0 => "no such request".to_owned(),
        n => format!("nothing at that path in {n} requests"),
    };
    test_values(expect, &evidence.bindings, &looked, "requests", none)
}

fn exit(expect: &Expect, evidence: &Evidence) -> Result<(), Seen> {
    for (number, launch) in launches(expect, evidence, false) {
        let Exit::Code(code) = launch.exit else {
            continue;
        };
        let equals = expect
            .equals
            .as_ref()
            .is_none_or(|wanted| *wanted == Value::from(code));
        let differs = expect
            .not_equals
            .as_ref()
            .is_none_or(|other| *other != Value::from(code));
        let listed = expect.one_of.is_empty() || expect.one_of.contains(&code);
        if !(equals && differs && listed) {
            return Err(Seen {
                saw: format!("exit {code}"),
                place: format!("launch {number}, exit"),
            });
        }
    }
    Ok(())
}

fn output(expect: &Expect, case: &Case, evidence: &Evidence) -> Result<(), Seen> {
    let mut looked = Vec::new();
    let mut where_looked = String::new();
    for (number, launch) in launches(expect, evidence, false) {
        let terminal = case
            .launches
            .get(number - 1)
            .is_some_and(|launch| launch.route == Route::Terminal);
        let stream = expect.stream.unwrap_or(match terminal {
            true => Stream::Screen,
            false => Stream::Stdout,
        });
        let text = match stream {
            Stream::Stdout => launch.stdout.text.clone(),
            Stream::Stderr => launch.stderr.text.clone(),
            Stream::Both => format!("{}{}", launch.stdout.text, launch.stderr.text),
            Stream::Screen => launch.screen.clone().unwrap_or_default(),
        };
        where_looked = format!("launch {number}, {}", stream.as_str());
        looked.extend(parsed(expect, &evidence.bindings, &text, &where_looked)?);
    }
    let none = || "nothing at that path".to_owned();
    test_values(expect, &evidence.bindings, &looked, &where_looked, none)
}

/// The text itself, or what the path selects in it when it is read as JSON.
fn parsed(
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

fn path(at: &str, bindings: &Bindings) -> JsonPath {
    JsonPath::parse(&bindings.expand(at)).expect("a checked case has a valid path")
}

fn select(path: &JsonPath, json: &Value, place: &str) -> Vec<Looked> {
    path.query_located(json)
        .into_iter()
        .map(|node| Looked {
            value: node.node().clone(),
            place: format!("{place}, {}", node.location()),
        })
        .collect()
}

fn test_values(
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

fn files(expect: &Expect, evidence: &Evidence) -> Result<(), Seen> {
    let wanted = evidence
        .bindings
        .expand(expect.path.as_deref().expect("a checked case names it"));
    // The keys keep the names of the places, so those come back after the expansion of nonces.
    let wanted = rename_places(&wanted, &evidence.bindings);
    let found: Vec<(&String, &FileState)> = evidence
        .files_after
        .iter()
        .filter(|(path, _)| path_matches(&wanted, path))
        .collect();
    let miss = |saw: String| Seen {
        saw,
        place: format!("files, {wanted}"),
    };
    if let Some(exists) = expect.exists {
        match (exists, found.first()) {
            (true, None) => return Err(miss("no such file".to_owned())),
            (false, Some((path, state))) => {
                return Err(miss(format!(
                    "{path}: {:?} of {} bytes",
                    state.kind, state.size
                )));
            }
            _ => {}
        }
    }
    if let Some(unchanged) = expect.unchanged {
        let before: Vec<(&String, &FileState)> = evidence
            .files_before
            .iter()
            .filter(|(path, _)| path_matches(&wanted, path))
            .collect();
        let same = before == found;
        if before.is_empty() && unchanged {
            return Err(miss("it was never there".to_owned()));
        }
        if same != unchanged {
            let saw = match found.first() {
                None => "it is gone".to_owned(),
                Some((path, state)) if same => format!("{path}: as before, {} bytes", state.size),
                Some((path, state)) => format!(
                    "{path}: {:?} of {} bytes{}",
                    state.kind,
                    state.size,
                    state
                        .text
                        .as_deref()
                        .map_or(String::new(), |text| format!(": {}", short(text)))
                ),
            };
            return Err(miss(saw));
        }
    }
    if let Some(mode) = &expect.mode {
        let bits = u32::from_str_radix(mode, 8).unwrap_or(u32::MAX);
        if !found.iter().any(|(_, state)| state.mode == bits) {
            let seen = found
                .first()
                .map_or("no such file".to_owned(), |(_, state)| {
                    format!("mode {:o}", state.mode)
                });
            return Err(miss(seen));
        }
    }
    let content = expect.has.is_some()
        || expect.lacks.is_some()
        || expect.matches.is_some()
        || expect.lacks_match.is_some()
        || expect.equals.is_some()
        || expect.not_equals.is_some()
        || expect.count.is_some();
    if !content {
        return Ok(());
    }
    let mut looked = Vec::new();
    for (path, state) in &found {
        let place = format!("files, {path}");
        match (&state.text, &state.target) {
            (Some(text), _) => looked.extend(parsed(expect, &evidence.bindings, text, &place)?),
            (None, Some(target)) => looked.push(Looked {
                value: target.as_str().into(),
                place,
            }),
            // Bytes that are no text, or too many: nothing that an assertion on text could match.
            (None, None) => {}
        }
    }
    let none = || match found.is_empty() {
        true => "no such file".to_owned(),
        false => "no text at that path".to_owned(),
    };
    test_values(
        expect,
        &evidence.bindings,
        &looked,
        &format!("files, {wanted}"),
        none,
    )
}

fn rename_places(path: &str, bindings: &Bindings) -> String {
    // Longest first: the state folder lies inside the home folder.
    let mut places: Vec<(&str, &String)> = ["workspace", "outside", "home", "state"]
        .into_iter()
        .filter_map(|name| Some((name, bindings.0.get(name)?)))
        .collect();
    places.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    for (name, value) in places {
        if let Some(rest) = path.strip_prefix(value.as_str()) {
            return match name {
                "workspace" => rest.trim_start_matches('/').to_owned(),
                _ => format!("{{{name}}}{rest}"),
            };
        }
    }
    path.to_owned()
}

/// `*` stands for any characters but `/`.
fn path_matches(wanted: &str, path: &str) -> bool {
    if !wanted.contains('*') {
        return wanted == path;
    }
    let pattern: Vec<String> = wanted.split('*').map(regex::escape).collect();
    Regex::new(&format!("^{}$", pattern.join("[^/]*")))
        .expect("escaped text is a valid pattern")
        .is_match(path)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const SHOWN_CHARS: usize = 160;

fn short(text: &str) -> String {
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

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::evidence::{EVIDENCE_FORMAT, FileKind, ReplyKind, Text};

    fn state(text: &str) -> FileState {
        FileState {
            kind: FileKind::File,
            mode: 0o644,
            size: text.len() as u64,
            digest: Some(text.into()),
            text: Some(text.into()),
            target: None,
        }
    }

    fn evidence() -> Evidence {
        let exchange = |content: &str, side: bool| Exchange {
            at_ms: 1,
            method: "POST".into(),
            path: "/v1/chat/completions".into(),
            headers: BTreeMap::new(),
            body: json!({ "messages": [
                { "role": "user", "content": "hi" },
                { "role": "tool", "content": content },
            ] }),
            side,
            reply: ReplyKind::Step(1),
        };
        Evidence {
            format: EVIDENCE_FORMAT,
            case: CaseId::new("headless/x"),
            bindings: Bindings(BTreeMap::from([
                ("nonce:a".into(), "n17.".into()),
                ("outside".into(), "/outside".into()),
                ("workspace".into(), "/workspace".into()),
            ])),
            launches: vec![LaunchEvidence {
                argv: vec![],
                exit: Exit::Code(0),
                stdout: Text {
                    text: "{\"type\":\"init\"}\n{\"type\":\"result\",\"text\":\"n17.\"}\n".into(),
                    cut: false,
                },
                stderr: Text::default(),
                screen: None,
                keys_unsent: 0,
                requests: vec![
                    exchange("one n17.", false),
                    exchange("side", true),
                    exchange("two", false),
                ],
                duration_ms: 5,
                cpu_ms: 5,
                out_of_memory: false,
            }],
            files_before: BTreeMap::from([
                ("a.txt".into(), state("old")),
                ("b.txt".into(), state("same")),
            ]),
            files_after: BTreeMap::from([
                ("a.txt".into(), state("new n17.")),
                ("b.txt".into(), state("same")),
                ("{outside}/c-1.json".into(), state("{\"k\": [1, 2]}")),
            ]),
        }
    }

    fn case(expect: &str) -> Case {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"tools.read.range\"\ncategory = \"headless\"\n\
             scenario = \"ordinary\"\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"\n\
             script = [{{ say = \"a\" }}, {{ say = \"b\" }}]\n[[expect]]\n{expect}\n"
        );
        Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text).expect("a case")
    }

    #[test]
    fn assertions_read_the_four_channels() {
        let check = |expect: &str, expected: &str| {
            let outcome = judge(&case(expect), &evidence());
            let seen = match &outcome {
                Outcome::Failed(failure) => format!("{} @ {}", failure.saw, failure.place),
                other => other.reason().to_owned(),
            };
            assert!(seen.contains(expected), "{expect}: {seen}");
        };
        let tool = "channel = \"requests\"\nat = \"$.messages[?@.role == 'tool'].content\"\n";
        check(&format!("{tool}has = \"{{nonce:a}}\""), "pass");
        check(
            &format!("{tool}lacks = \"{{nonce:a}}\""),
            "request 1, $['messages'][1]['content']",
        );
        check(
            &format!("{tool}request = \"last\"\nlacks = \"{{nonce:a}}\""),
            "pass",
        );
        check(&format!("{tool}request = 2\nequals = \"two\""), "pass");
        check(
            &format!("{tool}request = \"side\"\nequals = \"side\""),
            "pass",
        );
        check(&format!("{tool}has = [\"one\", \"absent\"]"), "two");
        check(&format!("{tool}count = 3"), "pass");
        check(&format!("{tool}count = {{ max = 2 }}"), "3 of them");
        check(&format!("{tool}matches = \"{{nonce:a}}$\""), "pass");
        check(
            "channel = \"requests\"\nat = \"$.nothing\"\nhas = \"x\"",
            "nothing at that path in 3",
        );
        check("channel = \"exit\"\nequals = 0", "pass");
        check("channel = \"exit\"\none_of = [1, 2]", "exit 0");
        check("channel = \"exit\"\nnot_equals = 0", "exit 0");
        check("channel = \"output\"\nhas = \"init\"", "pass");
        check(
            "channel = \"output\"\nlines = true\nat = \"$[-1].text\"\nequals = \"{nonce:a}\"",
            "pass",
        );
        check(
            "channel = \"output\"\nat = \"$.text\"\nhas = \"x\"",
            "no JSON",
        );
        check(
            "channel = \"output\"\nstream = \"stderr\"\nhas = \"x\"",
            "stderr",
        );
        check(
            "channel = \"files\"\npath = \"a.txt\"\nhas = \"{nonce:a}\"",
            "pass",
        );
        check(
            "channel = \"files\"\npath = \"b.txt\"\nunchanged = true",
            "pass",
        );
        check(
            "channel = \"files\"\npath = \"a.txt\"\nunchanged = true",
            "new n17.",
        );
        check(
            "channel = \"files\"\npath = \"z.txt\"\nunchanged = true",
            "never there",
        );
        check(
            "channel = \"files\"\npath = \"z.txt\"\nexists = false",
            "pass",
        );
        check(
            "channel = \"files\"\npath = \"a.txt\"\nexists = false",
            "8 bytes",
        );
        check(
            "channel = \"files\"\npath = \"a.txt\"\nmode = \"600\"",
            "mode 644",
        );
        check(
            "channel = \"files\"\npath = \"{outside}/*.json\"\nat = \"$.k[1]\"\nequals = 2",
            "pass",
        );
        check(
            "channel = \"files\"\npath = \"{outside}/nope\"\nhas = \"x\"",
            "no such file",
        );
        check(
            "any = [{ channel = \"exit\", equals = 3 }, { channel = \"exit\", equals = 0 }]",
            "pass",
        );
        check(
            "any = [{ channel = \"exit\", equals = 3 }, { channel = \"exit\", equals = 4 }]",
            "exit 0 | exit 0",
        );
    }

    #[test]
    fn a_launch_that_ends_badly_fails_whatever_is_asserted() {
        let check = |change: fn(&mut LaunchEvidence), expected: Reason| {
            let mut evidence = evidence();
            change(&mut evidence.launches[0]);
            let expect = "channel = \"files\"\npath = \"z.txt\"\nexists = false";
            match judge(&case(expect), &evidence) {
                Outcome::Failed(failure) => assert_eq!(failure.reason, expected),
                other => panic!("{other:?}"),
            }
        };
        check(|launch| launch.exit = Exit::TimedOut, Reason::Timeout);
        check(|launch| launch.exit = Exit::Signal(11), Reason::Crash);
        check(|launch| launch.out_of_memory = true, Reason::Crash);
        check(
            |launch| {
                launch.exit = Exit::Code(127);
                launch.requests.clear();
            },
            Reason::Contract,
        );
        check(
            |launch| launch.requests[2].reply = ReplyKind::Overrun,
            Reason::ScriptOverrun,
        );
    }
}
