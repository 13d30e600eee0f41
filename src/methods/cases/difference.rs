//! In what a control's scenario differs from that of a case that it gates.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::domain::case::{Case, Launch, Reply};
use crate::domain::visible::shortened;

/// Characters of a value that are shown.
const SHOWN_CHARS: usize = 60;

/// One thing that is not the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What of the scenario: `fixture`, `launch 1, args`, `launch 1, script`.
    pub part: String,
    /// Where in it: a path, `step 2, path`; empty for all of it.
    pub place: String,
    pub kind: Kind,
    /// Absent where only the other has it.
    pub case: Option<Value>,
    pub control: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What is given to the harness: prompts, arguments, what the model says, what lies there.
    Input,
    /// The way of access: the route of a launch, the tool of a call.
    Route,
    /// Everything else; it has to be shared.
    Surroundings,
}

/// In the order of the file: fixture, then launches.
pub fn differences(case: &Case, control: &Case) -> Vec<Difference> {
    let mut found = Vec::new();
    let paths: BTreeSet<&String> = case.fixture.keys().chain(control.fixture.keys()).collect();
    for path in paths {
        let (ours, theirs) = (case.fixture.get(path), control.fixture.get(path));
        if ours != theirs {
            found.push(Difference {
                part: "fixture".to_owned(),
                place: path.clone(),
                kind: Kind::Input,
                case: ours.map(json),
                control: theirs.map(json),
            });
        }
    }
    if case.launches.len() != control.launches.len() {
        found.push(Difference {
            part: "number of launches".to_owned(),
            place: String::new(),
            kind: Kind::Surroundings,
            case: Some(case.launches.len().into()),
            control: Some(control.launches.len().into()),
        });
    }
    for (idx, (ours, theirs)) in case.launches.iter().zip(&control.launches).enumerate() {
        launch(idx + 1, ours, theirs, &mut found);
    }
    found
}

/// What breaks the rule that a control changes only the input or the route; none when it keeps it.
pub fn broken(differences: &[Difference]) -> Vec<String> {
    let mut faults = Vec::new();
    if differences.is_empty() {
        faults.push("is the same scenario".to_owned());
    }
    for one in differences {
        if one.kind == Kind::Surroundings {
            faults.push(format!("differs in more than input and route: {one}"));
        }
    }
    let entries: Vec<&Difference> = differences
        .iter()
        .filter(|one| one.part == "fixture")
        .collect();
    if !entries.is_empty() && entries.len() < differences.len() {
        faults.push(format!(
            "differs in the fixture ({}) and in a launch",
            entries[0].place
        ));
    }
    if entries.len() > 1 {
        let places: Vec<&str> = entries.iter().map(|one| one.place.as_str()).collect();
        faults.push(format!(
            "differs in {} entries of the fixture: {}",
            places.len(),
            places.join(", ")
        ));
    }
    faults
}

/// Parts that differ, each once.
pub fn parts(differences: &[Difference]) -> Vec<&str> {
    let mut parts: Vec<&str> = differences.iter().map(|one| one.part.as_str()).collect();
    parts.dedup();
    parts
}

