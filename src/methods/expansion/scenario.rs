//! What a case's scenario works on: its calls with their arguments, and the path that the assertion is about.

use serde_json::{Map, Value};

use super::case_text::CallAt;
use super::swap::says;
use crate::domain::case::{Case, Entry};
use crate::domain::expect::Expect;

/// A tool call of the script. Arguments given as a text are read when they are a JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptCall {
    pub at: CallAt,
    pub tool: String,
    pub id: Option<String>,
    pub arguments: Option<Map<String, Value>>,
}

/// Parameters that name a file or a folder, in every tool.
pub const PATH_PARAMETER: &str = "path";

/// All calls in the order of the script.
pub fn calls(case: &Case) -> Vec<ScriptCall> {
    let mut calls = Vec::new();
    for (launch, launched) in case.launches.iter().enumerate() {
        for (step, reply) in launched.script.iter().enumerate() {
            for (call, made) in reply.all_calls().into_iter().enumerate() {
                calls.push(ScriptCall {
                    at: CallAt { launch, step, call },
                    tool: made.call,
                    id: made.id,
                    arguments: match made.with {
                        Some(Value::Object(map)) => Some(map),
                        Some(Value::String(text)) => serde_json::from_str(&text).ok(),
                        None => Some(Map::new()),
                        Some(_) => None,
                    },
                });
            }
        }
    }
    calls
}

impl ScriptCall {
    pub fn path(&self) -> Option<&str> {
        self.arguments.as_ref()?.get(PATH_PARAMETER)?.as_str()
    }
}

/// The call that the assertions are about: one that they name by its id, else the last one whose path they quote,
/// else the last.
pub fn asserted(case: &Case) -> Option<ScriptCall> {
    pick(case, &calls(case))
}

/// The path that the case is about: that of the call asserted among those with a path, else one mentioned in a
/// prompt as `@path`.
pub fn input(case: &Case) -> Option<String> {
    let with_path: Vec<ScriptCall> = calls(case)
        .into_iter()
        .filter(|call| call.path().is_some())
        .collect();
    if let Some(path) = pick(case, &with_path).as_ref().and_then(ScriptCall::path) {
        return Some(path.to_owned());
    }
    case.launches
        .iter()
        .filter_map(|launch| launch.prompt.as_deref())
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix('@'))
        .map(|path| path.trim_end_matches(['.', ',', '?', '!']).to_owned())
        .find(|path| !path.is_empty())
}

fn pick(case: &Case, calls: &[ScriptCall]) -> Option<ScriptCall> {
    let texts = assertion_texts(case);
    let is_named = |call: &&ScriptCall| {
        call.id
            .as_ref()
            .is_some_and(|id| texts.iter().any(|text| text.contains(&format!("'{id}'"))))
    };
    let is_quoted = |call: &&ScriptCall| {
        call.path()
            .is_some_and(|path| texts.iter().any(|text| says(text, path)))
    };
    calls
        .iter()
        .find(is_named)
        .or_else(|| calls.iter().rev().find(is_quoted))
        .or_else(|| calls.last())
        .cloned()
}

/// Every text that the assertions hold, selectors included.
pub fn assertion_texts(case: &Case) -> Vec<String> {
    let mut texts = Vec::new();
    for expect in &case.expects {
        gather(expect, &mut texts);
    }
    texts
}

