//! Whether a clause writes a name that users or the model write.

use crate::domain::clause::Clause;
use crate::domain::difference::FactKind;

/// A name that a clause's syntax writes, and one that only its prose writes.
const IN_SYNTAX: f64 = 1.0;
const IN_PROSE: f64 = 0.8;

/// The chapters that are about things of this kind.
pub(super) fn home(kind: FactKind) -> &'static [&'static str] {
    match kind {
        FactKind::Command => &["commands", "in-session"],
        FactKind::Flag => &["flags"],
        FactKind::Tool | FactKind::Parameter => &["tools"],
        FactKind::ExitCode => &["exit-codes"],
        FactKind::Error
        | FactKind::Check
        | FactKind::Handler
        | FactKind::Limit
        | FactKind::Effect => &[],
    }
}

/// How surely the clause writes the name: 0 to 1.
pub(super) fn written(clause: &Clause, kind: FactKind, key: &str) -> f64 {
    let chapter = clause.id.chapter();
    let in_text = |text: &str| match kind {
        FactKind::Flag => flags(text).any(|flag| flag == key),
        FactKind::Command => {
            let name = key.replace('-', " ");
            [
                format!("/{key}"),
                format!("harness {name}"),
                format!("harness {key}"),
            ]
            .iter()
            .any(|written| has_word(text, written))
        }
        FactKind::Tool => {
            chapter == "tools"
                && (text.contains(&format!("{key}(")) || text.contains(&format!("`{key}`")))
        }
        FactKind::Parameter => {
            let (tool, parameter) = key.rsplit_once('.').unwrap_or(("", key));
            let signature = format!("{tool}(");
            text.match_indices(&signature).any(|(at, _)| {
                let inside = &text[at + signature.len()..];
                let inside = inside.split(')').next().unwrap_or(inside);
                has_word(inside, parameter)
            })
        }
        FactKind::ExitCode => chapter == "exit-codes" && has_word(text, key),
        FactKind::Error
        | FactKind::Check
        | FactKind::Handler
        | FactKind::Limit
        | FactKind::Effect => false,
    };
    if in_text(&clause.syntax) {
        IN_SYNTAX
    } else if kind != FactKind::ExitCode && (in_text(&clause.meaning) || in_text(&clause.behaviour))
    {
        IN_PROSE
    } else {
        0.0
    }
}

/// The flags that a text writes.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
        .filter(|word| word.starts_with("--"))
}

/// Whether the text has the word, not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let joins = |letter: char| letter.is_alphanumeric() || "-_/".contains(letter);
    text.match_indices(word).any(|(at, _)| {
        let mut after = text[at + word.len()..].chars();
        let goes_on = match after.next() {
            // The end of a sentence, or that of a file's name.
            Some('.') => after.next().is_some_and(char::is_alphanumeric),
            Some(letter) => joins(letter),
            None => false,
        };
        !goes_on && !text[..at].ends_with(|letter| joins(letter) || letter == '.')
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::document::Chapter;

    #[test]
    fn a_name_is_found_whole_and_in_its_place() {
        let check = |id: &str, syntax: &str, kind, key: &str, expected: f64| {
            let text = format!(
                "# T\n\n### {id} · ordinary\n**Syntax** {syntax}\n**Meaning** m\n\
                 **Behaviour** Compacts; see ./run, bin/run.sh and `--timeout-s`.\n**Channels** exit\n\n"
            );
            let chapter = format!("02-{}.md", id.split('.').next().expect("a chapter"));
            let chapter = Chapter::parse(Path::new(&chapter), &text).expect("parses");
            assert_eq!(
                written(&chapter.clauses[0], kind, key),
                expected,
                "{key} in {syntax}"
            );
        };
        use FactKind::{Command, ExitCode, Flag, Parameter, Tool};
        let flag = "flags.limits.turns";
        check(flag, "`--max-turns N`", Flag, "--max-turns", IN_SYNTAX);
        check(flag, "`--max-turns N`", Flag, "--max", 0.0);
        check(flag, "`--max-turns N`", Flag, "--timeout-s", IN_PROSE);
        let command = "in-session.compact.manual";
        check(command, "`/compact [TEXT]`", Command, "compact", IN_SYNTAX);
        check(command, "`/compact [TEXT]`", Command, "run", 0.0);
        let tool = "tools.read.range";
        check(tool, "`read(path, offset?)`", Tool, "read", IN_SYNTAX);
        check(
            tool,
            "`read(path, offset?)`",
            Parameter,
            "read.offset",
            IN_SYNTAX,
        );
        check(tool, "`read(path, offset?)`", Parameter, "bash.offset", 0.0);
        let exit = "exit-codes.time.limit";
        check(exit, "124", ExitCode, "124", IN_SYNTAX);
        check(exit, "124", ExitCode, "12", 0.0);
    }
}
