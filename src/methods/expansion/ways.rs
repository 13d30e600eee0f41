//! Operators of the variable *input form* that change how a launch is given: how flags are written, where settings
//! lie, and in what pieces the model's replies come. The scenario stays.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::case_text::CaseText;
use super::scenario::assertion_texts;
use super::swap::says;
use crate::domain::case::{Case, Entry, Fault, Launch, Reply};

/// A way, as `pipeline/expand.toml` names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    pub name: String,
    pub make: Make,
    pub title: String,
    /// One sentence: why the way matters.
    pub why: String,
    /// For `pieces`: bytes of a piece.
    #[serde(default)]
    pub bytes: u32,
    /// For `settings`: where the file lies then.
    #[serde(default)]
    pub place: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Make {
    /// The replies are streamed.
    Streamed,
    /// The replies come in pieces that end anywhere.
    Pieces,
    /// `--flag=VALUE` for `--flag VALUE`.
    Joined,
    /// The short names of flags.
    Short,
    /// The settings file lies at another place.
    Settings,
    /// Flags of `harness api` become options of its first request.
    Options,
}

pub const STREAM: &str = "--stream";
const SETTINGS_FLAG: &str = "--settings";
/// Flags without a value.
const SWITCHES: [&str; 9] = [
    "--continue",
    "--fork",
    "--no-save",
    STREAM,
    "--no-memory",
    "--no-conventions",
    "--quiet",
    "--verbose",
    "--json",
];
const SHORT: [(&str, &str); 4] = [
    ("--continue", "-c"),
    ("--resume", "-r"),
    ("--quiet", "-q"),
    ("--verbose", "-v"),
];
/// Flags of `harness api` and the options of one run that do the same.
const OPTIONS: [(&str, &str); 4] = [
    ("--permission-mode", "permission_mode"),
    ("--model", "model"),
    ("--agent", "agent"),
    ("--max-turns", "max_turns"),
];
/// Where settings files lie without a flag.
pub const SETTINGS_FILES: [&str; 3] = [
    ".harness/settings.json",
    ".harness/settings.local.json",
    "{state}/settings.json",
];

impl Way {
    /// Whether controls have to go the way, too: they share the fixture.
    pub fn changes_the_fixture(&self) -> bool {
        self.make == Make::Settings
    }
}

/// Gives the launches of a case in another way. The error says why it does not fit.
pub fn apply(way: &Way, case: &Case, text: &mut CaseText) -> Result<(), String> {
    match way.make {
        Make::Streamed => streamed(case, text),
        Make::Pieces => pieces(way.bytes, case, text),
        Make::Joined => arguments(case, text, "no flag has a value", joined),
        Make::Short => arguments(case, text, "no flag has a short name", shortened),
        Make::Settings => settings(&way.place, case, text),
        Make::Options => options(case, text),
    }
}

fn streamed(case: &Case, text: &mut CaseText) -> Result<(), String> {
    let replies = || case.launches.iter().flat_map(|launch| &launch.script);
    if case.launches.iter().any(is_streamed) {
        return Err("replies are streamed already".to_owned());
    }
    if replies().any(Reply::is_raw) {
        return Err("a reply is given as it stands".to_owned());
    }
    if replies().next().is_none() {
        return Err("the model is not asked".to_owned());
    }
    for (idx, launch) in case.launches.iter().enumerate() {
        if !launch.script.is_empty() {
            let mut args = launch.args.clone();
            args.push(STREAM.to_owned());
            text.set_args(idx, &args);
        }
    }
    Ok(())
}

fn pieces(bytes: u32, case: &Case, text: &mut CaseText) -> Result<(), String> {
    let comes_in_pieces = |reply: &Reply| {
        reply.piece_bytes.is_none() && matches!(reply.fault, None | Some(Fault::Cut))
    };
    let mut n_steps = 0;
    for (launch_idx, launch) in case.launches.iter().enumerate() {
        for (step_idx, reply) in launch.script.iter().enumerate() {
            if comes_in_pieces(reply) {
                text.set_piece_bytes(launch_idx, step_idx, bytes);
                n_steps += 1;
            }
        }
    }
    match n_steps {
        0 => Err("no reply has a body to cut".to_owned()),
        _ => Ok(()),
    }
}