fn gather(expect: &Expect, texts: &mut Vec<String>) {
    for inner in expect.members() {
        gather(inner, texts);
    }
    texts.extend(expect.at.clone());
    texts.extend(expect.path.clone());
    texts.extend(
        [&expect.matches, &expect.lacks_match]
            .into_iter()
            .flatten()
            .cloned(),
    );
    texts.extend(expect.changed.iter().flatten().cloned());
    for some in [&expect.has, &expect.lacks].into_iter().flatten() {
        texts.extend(some.as_slice().iter().cloned());
    }
    for value in [&expect.equals, &expect.not_equals].into_iter().flatten() {
        texts.push(match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
    }
}

/// What lies at a path of the fixture, links not followed but for folders on the way.
#[derive(Debug, Clone, PartialEq)]
pub enum Lies<'c> {
    /// Nothing; the script makes it, or it is missed.
    Nothing,
    /// A regular file.
    File(&'c Entry),
    Link {
        target: &'c str,
    },
    Folder,
    /// Beneath a link to a folder: the link's path and target, and the rest of the path.
    Beneath {
        link: String,
        target: &'c str,
    },
    /// A pipe or another name of a file: changing its form would change what it is.
    Special,
}

pub fn lies<'c>(case: &'c Case, path: &str) -> Lies<'c> {
    let path = path.trim_end_matches('/');
    match case.fixture.get(path) {
        Some(Entry::Text(_)) => return Lies::File(&case.fixture[path]),
        Some(Entry::Made(made)) => {
            return if let Some(target) = &made.link {
                Lies::Link { target }
            } else if made.dir {
                Lies::Folder
            } else if made.fifo || made.hard_link.is_some() {
                Lies::Special
            } else {
                Lies::File(&case.fixture[path])
            };
        }
        None => {}
    }
    let below = format!("{path}/");
    if case.fixture.keys().any(|key| key.starts_with(&below)) {
        return Lies::Folder;
    }
    for (idx, _) in path.match_indices('/') {
        if let Some(Entry::Made(made)) = case.fixture.get(&path[..idx])
            && let Some(target) = &made.link
        {
            return Lies::Beneath {
                link: path[..idx].to_owned(),
                target,
            };
        }
    }
    Lies::Nothing
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;

    fn case(fixture: &str, script: &str, expect: &str) -> Case {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\
             [fixture]\n{fixture}\n[[launch]]\nroute = \"headless\"\nprompt = \"See @notes.txt.\"\nscript = [{script}]\n\
             [[expect]]\nchannel = \"requests\"\nat = \"$.messages[*].content\"\n{expect}\n"
        );
        Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text).expect("a case")
    }

    #[test]
    fn the_input_is_what_the_assertions_are_about() {
        let check = |script: &str, expect: &str, expected: Option<&str>| {
            assert_eq!(
                input(&case("", script, expect)).as_deref(),
                expected,
                "{script} {expect}"
            );
        };
        let two = "{ call = \"read\", with = { path = \"a.txt\" } }, { call = \"read\", with = { path = \"b.txt\" }, id = \"b\" }, \
                   { call = \"bash\", with = { command = \"ls\" } }";
        check(two, "has = \"x\"", Some("b.txt"));
        check(two, "has = \"error: a.txt\"", Some("a.txt"));
        check(
            "{ call = \"read\", with = '{\"path\": \"a.txt\", \"limit\": 2.0}' }",
            "has = \"x\"",
            Some("a.txt"),
        );
        check("{ say = \"x\" }", "has = \"x\"", Some("notes.txt"));
        let named = case("", two, "has = \"x\"");
        assert_eq!(
            asserted(&named).map(|call| call.tool).as_deref(),
            Some("bash")
        );
    }

    #[test]
    fn what_lies_at_a_path_is_known_from_the_fixture() {
        let case = case(
            "\"a.txt\" = \"x\"\n\"d/b.txt\" = \"x\"\n\"l\" = { link = \"d\" }\n\"p\" = { fifo = true }\n\"e\" = { dir = true }",
            "{ say = \"x\" }",
            "has = \"x\"",
        );
        assert!(matches!(lies(&case, "a.txt"), Lies::File(_)));
        assert_eq!(lies(&case, "d"), Lies::Folder);
        assert_eq!(lies(&case, "e/"), Lies::Folder);
        assert_eq!(lies(&case, "l"), Lies::Link { target: "d" });
        assert_eq!(
            lies(&case, "l/b.txt"),
            Lies::Beneath {
                link: "l".into(),
                target: "d"
            }
        );
        assert_eq!(lies(&case, "p"), Lies::Special);
        assert_eq!(lies(&case, "none"), Lies::Nothing);
    }
}
