//! Text of strangers on a page: everything passes [`visible`] and maud's escaping, nothing is ever taken for markup.
//! Words that spoke for or against an issue are marked.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::domain::visible::visible;
use crate::methods::text::markdown::Stretch;
use crate::methods::text::words;

/// Terms to mark.
#[derive(Debug, Default)]
pub struct Marks {
    pub speaks_for: BTreeSet<String>,
    pub against: BTreeSet<String>,
}

/// Lines of a form that are shown unfolded: mostly a heading.
const N_FORM_LINES: usize = 2;
/// Lines of a fenced block that are shown unfolded.
const N_LINES: usize = 12;

pub fn body(stretches: &[(Stretch, String)], marks: &Marks) -> Markup {
    html! {
        @if stretches.is_empty() { p.dim { "The body is empty." } }
        @for (stretch, text) in stretches {
            @match stretch {
                Stretch::Prose => div.prose { (marked(text.trim(), marks)) },
                Stretch::Form if text.trim().lines().count() <= N_FORM_LINES => p.form { (visible(text.trim())) },
                Stretch::Form => details.form { summary { "form, " (n_lines(text)) } pre { (visible(text.trim_end())) } },
                Stretch::Code if text.lines().count() > N_LINES => {
                    details.code { summary { "block, " (n_lines(text)) } pre tabindex="0" { (visible(text.trim_end())) } }
                }
                Stretch::Code => pre tabindex="0" { (visible(text.trim_end())) },
            }
        }
    }
}

fn n_lines(text: &str) -> String {
    match text.trim_end().lines().count() {
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    }
}

pub fn marked(text: &str, marks: &Marks) -> Markup {
    let text = visible(text);
    html! {
        @for (piece, mark) in pieces(&text, marks) {
            @match mark {
                None => (piece),
                Some(true) => mark.for { (piece) },
                Some(false) => mark.against { (piece) },
            }
        }
    }
}

/// The text in pieces, with what each word says: true for, false against.
fn pieces<'a>(text: &'a str, marks: &Marks) -> Vec<(&'a str, Option<bool>)> {
    let mut pieces: Vec<(&str, Option<bool>)> = Vec::new();
    let mut plain = 0;
    let mut rest = 0;
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    while let Some(begin) = text[rest..].find(is_part).map(|at| rest + at) {
        let end = text[begin..]
            .find(|c| !is_part(c))
            .map_or(text.len(), |at| begin + at);
        let term = words::term(&text[begin..end]);
        let mark = if marks.against.contains(&term) {
            Some(false)
        } else if marks.speaks_for.contains(&term) {
            Some(true)
        } else {
            None
        };
        if mark.is_some() {
            pieces.push((&text[plain..begin], None));
            pieces.push((&text[begin..end], mark));
            plain = end;
        }
        rest = end;
    }
    pieces.push((&text[plain..], None));
    pieces.retain(|(piece, _)| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_long_blocks_are_folded_and_nothing_else_is() {
        let lines = |n: usize| "a <b> line\n".repeat(n);
        let check = |stretch: Stretch, n: usize, folded: Option<&str>| {
            let told = body(&[(stretch, lines(n))], &Marks::default()).into_string();
            let summary = folded.map(|text| format!("<summary>{text}</summary>"));
            match summary {
                Some(summary) => assert!(told.contains(&summary), "{told}"),
                None => assert!(!told.contains("<details"), "{told}"),
            }
            assert_eq!(told.matches("a &lt;b&gt; line").count(), n, "{told}");
        };
        check(Stretch::Form, N_FORM_LINES, None);
        check(Stretch::Form, N_FORM_LINES + 1, Some("form, 3 lines"));
        check(Stretch::Code, N_LINES, None);
        check(Stretch::Code, N_LINES + 1, Some("block, 13 lines"));
        check(Stretch::Prose, 100, None);
    }

    #[test]
    fn words_are_marked_in_every_form_and_nothing_is_lost() {
        let marks = Marks {
            speaks_for: BTreeSet::from([words::term("denied")]),
            against: BTreeSet::from([words::term("invoice")]),
        };
        let text = "Deny <b>rules</b>: it is DENIED, not the invoices";
        let found = pieces(text, &marks);
        let whole: String = found.iter().map(|(piece, _)| *piece).collect();
        assert_eq!(whole, text);
        let marked: Vec<_> = found.iter().filter(|(_, mark)| mark.is_some()).collect();
        assert_eq!(
            marked,
            [
                &("Deny", Some(true)),
                &("DENIED", Some(true)),
                &("invoices", Some(false))
            ]
        );
        let html = super::marked(text, &marks).into_string();
        assert!(html.contains("&lt;b&gt;rules&lt;/b&gt;"), "{html}");
    }
}
