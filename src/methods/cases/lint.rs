//! What a careful reader would hold against a case that parses and fits the suite: it is said, and refuses nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::case::{Bindings, Case, Launch, Route};
use crate::domain::document::Document;
use crate::domain::place::Finding;

/// A title fits into one line of a verdict.
const TITLE_CHARS: usize = 100;
const PURPOSE_CHARS: usize = 140;

/// Notes on one case. `tool` says whether the document knows a tool.
pub fn notes(case: &Case, document: &Document, tool: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    lengths(case, &mut found);
    unknown_names(case, document, tool, &mut found);
    unreachable_steps(case, &mut found);
    impossible_absences(case, document, &mut found);
    found
}

fn lengths(case: &Case, found: &mut Vec<Finding>) {
    for (key, text, most) in [
        ("title", &case.title, TITLE_CHARS),
        ("purpose", &case.purpose, PURPOSE_CHARS),
    ] {
        let n = text.chars().count();
        if n > most {
            let message = format!("the {key} has {n} characters; {most} are enough");
            found.push(Finding::new(case.places().of(key), message));
        }
    }
}

fn unknown_names(
    case: &Case,
    document: &Document,
    tool: &dyn Fn(&str) -> bool,
    found: &mut Vec<Finding>,
) {
    for (idx, launch) in case.launches.iter().enumerate() {
        let mut note = |message: String| {
            found.push(Finding::new(case.places().nth("launch", idx), message));
        };
        for arg in launch.args.iter().filter(|arg| arg.len() > 2) {
            let flag = arg.split('=').next().unwrap_or(arg);
            if flag.starts_with("--") && !names_flag(document, flag) {
                note(format!("the document has no flag {flag}"));
            }
        }
        let calls = launch.script.iter().flat_map(|reply| reply.all_calls());
        let names: BTreeSet<String> = calls.map(|call| call.call).collect();
        for name in names.iter().filter(|name| !tool(name)) {
            note(format!("the document has no tool {name:?}"));
        }
    }
}

fn names_flag(document: &Document, flag: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-';
    document.chapters.iter().any(|chapter| {
        chapter.markdown.match_indices(flag).any(|(at, _)| {
            let behind = &chapter.markdown[at + flag.len()..];
            !behind.starts_with(goes_on) && !chapter.markdown[..at].ends_with(goes_on)
        })
    })
}

/// Steps behind the one that ends the last turn. A task of an inner agent ends a turn of its own.
fn unreachable_steps(case: &Case, found: &mut Vec<Finding>) {
    if may_block_the_end(case) {
        return;
    }
    for (idx, launch) in case.launches.iter().enumerate() {
        let Some(n_prompts) = n_prompts(launch) else {
            continue;
        };
        let main: Vec<_> = launch
            .script
            .iter()
            .enumerate()
            .filter(|(_, one)| !one.is_side())
            .collect();
        let calls = main.iter().flat_map(|(_, reply)| reply.all_calls());
        let n_turns = n_prompts + calls.filter(|call| call.call == "task").count();
        // A blank reply is asked for again.
        let is_said =
            |say: &Option<String>| say.as_deref().is_some_and(|say| !say.trim().is_empty());
        let mut n_ended = 0;
        for (step_idx, reply) in main {
            if n_ended >= n_turns {
                let step = step_idx + 1;
                let message =
                    format!("step {step} is never asked for: the last turn ended before it");
                found.push(Finding::new(case.places().nth("launch", idx), message));
                break;
            }
            if reply.fault.is_none() && reply.all_calls().is_empty() && is_said(&reply.say) {
                n_ended += reply.times.unwrap_or(1) as usize;
            }
        }
    }
}

