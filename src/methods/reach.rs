//! What of the reference's code a case runs. Where none of a mutant's edits ran, the mutant fares as the reference does,
//! and need not be run on that case.
//!
//! Coverage by line as a filter of mutants is that of PIT (Coles et al., ISSTA 2016).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::domain::candidate::Edit;

/// Lines of each file, from 1, that ran, and those beside them that do not tell whether they did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach(BTreeMap<String, Vec<RangeInclusive<usize>>>);

/// The lines of a file, from 1, that an edit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedLines {
    pub file: String,
    pub lines: RangeInclusive<usize>,
}

impl Reach {
    /// Reads lines of the form `FILE FIRST-LAST …`. None when one has another form, as of a process that was killed, or
    /// when there is none: then nothing is known.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reach: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for line in text.lines() {
            let (file, spans) = line.split_once(' ')?;
            let spans = spans.split(' ').map(|span| {
                let (first, last) = span.split_once('-')?;
                Some(first.parse().ok()?..=last.parse().ok()?)
            });
            let spans: Option<Vec<_>> = spans.collect();
            reach.entry(file.to_owned()).or_default().extend(spans?);
        }
        (!reach.is_empty()).then_some(Self(reach))
    }

    pub fn touches(&self, edited: &EditedLines) -> bool {
        let spans = self.0.get(&edited.file).into_iter().flatten();
        spans
            .into_iter()
            .any(|span| span.start() <= edited.lines.end() && edited.lines.start() <= span.end())
    }
}

/// What an edit changes in the text of its file: the lines of `find` without those that `replace` begins and ends with
/// too. Of lines that are only put in, the one before and the one after. None when `find` is not there.
pub fn edited_lines(text: &str, edit: &Edit) -> Option<EditedLines> {
    let offset = text.find(&edit.find)?;
    let first = 1 + text[..offset].matches('\n').count();
    let find: Vec<&str> = edit.find.lines().collect();
    let replace: Vec<&str> = edit.replace.lines().collect();
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let before = same(&mut find.iter().zip(&replace));
    let after = same(
        &mut find[before..]
            .iter()
            .rev()
            .zip(replace[before..].iter().rev()),
    );
    let start = first + before;
    let end = first + find.len() - after;
    let lines = match start < end {
        true => start..=end - 1,
        false => start.saturating_sub(1)..=start,
    };
    Some(EditedLines {
        file: edit.file.clone(),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "def one():\n    a\n    b\n\ndef two():\n    c\n";

    fn edited(find: &str, replace: &str) -> RangeInclusive<usize> {
        let edit = Edit {
            file: "m.py".into(),
            find: find.into(),
            replace: replace.into(),
        };
        edited_lines(TEXT, &edit).expect("is there").lines
    }

    #[test]
    fn an_edit_is_where_the_texts_differ() {
        assert_eq!(edited("    a\n", "    x\n"), 2..=2);
        assert_eq!(edited("    a\n    b\n", "    a\n    x\n    y\n"), 3..=3);
        assert_eq!(edited("    a\n    b\n", "    b\n"), 2..=2, "taken out");
        assert_eq!(edited("a\n    b", "a\n    x\n    b"), 2..=3, "put in");
        assert_eq!(edited("def one", "def none"), 1..=1);
        let nowhere = Edit {
            file: "m.py".into(),
            find: "z".into(),
            replace: String::new(),
        };
        assert_eq!(edited_lines(TEXT, &nowhere), None);
    }

    #[test]
    fn an_edit_is_reached_when_its_function_ran() {
        let reach = Reach::parse("m.py 1-1 4-5\nm.py 5-6\n").expect("reads");
        let at = |file: &str, lines| EditedLines {
            file: file.into(),
            lines,
        };
        assert!(!reach.touches(&at("m.py", 2..=3)));
        assert!(reach.touches(&at("m.py", 3..=4)));
        assert!(reach.touches(&at("m.py", 6..=9)));
        assert!(!reach.touches(&at("n.py", 1..=1)));
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        for text in ["", "m.py\n", "m.py 1-\n", "m.py 1-2 x\n"] {
            assert_eq!(Reach::parse(text), None, "{text:?}");
        }
    }
}
