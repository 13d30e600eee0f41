//! What two repetitions of a unit showed differently, channel by channel. What may differ is declared: it is replaced by
//! its name in both before they are compared. Values drawn for the run stand as their names.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::case::CaseId;
use crate::domain::clause::Channel;
use crate::domain::evidence::{Evidence, Exit, FileState};

/// One thing that may differ: `[[normalise]]` in `pipeline/evaluate.toml`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What stands for it: `<NAME>`.
    pub name: String,
    /// A regular expression.
    pub pattern: String,
}

/// All that may differ.
#[derive(Debug, Default)]
pub struct Normalisation(Vec<(Regex, String)>);

/// The first thing that differs in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub channel: Channel,
    /// Where, for example `launch 1, request 2, $['messages'][3]['content']`.
    pub place: String,
    /// Normalised; none where there is nothing at that place.
    pub one: Option<String>,
    pub other: Option<String>,
}

/// A case or control whose repetitions did not all show the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unsteady {
    pub candidate: String,
    pub case: CaseId,
    /// Of each repetition on its own, before gating: `pass`, or the reason.
    pub ended: Vec<String>,
    /// The repetitions did not all end alike.
    pub flaky: bool,
    /// The two repetitions that are compared, from 1.
    pub compared: (u32, u32),
    /// The first difference of each channel that has one; empty where only what is normalised differs, or where there is
    /// no evidence.
    pub differences: Vec<Difference>,
}

impl Normalisation {
    /// The error names the rule whose pattern is wrong.
    pub fn new(rules: &[Rule]) -> Result<Self, String> {
        let compiled = rules.iter().map(|rule| {
            let pattern = Regex::new(&rule.pattern)
                .map_err(|error| format!("normalise {:?}: {error}", rule.name))?;
            Ok((pattern, format!("<{}>", rule.name)))
        });
        compiled.collect::<Result<_, _>>().map(Self)
    }

    fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (pattern, name) in &self.0 {
            if pattern.is_match(&text) {
                text = pattern
                    .replace_all(&text, regex::NoExpand(name))
                    .into_owned();
            }
        }
        text
    }
}

/// The first difference of each channel, in the order of the channels; none when both showed the same.
pub fn differences(
    one: &Evidence,
    other: &Evidence,
    normalisation: &Normalisation,
) -> Vec<Difference> {
    Channel::ALL
        .into_iter()
        .filter_map(|channel| {
            let one = Shown::of(channel, one, normalisation).facts;
            let other = Shown::of(channel, other, normalisation).facts;
            let n = one.len().max(other.len());
            let at = (0..n).find(|idx| one.get(*idx) != other.get(*idx))?;
            let (one, other) = (one.get(at), other.get(at));
            // Where one has something more, the other has nothing at that place.
            let place = match (one, other) {
                (Some(one), Some(other)) => one.min(other).place.clone(),
                (one, other) => one.or(other)?.place.clone(),
            };
            let at_place = |fact: Option<&Fact>| {
                fact.filter(|fact| fact.place == place)
                    .map(|fact| fact.text.clone())
            };
            Some(Difference {
                channel,
                one: at_place(one),
                other: at_place(other),
                place,
            })
        })
        .collect()
}

/// What a channel showed: one fact after the other.
struct Shown<'a> {
    evidence: &'a Evidence,
    normalisation: &'a Normalisation,
    facts: Vec<Fact>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fact {
    place: String,
    text: String,
}

impl<'a> Shown<'a> {
    fn of(channel: Channel, evidence: &'a Evidence, normalisation: &'a Normalisation) -> Self {
        let mut shown = Self {
            evidence,
            normalisation,
            facts: Vec::new(),
        };
        for (idx, launch) in evidence.launches.iter().enumerate() {
            let place = |what: &str| format!("launch {}, {what}", idx + 1);
            match channel {
                Channel::Requests => {
                    for (idx, request) in launch.requests.iter().enumerate() {
                        let place = place(&format!("request {}", idx + 1));
                        shown.push(&place, &format!("{} {}", request.method, request.path));
                        shown.json(&format!("{place}, $"), &request.body);
                    }
                }
                Channel::Files => {}
                Channel::Exit => {
                    let exit = match launch.exit {
                        Exit::Code(code) => format!("exit {code}"),
                        Exit::Signal(signal) => format!("signal {signal}"),
                        Exit::TimedOut => "killed at the time limit".to_owned(),
                        Exit::NeverStarted => "never started".to_owned(),
                    };
                    shown.push(&place("exit"), &exit);
                }
                Channel::Output => {
                    shown.lines(&place("stdout"), &launch.stdout.text);
                    shown.lines(&place("stderr"), &launch.stderr.text);
                    shown.lines(&place("screen"), launch.screen.as_deref().unwrap_or(""));
                }
            }
        }
        if channel == Channel::Files {
            for (path, state) in &evidence.files_after {
                shown.file(path, state);
            }
            // A name that is normalised may stand elsewhere among the others.
            shown.facts.sort();
        }
        shown
    }