fn arguments(
    case: &Case,
    text: &mut CaseText,
    why_not: &str,
    written: fn(&[String]) -> Vec<String>,
) -> Result<(), String> {
    let mut n_changed = 0;
    for (idx, launch) in case.launches.iter().enumerate() {
        let args = written(&launch.args);
        if args != launch.args {
            text.set_args(idx, &args);
            n_changed += 1;
        }
    }
    match n_changed {
        0 => Err(why_not.to_owned()),
        _ => Ok(()),
    }
}

fn joined(args: &[String]) -> Vec<String> {
    let mut written: Vec<String> = Vec::new();
    let mut waits = false;
    for arg in args {
        match written.last_mut() {
            Some(flag) if waits && !arg.starts_with('-') => {
                *flag = format!("{flag}={arg}");
                waits = false;
            }
            _ => {
                waits = takes_value(arg);
                written.push(arg.clone());
            }
        }
    }
    written
}

fn shortened(args: &[String]) -> Vec<String> {
    let short = |arg: &String| SHORT.iter().find(|(long, _)| long == arg);
    args.iter()
        .map(|arg| short(arg).map_or(arg.clone(), |(_, short)| (*short).to_owned()))
        .collect()
}

fn takes_value(arg: &str) -> bool {
    arg.starts_with("--") && !arg.contains('=') && !SWITCHES.contains(&arg)
}

fn settings(place: &str, case: &Case, text: &mut CaseText) -> Result<(), String> {
    let files: Vec<&&str> = SETTINGS_FILES
        .iter()
        .filter(|file| case.fixture.contains_key(**file))
        .collect();
    let [file] = files.as_slice() else {
        return Err(format!("{} settings files lie there", files.len()));
    };
    if **file == place {
        return Err("the settings lie there already".to_owned());
    }
    let texts = assertion_texts(case);
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let is_named = |text: &String| says(text, file) || says(text, &base(file));
    if texts.iter().any(is_named) && (base(file) != base(place) || is_path(&texts, file)) {
        return Err("an assertion names the file".to_owned());
    }
    let is_flag = case
        .launches
        .iter()
        .any(|launch| launch.args.iter().any(|arg| arg == SETTINGS_FLAG));
    if is_flag {
        return Err("a flag names a settings file".to_owned());
    }
    text.rename_entry(file, place);
    if !SETTINGS_FILES.contains(&place) {
        for (idx, launch) in case.launches.iter().enumerate() {
            let mut args = launch.args.clone();
            args.extend([SETTINGS_FLAG.to_owned(), place.to_owned()]);
            text.set_args(idx, &args);
        }
    }
    Ok(())
}

fn is_path(texts: &[String], file: &str) -> bool {
    texts.iter().any(|text| says(text, file))
}

fn options(case: &Case, text: &mut CaseText) -> Result<(), String> {
    let [launch] = case.launches.as_slice() else {
        return Err("there are several launches".to_owned());
    };
    if launch.requests.len() != 1 {
        return Err("options hold for one run, flags for all".to_owned());
    }
    let (args, options) = as_options(&launch.args);
    if options.is_empty() {
        return Err("no flag is an option".to_owned());
    }
    for (name, value) in options {
        text.set_option(0, 0, &name, &value);
    }
    text.set_args(0, &args);
    Ok(())
}

/// The flags that stay, and the others as options of a run.
pub fn as_options(args: &[String]) -> (Vec<String>, BTreeMap<String, serde_json::Value>) {
    let mut stay = Vec::new();
    let mut options = BTreeMap::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match OPTIONS.iter().find(|(flag, _)| flag == arg) {
            Some((_, name)) => {
                let value = args.next().cloned().unwrap_or_default();
                let number = value.parse::<u64>().ok().map(serde_json::Value::from);
                options.insert((*name).to_owned(), number.unwrap_or_else(|| value.into()));
            }
            None => stay.push(arg.clone()),
        }
    }
    (stay, options)
}

fn is_streamed(launch: &Launch) -> bool {
    launch.args.iter().any(|arg| arg == STREAM)
}

/// Arguments in one way of writing: what must be the same in a variant.
pub fn written_out(args: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for arg in args {
        match arg.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => {
                out.extend([flag.to_owned(), value.to_owned()]);
            }
            _ => {
                let long = SHORT.iter().find(|(_, short)| short == arg);
                out.push(long.map_or(arg.clone(), |(long, _)| (*long).to_owned()));
            }
        }
    }
    out.retain(|arg| arg != STREAM);
    while let Some(at) = out.iter().position(|arg| arg == SETTINGS_FLAG) {
        out.drain(at..(at + 2).min(out.len()));
    }
    out
}

