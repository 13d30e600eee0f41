//! The document line by line, each with the clause and the field that it stands in, and the code spans of a line.

use crate::domain::clause::Clause;
use crate::domain::document::{Chapter, Document};
use crate::domain::place::Place;

/// A line of a chapter.
pub struct Line<'a> {
    pub chapter: &'a Chapter,
    pub text: &'a str,
    pub place: Place,
    /// The clause that it belongs to, its heading included; none for prose.
    pub clause: Option<&'a Clause>,
    /// `Syntax`, `Meaning`, `Behaviour`, `Channels` or `Relates`; empty outside.
    pub field: &'a str,
}

impl Line<'_> {
    /// `chapter.feature` of the clause; empty outside clauses.
    pub fn feature(&self) -> &str {
        let id = self.clause.map_or("", |clause| clause.id.as_str());
        id.rsplit_once('.').map_or("", |(feature, _)| feature)
    }

    pub fn is_in(&self, chapter: &str, field: &str) -> bool {
        self.chapter.slug == chapter && self.field == field
    }
}

/// All lines of all chapters.
pub fn lines(document: &Document) -> Vec<Line<'_>> {
    document.chapters.iter().flat_map(of_chapter).collect()
}

fn of_chapter(chapter: &Chapter) -> Vec<Line<'_>> {
    let mut clause = None;
    let mut field = "";
    let mut fenced = false;
    let mut lines = Vec::new();
    for (idx, text) in chapter.markdown.lines().enumerate() {
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if !fenced && is_heading(text) {
            clause = chapter
                .clauses
                .iter()
                .find(|clause| clause.place.line == idx + 1);
            field = "";
        } else if !fenced && clause.is_some() {
            field = label(text).unwrap_or(field);
        }
        lines.push(Line {
            chapter,
            text,
            place: Place::new(&chapter.file, idx + 1),
            clause,
            field,
        });
    }
    lines
}

fn is_heading(text: &str) -> bool {
    let level = text.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && text[level..].starts_with(' ')
}

fn label(text: &str) -> Option<&str> {
    let (label, _) = text.strip_prefix("**")?.split_once("**")?;
    ["Syntax", "Meaning", "Behaviour", "Channels", "Relates"]
        .contains(&label)
        .then_some(label)
}

/// A code span: where it begins in its line (its first backtick), where it ends, and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code<'a> {
    pub start: usize,
    pub end: usize,
    pub text: &'a str,
}

/// The code spans of a line. A run of backticks is closed by a run of the same length; one that is not closed is text.
pub fn code_spans(line: &str) -> Vec<Code<'_>> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(found) = line[at..].find('`') {
        let start = at + found;
        let width = run(&line[start..]);
        let inner = start + width;
        match closing(&line[inner..], width) {
            Some(length) => {
                let end = inner + length + width;
                spans.push(Code {
                    start,
                    end,
                    text: line[inner..inner + length].trim(),
                });
                at = end;
            }
            None => at = inner,
        }
    }
    spans
}

fn run(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b'`').count()
}

fn closing(text: &str, width: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let found_width = run(&text[start..]);
        if found_width == width {
            return Some(start);
        }
        at = start + found_width;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_are_found_by_the_width_of_their_marks() {
        let check = |line: &str, expected: &[&str]| {
            let found: Vec<&str> = code_spans(line).iter().map(|code| code.text).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("a `b` c `d e`", &["b", "d e"]);
        check("``call `NAME` `` then `x`", &["call `NAME`", "x"]);
        check("one ` alone", &[]);
        check("`` ` `` and `y`", &["`", "y"]);
    }
}
