//! From which clause a difference follows, if from any.
//!
//! Names are looked up: a flag follows from the clauses that write it. Errors, caught exceptions and limits are held
//! against the words of each clause; the score is the share of the difference's words, weighed by how rare they are
//! in the document, that the clause has. It is a proposal, and a reviewer decides.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::differences::Found;
use super::terms::terms;
use crate::domain::clause::{Clause, ClauseId};
use crate::domain::difference::{FactKind, Trace};
use crate::domain::document::Document;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derivation {
    /// A score below this means: not derivable.
    pub least_score: f64,
    /// So many different words must be shared.
    pub least_words: usize,
    /// A clause of another module counts for this part (0 to 1).
    pub other_module: f64,
    /// Words of the surrounding definition and its file count for this part (0 to 1).
    pub context: f64,
    /// A word that only the behaviour of a clause says counts for this part (0 to 1): it is mentioned there, not what
    /// the clause is about.
    pub mention: f64,
    /// Added to the weight of all words before the share is taken, so that one or two words alone prove little.
    pub smoothing: f64,
}

/// The clauses of a document, ready to be asked.
pub struct Clauses<'d> {
    clauses: Vec<Known<'d>>,
    n_using: BTreeMap<String, usize>,
}

struct Known<'d> {
    clause: &'d Clause,
    module: String,
    /// What the clause is about: words of its id, syntax and meaning.
    about: BTreeSet<String>,
    /// All its words.
    words: BTreeSet<String>,
}

/// Words that every error has.
const OF_ERRORS: &[&str] = &["error", "exception", "fail", "fatal", "rais", "warn"];

/// A name that a clause's syntax writes, and one that only its prose writes.
const IN_SYNTAX: f64 = 1.0;
const IN_PROSE: f64 = 0.8;

impl<'d> Clauses<'d> {
    pub fn of(document: &'d Document) -> Self {
        let clauses: Vec<Known<'d>> = document
            .clauses()
            .map(|clause| {
                let words = |texts: &[&str]| texts.iter().flat_map(|text| terms(text)).collect();
                let (id, syntax) = (clause.id.as_str(), clause.syntax.as_str());
                Known {
                    clause,
                    module: module_of(&clause.id),
                    about: words(&[id, syntax, &clause.meaning]),
                    words: words(&[id, syntax, &clause.meaning, &clause.behaviour]),
                }
            })
            .collect();
        let mut n_using: BTreeMap<String, usize> = BTreeMap::new();
        for word in clauses.iter().flat_map(|known| &known.words) {
            *n_using.entry(word.clone()).or_default() += 1;
        }
        Self { clauses, n_using }
    }

    /// The clause that the difference follows from best; among equals one of the chapter that is about such things,
    /// then the one whose id speaks most of it, then the first of the document.
    pub fn trace(&self, found: &Found, how: &Derivation) -> Option<Trace> {
        let about: BTreeSet<String> = terms(&found.key).into_iter().collect();
        let mut best: Option<(f64, (bool, usize), &ClauseId)> = None;
        for known in &self.clauses {
            let score = if found.kind.is_named() {
                written(known.clause, found.kind, &found.key)
            } else {
                self.share(known, found, how)
            };
            let in_id = terms(known.clause.id.as_str())
                .iter()
                .filter(|word| about.contains(*word))
                .count();
            let fit = (home(found.kind).contains(&known.clause.id.chapter()), in_id);
            let is_better = best.is_none_or(|(most, best_fit, _)| {
                score > most || (score == most && fit > best_fit)
            });
            if score >= how.least_score && score > 0.0 && is_better {
                best = Some((score, fit, &known.clause.id));
            }
        }
        best.map(|(score, _, clause)| Trace {
            clause: clause.clone(),
            score: (score * 1000.0).round() / 1000.0,
        })
    }

    fn share(&self, known: &Known<'_>, found: &Found, how: &Derivation) -> f64 {
        let of_errors = |word: &String| OF_ERRORS.contains(&word.as_str());
        let own: BTreeSet<String> = terms(&found.text)
            .into_iter()
            .filter(|word| !of_errors(word))
            .collect();
        // What the document never says about the surroundings is the manner of implementation.
        let around: BTreeSet<String> = terms(&found.context)
            .into_iter()
            .filter(|word| {
                !own.contains(word) && !of_errors(word) && self.n_using.contains_key(word)
            })
            .collect();
        let n_own = own.intersection(&known.words).count();
        let n_around = around.intersection(&known.words).count();
        if n_own == 0 || n_own + n_around < how.least_words {
            return 0.0;
        }
        let weigh = |words: &BTreeSet<String>, only_shared: bool| -> f64 {
            words
                .iter()
                .map(|word| {
                    let part = match (only_shared, known.about.contains(word)) {
                        (false, _) | (true, true) => 1.0,
                        (true, false) if known.words.contains(word) => how.mention,
                        (true, false) => 0.0,
                    };
                    part * self.rarity(word)
                })
                .sum()
        };
        let all = how.smoothing + weigh(&own, false) + how.context * weigh(&around, false);
        let shared = weigh(&own, true) + how.context * weigh(&around, true);
        let nearness = if known.module == found.module {
            1.0
        } else if found.kind == FactKind::Handler
            || !found.text.contains(' ') && found.kind == FactKind::Error
        {
            // The name of an exception is general; what it is about is only where it is raised or caught.
            0.0
        } else {
            how.other_module
        };
        nearness * shared / all
    }

    fn rarity(&self, word: &str) -> f64 {
        let n_using = self.n_using.get(word).copied().unwrap_or(1);
        (1.0 + self.clauses.len() as f64 / n_using as f64).ln()
    }
}