    fn push(&mut self, place: &str, text: &str) {
        self.facts.push(Fact {
            place: place.to_owned(),
            text: self.normal(text),
        });
    }

    fn normal(&self, text: &str) -> String {
        let text = self.evidence.bindings.redact(text);
        self.normalisation.apply(&text)
    }

    fn lines(&mut self, place: &str, text: &str) {
        for (idx, line) in text.lines().enumerate() {
            self.push(&format!("{place}, line {}", idx + 1), line);
        }
    }

    /// The leaves of a JSON value, each at its path.
    fn json(&mut self, place: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    self.json(&format!("{place}['{key}']"), member);
                }
            }
            Value::Array(items) => {
                for (idx, item) in items.iter().enumerate() {
                    self.json(&format!("{place}[{idx}]"), item);
                }
            }
            Value::String(text) => self.push(place, text),
            other => self.push(place, &other.to_string()),
        }
    }

    fn file(&mut self, path: &str, state: &FileState) {
        let place = self.normal(path);
        let about = format!("{:?}, mode {:o}", state.kind, state.mode);
        self.push(&place, &about.to_lowercase());
        match (&state.text, &state.target) {
            (Some(text), _) => {
                // Numbered so that sorting keeps the lines in order.
                for (idx, line) in text.lines().enumerate() {
                    self.push(&format!("{place}, line {:06}", idx + 1), line);
                }
            }
            (None, Some(target)) => self.push(&format!("{place}, target"), target),
            (None, None) => {
                let digest = state.digest.as_deref().unwrap_or("not digested");
                let text = format!("{} bytes, {digest}", state.size);
                self.push(&format!("{place}, content"), &text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::evidence::EVIDENCE_FORMAT;

    fn evidence(session: &str, said: &str, stdout: &str, code: i32) -> Evidence {
        let file = |text: &str| json!({ "kind": "file", "mode": 0o644, "size": 4, "text": text });
        let request = json!({
            "at_ms": 1, "method": "POST", "path": "/v1/chat/completions", "headers": {}, "side": false,
            "body": { "messages": [{ "content": said }] }, "reply": { "step": 1 },
        });
        let value = json!({
            "format": EVIDENCE_FORMAT,
            "case": "a/b",
            "bindings": {},
            "launches": [{
                "argv": [], "exit": { "code": code }, "screen": null, "keys_unsent": 0,
                "stdout": { "text": stdout, "cut": false }, "stderr": { "text": "", "cut": false },
                "requests": [request], "duration_ms": 1, "cpu_ms": 1, "out_of_memory": false,
            }],
            "files_before": {},
            "files_after": { "a.txt": file("same"), format!("sessions/{session}.jsonl"): file(session) },
        });
        serde_json::from_value(value).expect("evidence")
    }

    #[test]
    fn what_is_declared_may_differ_and_the_rest_is_placed() {
        let rules = [Rule {
            name: "session".to_owned(),
            pattern: r"\b[0-9a-f]{12}\b".to_owned(),
        }];
        let normalisation = Normalisation::new(&rules).expect("a pattern");
        let one = evidence("0123456789ab", "in 0123456789ab", "a\nb", 0);
        let check = |other: Evidence, expected: &[&str]| {
            let seen: Vec<String> = differences(&one, &other, &normalisation)
                .into_iter()
                .map(|difference| {
                    let Difference {
                        channel,
                        place,
                        one,
                        other,
                    } = difference;
                    let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                    format!(
                        "{} {place}: {} | {}",
                        channel.as_str(),
                        shown(one),
                        shown(other)
                    )
                })
                .collect();
            assert_eq!(seen, expected);
        };
        check(evidence("ba9876543210", "in ba9876543210", "a\nb", 0), &[]);
        check(
            evidence("0123456789ab", "in another", "a\nc", 0),
            &[
                "requests launch 1, request 1, $['messages'][0]['content']: in <session> | in another",
                "output launch 1, stdout, line 2: b | c",
            ],
        );
        check(
            evidence("other", "in 0123456789ab", "a", 3),
            &[
                "files sessions/<session>.jsonl: file, mode 644 | -",
                "exit launch 1, exit: exit 0 | exit 3",
                "output launch 1, stdout, line 2: b | -",
            ],
        );
        let wrong = Normalisation::new(&[Rule {
            name: "x".to_owned(),
            pattern: "(".to_owned(),
        }]);
        assert!(wrong.is_err_and(|error| error.contains("\"x\"")));
    }
}
