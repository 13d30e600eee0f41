//! Names that clauses use must be names that clauses define: flags, tools, settings, in-session commands,
//! environment variables.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::lines::{Line, code_spans, lines};
use crate::domain::document::Document;
use crate::domain::place::Finding;
use crate::domain::vocabulary::Examples;

static FLAG: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[\s|(\[/])(--[A-Za-z][A-Za-z-]*)"));
static CALL: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[\s|])([a-z_]+)\("));
static COMMAND: LazyLock<Regex> = LazyLock::new(|| regex(r"^(/[a-z][a-z-]*)(?: |$)"));
static SETTING: LazyLock<Regex> = LazyLock::new(|| regex(r"[Ss]ettings? `([a-z_]+)"));
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| regex(r"HARNESS_[A-Z_]+"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

/// Where the names of a kind are defined: the clauses of these chapters whose syntax has them.
const FLAG_CHAPTERS: [&str; 4] = ["flags", "commands", "memory", "eval-api"];

/// The clauses about how a command line or a line is read: what their syntax shows are examples, also wrong ones.
const READING: [&str; 2] = ["flags.parse", "in-session.dispatch"];

/// Checks every code span; `examples` are names that are wrong on purpose.
pub fn check(document: &Document, examples: &Examples, findings: &mut Vec<Finding>) {
    let lines = lines(document);
    let defined = Defined::read(&lines);
    for line in &lines {
        let mut undefined = |name: &str, what: &str| {
            if !examples.contains_key(name) {
                findings.push(Finding::new(
                    line.place.clone(),
                    format!("`{name}` is {what}"),
                ));
            }
        };
        for code in code_spans(line.text) {
            for found in FLAG.captures_iter(code.text) {
                if !defined.flags.contains(&found[1]) {
                    undefined(&found[1], "a flag that no clause defines");
                }
            }
            for found in CALL.captures_iter(code.text) {
                if !defined.tools.contains(&found[1]) {
                    undefined(&found[1], "called like a tool, and is none");
                }
            }
            for found in COMMAND.captures_iter(code.text) {
                if !defined.commands.contains(&found[1]) {
                    undefined(&found[1], "an in-session command that no clause defines");
                }
            }
        }
        for found in SETTING.captures_iter(line.text) {
            if !defined.settings.contains(&found[1]) && !["true", "false"].contains(&&found[1]) {
                undefined(
                    &found[1],
                    "a setting that `flags.settings.keys` does not name",
                );
            }
        }
        for found in VARIABLE.find_iter(line.text) {
            if !defined.variables.contains(found.as_str()) {
                undefined(
                    found.as_str(),
                    "a variable that no clause of chapter deliverable names",
                );
            }
        }
    }
    for tool in &defined.tools {
        let signature = format!("{tool}(");
        let has = |line: &Line| {
            let is_its =
                line.feature() == format!("tools.{tool}") || line.feature() == "tools.bash";
            line.is_in("tools", "Syntax") && is_its && line.text.contains(&signature)
        };
        if !lines.iter().any(has)
            && let Some(line) = lines.iter().find(|line| defines_tools(line))
        {
            findings.push(Finding::new(
                line.place.clone(),
                format!("no clause tools.{tool}.… gives the syntax `{tool}(…)`"),
            ));
        }
    }
    for name in examples.keys() {
        let shown = |line: &Line| {
            code_spans(line.text)
                .iter()
                .any(|code| code.text.contains(name.as_str()))
        };
        if !lines.iter().any(shown)
            && let Some(line) = lines.first()
        {
            findings.push(Finding::new(
                line.place.clone(),
                format!("the example {name:?} of pipeline/document.toml is in no code span"),
            ));
        }
    }
}

#[derive(Default)]
struct Defined {
    flags: BTreeSet<String>,
    tools: BTreeSet<String>,
    commands: BTreeSet<String>,
    settings: BTreeSet<String>,
    variables: BTreeSet<String>,
}

impl Defined {
    fn read(lines: &[Line]) -> Self {
        let mut defined = Self::default();
        for line in lines {
            if defines_settings(line) {
                let keys = code_spans(line.text);
                defined
                    .settings
                    .extend(keys.iter().map(|code| code.text.to_owned()));
            }
            if line.field != "Syntax" {
                continue;
            }
            let chapter = line.chapter.slug.as_str();
            let is_example = READING.contains(&line.feature());
            for code in code_spans(line.text) {
                if defines_tools(line) {
                    defined.tools.insert(code.text.to_owned());
                }
                if FLAG_CHAPTERS.contains(&chapter) && !is_example {
                    let found = FLAG.captures_iter(code.text);
                    defined.flags.extend(found.map(|found| found[1].to_owned()));
                }
                if chapter == "in-session" && !is_example {
                    let found = COMMAND.captures_iter(code.text);
                    defined
                        .commands
                        .extend(found.map(|found| found[1].to_owned()));
                }
                if chapter == "deliverable" && VARIABLE.is_match(code.text) {
                    defined.variables.insert(code.text.to_owned());
                }
            }
        }
        defined.tools.remove("tools");
        defined
    }
}

fn defines_tools(line: &Line) -> bool {
    line.field == "Syntax"
        && line
            .clause
            .is_some_and(|clause| clause.id.as_str() == "tools.set.names")
}

/// The table of settings is a list in the behaviour of one clause.
pub fn defines_settings(line: &Line) -> bool {
    line.field == "Behaviour"
        && line.text.starts_with("- ")
        && line
            .clause
            .is_some_and(|clause| clause.id.as_str() == "flags.settings.keys")
}