/// The chapters that are about things of this kind.
fn home(kind: FactKind) -> &'static [&'static str] {
    match kind {
        FactKind::Command => &["commands", "in-session"],
        FactKind::Flag => &["flags"],
        FactKind::Tool | FactKind::Parameter => &["tools"],
        FactKind::ExitCode => &["exit-codes"],
        FactKind::Error | FactKind::Handler | FactKind::Limit => &[],
    }
}

/// `chapter.feature` of a clause.
pub fn module_of(id: &ClauseId) -> String {
    let mut parts = id.as_str().split('.');
    format!(
        "{}.{}",
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default()
    )
}

/// Whether the clause writes the name, and where.
fn written(clause: &Clause, kind: FactKind, key: &str) -> f64 {
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
        FactKind::Error | FactKind::Handler | FactKind::Limit => false,
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
    use crate::domain::difference::Side;
    use crate::domain::document::Chapter;

    fn document() -> Document {
        let chapter = |file: &str, clauses: &[(&str, &str, &str)]| {
            let text: String = clauses
                .iter()
                .map(|(id, syntax, behaviour)| {
                    format!(
                        "### {id} · ordinary\n**Syntax** {syntax}\n**Meaning** m\n**Behaviour** {behaviour}\n**Channels** exit\n\n"
                    )
                })
                .collect();
            Chapter::parse(Path::new(file), &format!("# T\n\n{text}")).expect("parses")
        };
        Document {
            chapters: vec![
                chapter(
                    "02-tools.md",
                    &[
                        ("tools.set.names", "`read`, `bash`", "All tools."),
                        ("tools.set.turns", "`--turns`", "Another chapter."),
                        (
                            "tools.read.range",
                            "`read(path, offset?, limit?)`",
                            "Zero is refused.",
                        ),
                        (
                            "tools.read.binary",
                            "none",
                            "A binary file gives an error, nothing of its content.",
                        ),
                        (
                            "tools.bash.timeout",
                            "`bash(command)`",
                            "A command is killed after its timeout; 120 seconds.",
                        ),
                    ],
                ),
                chapter(
                    "05-flags.md",
                    &[
                        (
                            "flags.limits.max-turns",
                            "`--max-turns N`",
                            "See `--timeout-s`.",
                        ),
                        ("flags.session.turns", "`--turns`", "It counts."),
                    ],
                ),
                chapter(
                    "06-in-session.md",
                    &[(
                        "in-session.compact.manual",
                        "`/compact [TEXT]`",
                        "Compacts; see ./run and bin/run.sh.",
                    )],
                ),
                chapter(
                    "10-exit-codes.md",
                    &[("exit-codes.time.limit", "124", "The time was over.")],
                ),
            ],
        }
    }

    #[test]
    fn names_are_looked_up_and_words_are_weighed() {
        let document = document();
        let clauses = Clauses::of(&document);
        let how = Derivation {
            least_score: 0.4,
            least_words: 2,
            other_module: 0.8,
            context: 0.5,
            mention: 0.9,
            smoothing: 1.0,
        };
        let check = |kind, key: &str, context: &str, expected: Option<&str>| {
            let found = Found {
                kind,
                side: Side::Missing,
                module: "tools.read".to_owned(),
                key: key.to_owned(),
                target: None,
                candidate: None,
                text: key.to_owned(),
                context: context.to_owned(),
            };
            let trace = clauses.trace(&found, &how);
            assert_eq!(
                trace.as_ref().map(|trace| trace.clause.as_str()),
                expected,
                "{key}"
            );
        };
        use FactKind::{Command, Error, ExitCode, Flag, Handler, Limit, Parameter, Tool};
        check(Flag, "--max-turns", "", Some("flags.limits.max-turns"));
        check(Flag, "--timeout-s", "", Some("flags.limits.max-turns"));
        check(Flag, "--turns", "", Some("flags.session.turns"));
        check(Flag, "--max", "", None);
        check(Command, "compact", "", Some("in-session.compact.manual"));
        check(Command, "summary", "", None);
        check(Command, "run", "", None);
        check(Tool, "read", "", Some("tools.read.range"));
        check(Tool, "think", "", None);
        check(Parameter, "read.offset", "", Some("tools.read.range"));
        check(Parameter, "bash.offset", "", None);
        check(ExitCode, "124", "", Some("exit-codes.time.limit"));
        check(ExitCode, "75", "", None);
        check(
            Error,
            "{} is a binary file",
            "ReadFile",
            Some("tools.read.binary"),
        );
        check(Error, "the socket handshake was torn", "connect", None);
        check(Error, "file", "", None);
        check(
            Handler,
            "BinaryError",
            "read.content",
            Some("tools.read.binary"),
        );
        check(Handler, "BinaryError", "connect", None);
        check(Error, "TimeoutError", "bash.command", None);
        check(Handler, "TimeoutError", "bash.command", None);
        check(
            Limit,
            "COMMAND_TIMEOUT",
            "Shell",
            Some("tools.bash.timeout"),
        );
    }

    #[test]
    fn a_clause_of_the_same_module_is_nearer() {
        let document = document();
        let clauses = Clauses::of(&document);
        let how = Derivation {
            least_score: 0.0,
            least_words: 1,
            other_module: 0.5,
            context: 0.0,
            mention: 0.5,
            smoothing: 0.0,
        };
        let found = |module: &str| Found {
            kind: FactKind::Error,
            side: Side::Missing,
            module: module.to_owned(),
            key: "binary content".to_owned(),
            target: None,
            candidate: None,
            text: "binary content".to_owned(),
            context: String::new(),
        };
        let score = |module: &str| clauses.trace(&found(module), &how).expect("traced").score;
        assert_eq!(score("tools.read"), 0.75);
        assert_eq!(score("tools.bash"), 0.375);
    }
}