/// Whether a turn that has ended may go on: a hook of the event `stop` can block its end.
fn may_block_the_end(case: &Case) -> bool {
    let fixture = serde_json::to_string(&case.fixture).expect("a case is plain data");
    fixture.contains(r#"\"stop\""#)
}

/// Prompts that a launch is given, where that can be told.
fn n_prompts(launch: &Launch) -> Option<usize> {
    match launch.route {
        Route::Headless => Some(1),
        Route::Cli => Some(launch.stdin.as_deref().unwrap_or_default().lines().count()),
        Route::Terminal => {
            let enters = |text: &Option<String>| {
                let text = text.as_deref().unwrap_or_default();
                text.matches(['\r', '\n']).count()
            };
            let keys = launch.keys.iter().map(|key| {
                usize::from(key.press.as_deref() == Some("enter"))
                    + enters(&key.r#type)
                    + enters(&key.paste)
            });
            Some(keys.sum())
        }
        Route::Api => launch
            .requests
            .iter()
            .map(|request| {
                request
                    .is_object()
                    .then_some(usize::from(request["op"] == "run"))
            })
            .sum(),
    }
}

/// Texts that nothing could ever say: their absence holds whatever the harness does.
fn impossible_absences(case: &Case, document: &Document, found: &mut Vec<Finding>) {
    let mut sources: Vec<String> = Vec::new();
    collect(
        &serde_json::json!([case.fixture, case.launches]),
        &mut sources,
    );
    for (idx, expect) in case.expects.iter().enumerate() {
        for leaf in expect.leaves() {
            for text in leaf.lacks.iter().flat_map(|texts| texts.as_slice()) {
                let is_drawn = Bindings::filled(text) != *text;
                let is_said = sources.iter().any(|source| source.contains(text.as_str()))
                    || document
                        .chapters
                        .iter()
                        .any(|one| one.markdown.contains(text.as_str()));
                if !is_drawn && !is_said {
                    let message = format!(
                        "nothing in the fixture, the launches or the document says {text:?}: it is absent whatever the harness does"
                    );
                    found.push(Finding::new(case.places().nth("expect", idx), message));
                }
            }
        }
    }
}

/// Every string of a value, keys too.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => {
            for (name, item) in members {
                found.push(name.clone());
                collect(item, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;
    use crate::domain::document::Chapter;

    const CASE: &str = "title = \"t\"\npurpose = \"p\"\nclause = \"tools.read.range\"\nclass = \"channel\"\n\
        [[launch]]\nroute = \"headless\"\nprompt = \"{nonce:a}\"\nargs = [\"--model=m\"]\n\
        script = [{ call = \"read\", with = { path = \"x\" } }, { say = \"done\" }]\n\
        [[expect]]\nchannel = \"output\"\nhas = \"{nonce:a}\"\n\
        [[expect]]\nchannel = \"output\"\nlacks = \"done\"\n";

    #[test]
    fn what_a_reader_would_say_is_said() {
        let document = Document {
            chapters: vec![
                Chapter::parse(
                    Path::new("02-tools.md"),
                    "# Tools\n\nThe flag `--model` and `--max-turns`.\n\n### tools.read.range · boundary\n\
                     **Syntax** s\n**Meaning** m\n**Behaviour** b\n**Channels** requests\n",
                )
                .expect("a chapter"),
            ],
        };
        let check = |from: &str, to: &str, expected: &[&str]| {
            let text = CASE.replacen(from, to, 1);
            let case = Case::parse(CaseId::new("controls/x"), Path::new("x"), &text);
            let case = case.unwrap_or_else(|findings| panic!("{findings:?}"));
            let tool = |name: &str| ["read", "task"].contains(&name);
            let seen: Vec<String> = notes(&case, &document, &tool)
                .into_iter()
                .map(|finding| finding.to_string())
                .collect();
            assert_eq!(seen.len(), expected.len(), "{seen:?}");
            for (seen, expected) in seen.iter().zip(expected) {
                assert!(seen.contains(expected), "{seen} / {expected}");
            }
        };
        check("", "", &[]);
        let long = "x".repeat(101);
        check(
            "\"t\"",
            &format!("\"{long}\""),
            &["x:1: the title has 101 characters"],
        );
        check(
            "--model=m",
            "--max-turn",
            &["x:5: the document has no flag --max-turn"],
        );
        check("\"read\"", "\"red\"", &["the document has no tool \"red\""]);
        let more = "{ say = \"done\" }, { say = \"more\" }";
        check("{ say = \"done\" }", more, &["step 3 is never asked for"]);
        let inner = "{ call = \"task\", with = { prompt = \"y\" } }, { say = \"done\" }, { say = \"more\" }";
        check("{ say = \"done\" }", inner, &[]);
        let hooked =
            format!("{more}]\n[fixture]\n\"s.json\" = '{{\"hooks\": {{\"stop\": []}}}}'\n");
        check("{ say = \"done\" }]\n", &hooked, &[]);
        check(
            "lacks = \"done\"",
            "lacks = \"dome\"",
            &["x:13: nothing in the fixture"],
        );
    }
}
