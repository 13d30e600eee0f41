//! Where in JSON a value stands, in words that a reader finds again.

use std::fmt::Write;

use serde_json_path::{NormalizedPath, PathElement};

/// `message 4, .content` for the conversation of a request, else a JSONPath: `$.usage.requests`.
pub(super) fn of_request(path: &NormalizedPath) -> String {
    let elements: Vec<&PathElement> = path.iter().collect();
    match elements.as_slice() {
        [
            PathElement::Name("messages"),
            PathElement::Index(idx),
            rest @ ..,
        ] => counted("message", idx + 1, rest),
        all => format!("${}", steps(all)),
    }
}

/// `line 3, .type` for JSON lines; `numbers` has the number of the line of each value.
pub(super) fn of_lines(path: &NormalizedPath, numbers: &[usize]) -> String {
    let elements: Vec<&PathElement> = path.iter().collect();
    match elements.as_slice() {
        [PathElement::Index(idx), rest @ ..] if *idx < numbers.len() => {
            counted("line", numbers[*idx], rest)
        }
        all => format!("${}", steps(all)),
    }
}

pub(super) fn of_json(path: &NormalizedPath) -> String {
    let elements: Vec<&PathElement> = path.iter().collect();
    format!("${}", steps(&elements))
}

/// `, line 3` when the text has several lines.
pub(super) fn of_text(text: &str, offset: usize) -> String {
    match text.trim_end().contains('\n') {
        true => {
            let above = text.as_bytes()[..offset.min(text.len())].iter();
            format!(
                ", line {}",
                1 + above.filter(|byte| **byte == b'\n').count()
            )
        }
        false => String::new(),
    }
}

fn counted(word: &str, number: usize, rest: &[&PathElement]) -> String {
    match rest.is_empty() {
        true => format!("{word} {number}"),
        false => format!("{word} {number}, {}", steps(rest)),
    }
}

fn steps(elements: &[&PathElement]) -> String {
    let mut out = String::new();
    for element in elements {
        let written = match element {
            PathElement::Index(idx) => write!(out, "[{idx}]"),
            PathElement::Name(name) if is_plain(name) => write!(out, ".{name}"),
            PathElement::Name(name) => write!(out, "[{name:?}]"),
        };
        written.expect("a String takes everything");
    }
    out
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}