fn launch(number: usize, ours: &Launch, theirs: &Launch, found: &mut Vec<Difference>) {
    let (our_keys, their_keys) = (members(ours), members(theirs));
    let names: BTreeSet<&String> = our_keys.keys().chain(their_keys.keys()).collect();
    for name in names {
        let kind = match name.as_str() {
            // How long it may take changes nothing of what it does; the script is compared step by step.
            "time_limit_s" | "script" => continue,
            "route" => Kind::Route,
            "prompt" | "args" | "stdin" | "stdin_is" | "env" | "cwd" | "requests" | "keys" => {
                Kind::Input
            }
            _ => Kind::Surroundings,
        };
        let (case, control) = (our_keys.get(name), their_keys.get(name));
        if case != control {
            found.push(Difference {
                part: format!("launch {number}, {name}"),
                place: String::new(),
                kind,
                case: case.cloned(),
                control: control.cloned(),
            });
        }
    }
    let (ours, theirs) = (steps(&ours.script), steps(&theirs.script));
    let mut add = |place: String, kind: Kind, case: Option<Value>, control: Option<Value>| {
        found.push(Difference {
            part: format!("launch {number}, script"),
            place,
            kind,
            case,
            control,
        });
    };
    let texts = |steps: &[Value]| -> Vec<String> { steps.iter().map(Value::to_string).collect() };
    for op in capture_diff_slices(Algorithm::Myers, &texts(&ours), &texts(&theirs)) {
        if let DiffOp::Equal { .. } = op {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let n_both = old.len().min(new.len());
        for (case_idx, control_idx) in old.clone().zip(new.clone()) {
            step(
                case_idx + 1,
                &ours[case_idx],
                &theirs[control_idx],
                &mut add,
            );
        }
        for idx in old.skip(n_both) {
            add(
                format!("step {}", idx + 1),
                Kind::Input,
                Some(ours[idx].clone()),
                None,
            );
        }
        for idx in new.skip(n_both) {
            add(
                format!("step {}", idx + 1),
                Kind::Input,
                None,
                Some(theirs[idx].clone()),
            );
        }
    }
}

/// Two steps that stand for each other.
fn step(
    number: usize,
    ours: &Value,
    theirs: &Value,
    add: &mut impl FnMut(String, Kind, Option<Value>, Option<Value>),
) {
    let (our_calls, their_calls) = (calls(ours), calls(theirs));
    let call_each = our_calls.len() == 1 && their_calls.len() == 1;
    if !call_each {
        return add(
            format!("step {number}"),
            Kind::Input,
            Some(ours.clone()),
            Some(theirs.clone()),
        );
    }
    let (ours_said, theirs_said) = (without_calls(ours), without_calls(theirs));
    if ours_said != theirs_said {
        add(
            format!("step {number}"),
            Kind::Input,
            Some(ours_said),
            Some(theirs_said),
        );
    }
    let (ours, theirs) = (&our_calls[0], &their_calls[0]);
    if ours["call"] != theirs["call"] {
        let tool = |call: &Value| Some(call["call"].clone());
        add(
            format!("step {number}, tool"),
            Kind::Route,
            tool(ours),
            tool(theirs),
        );
    }
    match (ours["with"].as_object(), theirs["with"].as_object()) {
        (Some(our_with), Some(their_with)) => {
            let names: BTreeSet<&String> = our_with.keys().chain(their_with.keys()).collect();
            for name in names {
                let (case, control) = (our_with.get(name), their_with.get(name));
                if case != control {
                    let place = format!("step {number}, {name}");
                    add(place, Kind::Input, case.cloned(), control.cloned());
                }
            }
        }
        _ if ours["with"] != theirs["with"] => {
            let with = |call: &Value| Some(call["with"].clone());
            add(
                format!("step {number}, arguments"),
                Kind::Input,
                with(ours),
                with(theirs),
            );
        }
        _ => {}
    }
}

/// The steps as JSON in one spelling, without what only readers and assertions see.
fn steps(script: &[Reply]) -> Vec<Value> {
    script
        .iter()
        .map(|reply| {
            let mut members = members(reply);
            for name in ["call", "with", "id", "note"] {
                members.remove(name);
            }
            let calls = reply.all_calls();
            if !calls.is_empty() {
                let mut calls: Vec<Value> = calls.iter().map(json).collect();
                for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                    call.remove("id");
                }
                members.insert("calls".to_owned(), calls.into());
            }
            members.into()
        })
        .collect()
}

fn calls(step: &Value) -> Vec<Value> {
    step["calls"].as_array().cloned().unwrap_or_default()
}