/// Names and values at the top of the settings files that the fixture lays.
pub fn settings_of(case: &Case) -> Vec<(&str, serde_json::Map<String, serde_json::Value>)> {
    let files = case.fixture.iter().filter_map(|(path, entry)| match entry {
        Entry::Text(text) if SETTINGS_FILES.contains(&path.as_str()) => Some((path, text)),
        _ => None,
    });
    files
        .filter_map(|(path, text)| Some((path.as_str(), serde_json::from_str(text).ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::case::CaseId;

    fn case(fixture: &str, launch: &str, expect: &str) -> (Case, CaseText) {
        let text = format!(
            "title = \"t\"\npurpose = \"p\"\nclause = \"a.b.c\"\ncategory = \"headless\"\nscenario = \"ordinary\"\n\
             [fixture]\n{fixture}\n[[launch]]\n{launch}\n[[expect]]\n{expect}\n"
        );
        let case = Case::parse(CaseId::new("headless/x"), Path::new("x.toml"), &text)
            .unwrap_or_else(|findings| panic!("{findings:?}\n{text}"));
        (case, CaseText::new(&text).expect("parses"))
    }

    fn gone(make: &str, fixture: &str, launch: &str, expect: &str) -> Result<Case, String> {
        let way: Way = toml::from_str(&format!(
            "name = \"n\"\nmake = \"{make}\"\ntitle = \"t\"\nwhy = \"w\"\nbytes = 5\nplace = \"extra.json\""
        ))
        .expect("parses");
        let (seed, mut text) = case(fixture, launch, expect);
        apply(&way, &seed, &mut text)?;
        let text = text.finish(&[]);
        Ok(
            Case::parse(CaseId::new("headless/y"), Path::new("y.toml"), &text)
                .unwrap_or_else(|findings| panic!("{findings:?}\n{text}")),
        )
    }

    const EXIT: &str = "channel = \"exit\"\nequals = 0";
    const RUN: &str = "route = \"headless\"\nprompt = \"x\"\nargs = [\"--model\", \"m\", \"--continue\"]\n\
                       script = [{ fault = \"status\", code = 500 }, { say = \"done\" }]";

    #[test]
    fn flags_are_written_in_other_ways() {
        let args =
            |make: &str| gone(make, "", RUN, EXIT).map(|case| case.launches[0].args.join(" "));
        assert_eq!(
            args("streamed").as_deref(),
            Ok("--model m --continue --stream")
        );
        assert_eq!(args("joined").as_deref(), Ok("--model=m --continue"));
        assert_eq!(args("short").as_deref(), Ok("--model m -c"));
        let seen: Vec<String> = ["--model=m", "-c", "--stream", "--settings", "s"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(written_out(&seen), ["--model", "m", "--continue"]);
    }

    #[test]
    fn replies_come_in_pieces_but_for_errors() {
        let case = gone("pieces", "", RUN, EXIT).expect("fits");
        let bytes: Vec<Option<u32>> = case.launches[0]
            .script
            .iter()
            .map(|reply| reply.piece_bytes)
            .collect();
        assert_eq!(bytes, [None, Some(5)]);
    }

    #[test]
    fn a_settings_file_is_named_by_a_flag() {
        let file = "\".harness/settings.json\" = '{\"model\": \"m\"}'";
        let moved = gone("settings", file, RUN, EXIT).expect("fits");
        assert!(moved.fixture.contains_key("extra.json"));
        assert_eq!(moved.launches[0].args[3..], ["--settings", "extra.json"]);
        let named = "channel = \"output\"\nstream = \"stderr\"\nhas = \"settings.json\"";
        let why = gone("settings", file, RUN, named).expect_err("must not fit");
        assert_eq!(why, "an assertion names the file");
        let why = gone("settings", "", RUN, EXIT).expect_err("must not fit");
        assert_eq!(why, "0 settings files lie there");
    }

    #[test]
    fn flags_of_the_api_become_options() {
        let launch = "route = \"api\"\nargs = [\"--permission-mode\", \"auto\", \"--stream\", \"--max-turns\", \"2\"]\n\
                      requests = [{ op = \"run\", prompt = \"x\" }]";
        let case = gone("options", "", launch, EXIT).expect("fits");
        assert_eq!(case.launches[0].args, ["--stream"]);
        assert_eq!(
            case.launches[0].requests[0]["options"],
            serde_json::json!({"permission_mode": "auto", "max_turns": 2})
        );
    }
}
