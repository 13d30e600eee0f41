//! Facts that are stated more than once: defaults, limits, exit codes. Two statements with the same key must have the
//! same value. Only phrases that a program reads with certainty are looked at; the rest is for reviewers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::lines::{Line, code_spans, lines};
use super::names::defines_settings;
use crate::domain::document::Document;
use crate::domain::place::{Finding, Place};

/// `` `key` integer from 1, 50`` of the table of settings.
static TABLE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"`([a-z_]+)` [^·]*?,? ?(?:, |boolean, )("[^"]*"|`"[^"]*"`|true|false|[0-9][0-9.]*)\s*(?: · |$)"#,
    )
});
/// `default 3`, `default is off`, ``default `build` ``.
static DEFAULT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"\bdefault:?(?: is)? (`[^`]+`|"[^"]+"|[0-9][0-9,.]*|on\b|off\b|true\b|false\b)"#)
});
/// `at most 500 entries`, `more than 10 MiB`.
static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    let units =
        "characters?|lines?|bytes|KiB|MiB|entries|paths|files|tokens|messages|rounds|requests|s|ms";
    regex(&format!(
        r"(?i)\b(?:at most|more than|longer than|over) ([0-9][0-9,.]*) ({units})\b"
    ))
});
/// `exit code 4`, `exit codes 2, 3 and 6`.
static EXIT: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b[Ee]xit codes? ([0-9]+)((?:, [0-9]+)*(?: (?:and|or) [0-9]+)?)"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"[0-9]+"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant")
}

/// Something that the document says at a place.
struct Statement {
    key: String,
    value: String,
    place: Place,
}

/// Compares all statements, and the exit codes with their table.
pub fn check(document: &Document, findings: &mut Vec<Finding>) {
    let lines = lines(document);
    let mut statements = Vec::new();
    for line in &lines {
        settings(line, &mut statements);
    }
    let keys: Vec<String> = statements.iter().map(|made| made.key.clone()).collect();
    for line in &lines {
        defaults(line, &keys, &mut statements);
        limits(line, &mut statements);
        messages(line, &mut statements);
    }
    compare(&statements, findings);
    exit_codes(document, &lines, findings);
}

fn compare(statements: &[Statement], findings: &mut Vec<Finding>) {
    let mut first: BTreeMap<&str, &Statement> = BTreeMap::new();
    for made in statements {
        let known = first.entry(&made.key).or_insert(made);
        if known.value != made.value {
            findings.push(Finding::new(
                made.place.clone(),
                format!(
                    "{} is {} here and {} at {}",
                    made.key, made.value, known.value, known.place
                ),
            ));
        }
    }
}

fn settings(line: &Line, statements: &mut Vec<Statement>) {
    if !defines_settings(line) {
        return;
    }
    for item in line.text.trim_start_matches("- ").split(" · ") {
        if let Some(found) = TABLE.captures(item) {
            statements.push(Statement {
                key: default_key(&found[1]),
                value: plain(&found[2]),
                place: line.place.clone(),
            });
        }
    }
}

/// A default belongs to the parameter, flag or setting in the nearest code span before it, else to the first one of
/// the clause's syntax.
fn defaults(line: &Line, settings: &[String], statements: &mut Vec<Statement>) {
    if defines_settings(line) {
        return;
    }
    let Some(clause) = line.clause else { return };
    let spans = code_spans(line.text);
    for found in DEFAULT.captures_iter(line.text) {
        let start = found.get(0).expect("the whole match").start();
        if spans
            .iter()
            .any(|code| code.start < start && start < code.end)
        {
            continue;
        }
        let sentence = line.text[..start]
            .rfind(['.', ';'])
            .map_or(0, |dot| dot + 1);
        let near = spans
            .iter()
            .rev()
            .find(|code| code.end <= start && code.start >= sentence)
            .and_then(|code| name(code.text));
        let syntax = || {
            code_spans(&clause.syntax)
                .iter()
                .find_map(|code| name(code.text))
        };
        let Some(name) = near.or_else(syntax) else {
            continue;
        };
        statements.push(Statement {
            key: key_of(line, &name, settings),
            value: plain(&found[1]),
            place: line.place.clone(),
        });
    }
}

/// A parameter of a tool is its own fact, unless a setting is named after both (`bash_timeout_s`).
fn key_of(line: &Line, name: &str, settings: &[String]) -> String {
    let Some(tool) = line.feature().strip_prefix("tools.") else {
        return default_key(name);
    };
    let joined = default_key(&format!("{tool}_{name}"));
    if settings.contains(&joined) {
        joined
    } else if settings.contains(&default_key(name)) {
        default_key(name)
    } else {
        format!("the default of {tool}({name})")
    }
}

