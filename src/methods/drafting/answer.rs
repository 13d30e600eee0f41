//! What is taken of a model's answer: a case and the controls that it needs, in the case language, within bounds.
//! Everything else is refused with a reason that the model can be told.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::domain::case::{CaseFile, Entry, Origin};
use crate::domain::clause::ClauseId;
use crate::domain::draft::{Check, Refusal};

/// The answer as it has to be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub case: CaseFile,
    /// Controls that are not in the suite yet, by name.
    #[serde(default)]
    pub controls: BTreeMap<String, CaseFile>,
}

/// What a draft may be.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The clauses that its issues match.
    pub clauses: BTreeSet<ClauseId>,
    /// Seconds that a launch may take.
    pub time_limit_s: u32,
}

/// Bytes of an answer.
const MOST_BYTES: usize = 64 << 10;
const MOST_LAUNCHES: usize = 6;
const MOST_CONTROLS: usize = 4;
/// Times that a text of a fixture is repeated.
const MOST_TIMES: u32 = 1 << 20;
/// Bytes of a hole in a fixture.
const MOST_ZEROS: u64 = 64 << 20;

/// Reads an answer; what stands around the outermost braces, as a fence does, is left out.
pub fn read(text: &str) -> Result<Answer, Refusal> {
    let refused = |reason: String| Refusal::new(Check::Json, reason);
    if text.len() > MOST_BYTES {
        return Err(refused(format!(
            "the answer has {} bytes; {MOST_BYTES} are read",
            text.len()
        )));
    }
    let object = match (text.find('{'), text.rfind('}')) {
        (Some(first), Some(last)) if first < last => &text[first..=last],
        _ => return Err(refused("the answer holds no JSON object".to_owned())),
    };
    let value: Value = serde_json::from_str(object)
        .map_err(|error| refused(format!("the answer is no JSON: {error}")))?;
    serde_json::from_value(value).map_err(|error| Refusal::new(Check::Schema, error.to_string()))
}