fn without_calls(step: &Value) -> Value {
    let mut step = step.clone();
    if let Some(members) = step.as_object_mut() {
        members.remove("calls");
    }
    step
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("a case is plain data with string keys")
}

fn members(value: &impl Serialize) -> Map<String, Value> {
    match json(value) {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// `launch 1, script, step 1, tool: "read" → "bash"`
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(value) => shortened(&value.to_string(), SHOWN_CHARS).into_owned(),
        };
        f.write_str(&self.part)?;
        if !self.place.is_empty() {
            write!(f, ", {}", self.place)?;
        }
        write!(f, ": {} → {}", shown(&self.case), shown(&self.control))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;

    const CASE: &str = "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\nclass = \"channel\"\n\
        [fixture]\n\"a\" = \"a\"\n\"b\" = \"b\"\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"\ntime_limit_s = 9\n\
        args = [\"--one\"]\nscript = [{ call = \"read\", with = { path = \"a\" }, id = \"k\" }, { say = \"done\" }]\n\
        [[expect]]\nchannel = \"exit\"\nequals = 0\n";

    fn parse(text: &str) -> Case {
        Case::parse(CaseId::new("controls/x"), Path::new("x"), text).expect("a case")
    }

    #[test]
    fn only_what_changes_a_scenario_is_told() {
        let check = |from: &str, to: &str, expected: &[&str], n_broken: usize| {
            let other = CASE.replace(from, to);
            assert_ne!(other, CASE);
            let found = differences(&parse(CASE), &parse(&other));
            let seen: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(seen, expected);
            assert_eq!(broken(&found).len(), n_broken, "{:?}", broken(&found));
        };
        check("time_limit_s = 9", "time_limit_s = 8", &[], 1);
        check("id = \"k\"", "id = \"l\"", &[], 1);
        check(
            "{ path = \"a\" }",
            "{ path = \"b\", limit = 1 }",
            &[
                "launch 1, script, step 1, limit: nothing → 1",
                "launch 1, script, step 1, path: \"a\" → \"b\"",
            ],
            0,
        );
        check(
            "call = \"read\", with = { path = \"a\" }",
            "call = \"bash\", with = { command = \"cat a\" }",
            &[
                "launch 1, script, step 1, tool: \"read\" → \"bash\"",
                "launch 1, script, step 1, command: nothing → \"cat a\"",
                "launch 1, script, step 1, path: \"a\" → nothing",
            ],
            0,
        );
        check(
            "{ call = \"read\", with = { path = \"a\" }, id = \"k\" }, ",
            "",
            &[
                "launch 1, script, step 1: {\"calls\":[{\"call\":\"read\",\"with\":{\"path\":\"a\"}}]} → nothing",
            ],
            0,
        );
        check(
            "args = [\"--one\"]\n",
            "",
            &["launch 1, args: [\"--one\"] → nothing"],
            0,
        );
        check("\"a\" = \"a\"\n", "", &["fixture, a: \"a\" → nothing"], 0);
        check(
            "\"a\" = \"a\"\n\"b\" = \"b\"\n",
            "",
            &["fixture, a: \"a\" → nothing", "fixture, b: \"b\" → nothing"],
            1,
        );
        check(
            "\"b\" = \"b\"\n[[launch]]\nroute = \"headless\"\nprompt = \"x\"",
            "[[launch]]\nroute = \"headless\"\nprompt = \"y\"",
            &[
                "fixture, b: \"b\" → nothing",
                "launch 1, prompt: \"x\" → \"y\"",
            ],
            1,
        );
        check(
            "prompt = \"x\"\n",
            "prompt = \"x\"\nsignals = [{ send = \"int\", once = { request = 1 } }]\n",
            &["launch 1, signals: nothing → [{\"send\":\"int\",\"once\":{\"request\":1}}]"],
            1,
        );
        check(
            "[[expect]]",
            "[[launch]]\nroute = \"cli\"\n[[expect]]",
            &["number of launches: 1 → 2"],
            1,
        );
    }
}