fn default_key(name: &str) -> String {
    format!("the default of {name}")
}

/// `max_turns` of `--max-turns N`, of `max_turns` and of `read(path, …)` nothing.
fn name(code: &str) -> Option<String> {
    let word = code.split([' ', '=']).next()?.trim_end_matches('?');
    let word = word.trim_start_matches('-').replace('-', "_");
    let ok = word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    ok.then_some(word)
}

/// A limit belongs to its feature and its unit.
fn limits(line: &Line, statements: &mut Vec<Statement>) {
    if line.clause.is_none() {
        return;
    }
    for found in LIMIT.captures_iter(line.text) {
        statements.push(Statement {
            key: format!("the limit of {} in {}", line.feature(), unit(&found[2])),
            value: plain(&found[1]),
            place: line.place.clone(),
        });
    }
}

/// `line` of `lines`; `s` stays seconds.
fn unit(word: &str) -> &str {
    if word.len() > 2 {
        word.trim_end_matches('s')
    } else {
        word
    }
}

/// An error text belongs to the one exit code of its sentence.
fn messages(line: &Line, statements: &mut Vec<Statement>) {
    if line.field != "Behaviour" {
        return;
    }
    for (start, sentence) in sentences(line.text) {
        let codes: Vec<&str> = EXIT
            .captures_iter(sentence)
            .filter(|found| found[2].is_empty())
            .map(|found| found.get(1).expect("a group of the pattern").as_str())
            .collect();
        let [code] = codes.as_slice() else { continue };
        for span in code_spans(line.text) {
            let inside = start <= span.start && span.start < start + sentence.len();
            if inside && let Some(message) = message(span.text) {
                statements.push(Statement {
                    key: format!("the exit code with the text {message:?}"),
                    value: (*code).to_owned(),
                    place: line.place.clone(),
                });
            }
        }
    }
}

/// `unknown key` of `unknown key: KEY`: lower-case words, at least two.
fn message(code: &str) -> Option<String> {
    let text = code.split(':').next().unwrap_or_default().trim();
    let ok = text.contains(' ') && text.chars().all(|c| c.is_ascii_lowercase() || c == ' ');
    (ok && !text.starts_with("harness ")).then(|| text.to_owned())
}

/// Sentences with their offsets; a full stop inside a code span ends none.
fn sentences(text: &str) -> Vec<(usize, &str)> {
    let spans = code_spans(text);
    let mut sentences = Vec::new();
    let mut start = 0;
    for (dot, _) in text.match_indices(". ") {
        if spans.iter().all(|code| dot < code.start || code.end <= dot) {
            sentences.push((start, &text[start..=dot]));
            start = dot + 1;
        }
    }
    sentences.push((start, &text[start..]));
    sentences
}

/// Every exit code is in the closed table, and every code of the table has its clause.
fn exit_codes(document: &Document, lines: &[Line], findings: &mut Vec<Finding>) {
    let Some(table) = document
        .clauses()
        .find(|clause| clause.id.as_str() == "exit-codes.table.closed")
    else {
        return;
    };
    let codes: Vec<&str> = numbers(&table.syntax);
    for line in lines {
        for found in EXIT.captures_iter(line.text) {
            let whole = found.get(0).expect("the whole match").as_str();
            for code in numbers(whole) {
                if !codes.contains(&code) {
                    findings.push(Finding::new(
                        line.place.clone(),
                        format!("exit code {code} is not in the table of `{}`", table.id),
                    ));
                }
            }
        }
    }
    for code in &codes {
        let is_its = |clause: &&crate::domain::clause::Clause| {
            clause.id.chapter() == "exit-codes" && clause.syntax.trim() == *code
        };
        if !document.clauses().any(|clause| is_its(&clause)) {
            findings.push(Finding::new(
                table.place.clone(),
                format!("no clause of chapter exit-codes has the syntax {code}"),
            ));
        }
    }
}

fn numbers(text: &str) -> Vec<&str> {
    NUMBER.find_iter(text).map(|found| found.as_str()).collect()
}

/// A value without marks: no backticks, quotes or commas; `on` and `off` are true and false.
fn plain(value: &str) -> String {
    let value = value.trim_matches(['`', '"', '.', ',']).replace(',', "");
    let value = value.trim_matches('"');
    match value {
        "on" => "true".to_owned(),
        "off" => "false".to_owned(),
        _ => value.to_owned(),
    }
}