/// Holds an answer to the bounds; where it comes from is said by us, and a launch without a time limit gets one.
pub fn bounded(mut answer: Answer, origin: Origin, bounds: &Bounds) -> Result<Answer, Refusal> {
    let refused = |reason: String| Err(Refusal::new(Check::Bounds, reason));
    answer.case.origin = Some(origin);
    if answer.case.category.is_none() || answer.case.class.is_some() {
        return refused("the case has a category and no class".to_owned());
    }
    if !bounds.clauses.contains(&answer.case.clause) {
        let known: Vec<&str> = bounds.clauses.iter().map(ClauseId::as_str).collect();
        return refused(format!(
            "the case is anchored to {}, not to one of {}",
            answer.case.clause,
            known.join(", ")
        ));
    }
    if answer.controls.len() > MOST_CONTROLS {
        return refused(format!("more than {MOST_CONTROLS} new controls"));
    }
    for (name, control) in &answer.controls {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return refused(format!("a control is called {name:?} in a-z, 0-9 and -"));
        }
        if control.class.is_none() {
            return refused(format!("control {name} has a class and no category"));
        }
        if !answer.case.controls.contains(name) {
            return refused(format!(
                "control {name} gates nothing: name it in `controls`"
            ));
        }
    }
    for file in answer.controls.values_mut().chain([&mut answer.case]) {
        let n = file.launch.len();
        if n > MOST_LAUNCHES {
            return refused(format!("{n} launches; {MOST_LAUNCHES} are enough"));
        }
        for launch in &mut file.launch {
            let limit = *launch.time_limit_s.get_or_insert(bounds.time_limit_s);
            if limit > bounds.time_limit_s {
                return refused(format!(
                    "a time limit of {limit} s; a draft has {} s",
                    bounds.time_limit_s
                ));
            }
        }
        for (path, entry) in &file.fixture {
            if let Entry::Made(made) = entry
                && (made.times > Some(MOST_TIMES) || made.zeros > Some(MOST_ZEROS))
            {
                return refused(format!("{path:?} of the fixture is too big"));
            }
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::case::Method;
    use serde_json::json;

    fn good() -> Value {
        let launch = json!([{ "route": "headless", "prompt": "x", "script": [{ "say": "done" }] }]);
        let expect = json!([{ "channel": "exit", "equals": 0 }]);
        json!({
            "case": { "title": "t", "purpose": "p", "clause": "a.b.c", "category": "headless",
                "scenario": "ordinary", "controls": ["c"], "launch": launch, "expect": expect },
            "controls": { "c": { "title": "c", "purpose": "p", "clause": "a.b.c", "class": "channel",
                "launch": launch, "expect": expect } },
        })
    }

    fn taken(text: &str) -> Result<Answer, Refusal> {
        let bounds = Bounds {
            clauses: BTreeSet::from(["a.b.c".parse().expect("an id")]),
            time_limit_s: 60,
        };
        let origin = Origin {
            method: Method::Issues,
            phenomenon: Some("x".into()),
            sources: vec!["o/n#1".into()],
            seed: None,
            variable: None,
        };
        bounded(read(text)?, origin, &bounds)
    }

    #[test]
    fn a_good_answer_is_taken_and_says_where_it_comes_from() {
        let mut lying = good();
        lying["case"]["origin"] = json!({ "method": "document" });
        for text in [
            good().to_string(),
            format!("Here it is:\n```json\n{lying:#}\n```\nDone."),
        ] {
            let answer = taken(&text).expect("a good answer");
            let origin = answer.case.origin.expect("is set");
            assert_eq!(origin.sources, ["o/n#1"]);
            assert_eq!(answer.case.launch[0].time_limit_s, Some(60));
            assert_eq!(answer.controls["c"].launch[0].time_limit_s, Some(60));
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_check_and_the_reason() {
        let check = |text: &str, expected: Check, reason: &str| {
            let refusal = taken(text).expect_err("must be refused");
            assert_eq!(refusal.check, expected, "{refusal:?}");
            assert!(refusal.reason.contains(reason), "{refusal:?}");
        };
        check("no", Check::Json, "no JSON object");
        check("{\"case\": ", Check::Json, "no JSON object");
        check("{\"case\": }", Check::Json, "expected value");
        check(&format!("{{}}{}", " ".repeat(70_000)), Check::Json, "bytes");
        check("{}", Check::Schema, "missing field `case`");
        let changed = |pointer: &str, name: &str, value: Value| {
            let mut answer = good();
            answer.pointer_mut(pointer).expect("is there")[name] = value;
            answer.to_string()
        };
        let schema = [
            ("", "run", json!("rm -rf /"), "unknown field `run`"),
            ("/case", "shell", json!("x"), "unknown field `shell`"),
            ("/case", "category", json!("x"), "unknown variant"),
            ("/case/launch/0", "route", json!("ssh"), "unknown variant"),
        ];
        for (pointer, name, value, reason) in schema {
            check(&changed(pointer, name, value), Check::Schema, reason);
        }
        let launch = good()["case"]["launch"][0].clone();
        let bounds = [
            ("/case", "clause", json!("z.z.z"), "anchored to z.z.z"),
            ("/case", "class", json!("channel"), "no class"),
            ("/case", "controls", json!([]), "gates nothing"),
            ("/case", "launch", json!(vec![launch; 7]), "7 launches"),
            ("/case/launch/0", "time_limit_s", json!(900), "900 s"),
            ("/controls/c/launch/0", "time_limit_s", json!(61), "61 s"),
            (
                "/case",
                "fixture",
                json!({ "a": { "zeros": 1_u64 << 27 } }),
                "too big",
            ),
            (
                "/case",
                "fixture",
                json!({ "a": { "text": "x", "times": 1 << 21 } }),
                "too big",
            ),
            (
                "/controls",
                "../../x",
                good()["controls"]["c"].clone(),
                "in a-z",
            ),
        ];
        for (pointer, name, value, reason) in bounds {
            check(&changed(pointer, name, value), Check::Bounds, reason);
        }
    }
}
