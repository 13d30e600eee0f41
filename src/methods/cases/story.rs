//! A case told for a reader: what lies there, how the scenario goes, what is expected, and what gates it.

use serde::Serialize;
use serde_json::Value;

use super::difference::differences;
use super::sentences::sentence;
use crate::domain::case::{Case, CaseId, Entry, Key, Launch, Made, Reply, Role, Route};
use crate::domain::suite::Suite;

#[derive(Debug, Clone, Serialize)]
pub struct Story {
    pub id: CaseId,
    pub title: String,
    pub purpose: String,
    pub clause: String,
    /// `file-operations, boundary`, or `control, same-form`.
    pub kind: String,
    /// Where it came from: the method, then what it was made from.
    pub origin: Vec<String>,
    /// By place: `workspace`, `outside`, `home`, `state`.
    pub fixture: Vec<Laid>,
    pub launches: Vec<LaunchStory>,
    pub expects: Vec<Assertion>,
    pub controls: Vec<ControlStory>,
    /// The cases that a control gates.
    pub gates: Vec<CaseId>,
}

/// One entry of the fixture.
#[derive(Debug, Clone, Serialize)]
pub struct Laid {
    pub place: String,
    /// Below the place; empty for the place itself.
    pub path: String,
    pub what: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct LaunchStory {
    pub command: String,
    /// What is unusual about it, one sentence each.
    pub circumstances: Vec<String>,
    pub conversation: Vec<Said>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    pub who: &'static str,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assertion {
    /// As verdicts name it.
    pub short: String,
    pub sentence: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct ControlStory {
    pub name: String,
    /// None when there is no such control.
    pub title: Option<String>,
    pub class: Option<String>,
    /// In what its scenario differs from the case's.
    pub differences: Vec<String>,
}

/// A line of the tree of what is laid: a place, a folder above, or an entry with what it is.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeLine {
    /// 0 for a place.
    pub depth: usize,
    pub name: String,
    /// Empty for places and folders above.
    pub what: String,
}

/// The fixture as a tree, in its order.
pub fn tree(fixture: &[Laid]) -> Vec<TreeLine> {
    let mut lines = Vec::new();
    let mut push = |depth: usize, name: &str, what: &str| {
        lines.push(TreeLine {
            depth,
            name: name.to_owned(),
            what: what.to_owned(),
        });
    };
    let mut place = "";
    let mut above: Vec<&str> = Vec::new();
    for laid in fixture {
        if laid.place != place {
            place = &laid.place;
            above.clear();
            push(0, place, "");
        }
        let parts: Vec<&str> = laid.path.split('/').collect();
        let (name, folders) = parts.split_last().expect("split yields at least one part");
        let n_same = above
            .iter()
            .zip(folders)
            .take_while(|(a, b)| a == b)
            .count();
        for (depth, folder) in folders.iter().enumerate().skip(n_same) {
            push(depth + 1, &format!("{folder}/"), "");
        }
        push(folders.len() + 1, name, &laid.what);
        above = folders.to_vec();
    }
    lines
}

pub fn tell(case: &Case, suite: &Suite) -> Story {
    let (kind, origin) = match &case.role {
        Role::Test {
            category,
            scenario,
            origin,
            ..
        } => {
            let mut from = Vec::new();
            if let Some(origin) = origin {
                from.push(word(&origin.method));
                from.extend(origin.phenomenon.clone());
                from.extend(origin.seed.clone());
                from.extend(origin.variable.map(|variable| variable.as_str().to_owned()));
                from.extend(origin.sources.clone());
            }
            (format!("{category}, {}", scenario.as_str()), from)
        }
        Role::Control { class } => (format!("control, {}", word(class)), Vec::new()),
    };
    Story {
        id: case.id.clone(),
        title: case.title.clone(),
        purpose: case.purpose.clone(),
        clause: case.clause.to_string(),
        kind,
        origin,
        fixture: fixture(case),
        launches: case.launches.iter().map(launch).collect(),
        expects: case
            .expects
            .iter()
            .map(|expect| Assertion {
                short: expect.to_string(),
                sentence: sentence(expect),
            })
            .collect(),
        controls: case
            .controls()
            .iter()
            .map(|name| control(case, name, suite))
            .collect(),
        gates: suite
            .tests()
            .filter(|test| {
                case.is_control() && test.controls().iter().any(|name| name == case.id.name())
            })
            .map(|test| test.id.clone())
            .collect(),
    }
}

fn control(case: &Case, name: &str, suite: &Suite) -> ControlStory {
    let control = suite.control(name);
    ControlStory {
        name: name.to_owned(),
        title: control.map(|control| control.title.clone()),
        class: control.and_then(|control| match &control.role {
            Role::Control { class } => Some(word(class)),
            Role::Test { .. } => None,
        }),
        differences: control.map_or(Vec::new(), |control| {
            let found = differences(case, control);
            found.iter().map(ToString::to_string).collect()
        }),
    }
}

fn fixture(case: &Case) -> Vec<Laid> {
    let mut laid: Vec<Laid> = case
        .fixture
        .iter()
        .map(|(key, entry)| {
            let inner = key.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let (place, path) = match inner {
                Some((place @ ("workspace" | "outside" | "home" | "state"), path)) => (place, path),
                _ => ("workspace", key.as_str()),
            };
            Laid {
                place: place.to_owned(),
                path: path.trim_start_matches('/').to_owned(),
                what: entry_words(entry),
            }
        })
        .collect();
    let rank = |place: &str| {
        ["workspace", "outside", "home", "state"]
            .iter()
            .position(|one| *one == place)
    };
    laid.sort_by_key(|one| (rank(&one.place), one.path.clone()));
    laid
}

fn entry_words(entry: &Entry) -> String {
    let made = match entry {
        Entry::Text(text) => return format!("{text:?}"),
        Entry::Made(made) => made,
    };
    let times = made
        .times
        .map_or(String::new(), |times| format!(" × {times}"));
    let mode = made
        .mode
        .as_ref()
        .map_or(String::new(), |mode| format!(", mode {mode}"));
    let what = match made {
        Made {
            text: Some(text), ..
        } => format!("{text:?}{times}"),
        Made {
            base64: Some(coded),
            ..
        } => format!("bytes {coded}{times}"),
        Made { zeros: Some(n), .. } => format!("{n} zero bytes"),
        Made {
            link: Some(target), ..
        } => format!("→ {target}"),
        Made {
            hard_link: Some(other),
            ..
        } => format!("= {other}"),
        Made { fifo: true, .. } => "named pipe".to_owned(),
        Made { git: Some(git), .. } => {
            let commits = git.commits.iter().map(|commit| {
                let paths: Vec<&str> = commit.files.keys().map(String::as_str).collect();
                format!(
                    "{} on {} ({})",
                    commit.message,
                    commit.branch(),
                    paths.join(", ")
                )
            });
            let commits: Vec<String> = commits.collect();
            format!("repository at {}: {}", git.head(), commits.join("; "))
        }
        _ => "folder".to_owned(),
    };
    what + &mode
}

fn launch(launch: &Launch) -> LaunchStory {
    let mut command = vec!["harness".to_owned()];
    match launch.route {
        Route::Headless => {
            command.push("-p".to_owned());
            command.push(quoted(launch.prompt.as_deref().unwrap_or_default()));
        }
        Route::Api => command.push("api".to_owned()),
        Route::Cli | Route::Terminal => {}
    }
    command.extend(launch.args.iter().map(|arg| quoted(arg)));
    let said = |who: &'static str, what: String| Said { who, what };
    let keys = launch
        .keys
        .iter()
        .map(|key| said("keyboard", key_words(key)));
    let requests = launch
        .requests
        .iter()
        .map(|request| said("request", as_text(request)));
    let steps = launch.script.iter().enumerate();
    let steps =
        steps.map(|(idx, reply)| said("model", format!("{}. {}", idx + 1, reply_words(reply))));
    LaunchStory {
        command: command.join(" "),
        circumstances: circumstances(launch),
        conversation: keys.chain(requests).chain(steps).collect(),
    }
}

fn circumstances(launch: &Launch) -> Vec<String> {
    let mut out = Vec::new();
    if launch.route == Route::Terminal {
        let [columns, rows] = launch.size.unwrap_or([80, 24]);
        out.push(format!("in a terminal of {columns} × {rows}"));
    }
    if let Some(alongside) = &launch.alongside {
        let until = match &alongside.until {
            Some(until) => format!("until here {until}"),
            None => "until this has ended".to_owned(),
        };
        out.push(format!(
            "alongside launch {}, once {} there, which waits {until}",
            alongside.launch, alongside.once
        ));
    }
    for signal in &launch.signals {
        out.push(format!(
            "gets the signal {} once {}",
            signal.send.as_str(),
            signal.once
        ));
    }
    if let Some(stdin) = &launch.stdin {
        out.push(format!("standard input {stdin:?}"));
    }
    if let Some(stdin) = launch.stdin_is {
        out.push(format!("standard input is {}", word(&stdin)));
    }
    if let Some(cwd) = &launch.cwd {
        out.push(format!("in {cwd}"));
    }
    for (name, value) in &launch.env {
        out.push(match value.as_str() {
            "" => format!("without the variable {name}"),
            value => format!("with {name}={value:?}"),
        });
    }
    for (name, capture) in &launch.bind {
        let how = capture.at.as_ref().or(capture.matches.as_ref());
        out.push(format!(
            "{{bound:{name}}} is what it shows at {}",
            how.map_or("", String::as_str)
        ));
    }
    out
}

fn key_words(key: &Key) -> String {
    if let Some(wait) = &key.wait {
        format!("waits until {wait}")
    } else if let Some(text) = &key.r#type {
        format!("types {text:?}")
    } else if let Some(name) = &key.press {
        format!("presses {name}")
    } else if let Some(text) = &key.paste {
        format!("pastes {text:?}")
    } else {
        let [columns, rows] = key.resize.unwrap_or_default();
        format!("resizes to {columns} × {rows}")
    }
}

/// What is said and called in words; everything else of a step under its own names.
fn reply_words(reply: &Reply) -> String {
    let mut parts = Vec::new();
    if let Some(say) = &reply.say {
        parts.push(format!("says {say:?}"));
    }
    for call in reply.all_calls() {
        let with = call.with.as_ref().map(as_text).unwrap_or_default();
        let id = call.id.map_or(String::new(), |id| format!(" [{id}]"));
        parts.push(format!("calls {} {with}{id}", call.call));
    }
    if let Ok(Value::Object(members)) = serde_json::to_value(reply) {
        let known = ["say", "call", "with", "id", "calls", "note"];
        let rest = members
            .iter()
            .filter(|(name, _)| !known.contains(&name.as_str()));
        parts.extend(rest.map(|(name, value)| format!("{name} {}", as_text(value))));
    }
    parts.join(", ")
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// As a shell would want it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:{}".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A word of the case language, as files spell it.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .map(|value| as_text(&value))
        .unwrap_or_default()
}
