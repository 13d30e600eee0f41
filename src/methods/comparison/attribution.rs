//! From which clause a thing follows, if from any.
//!
//! Names are looked up: a flag follows from the clauses that write it. Errors, checks, handlers and limits are held
//! against the tokens of each clause, rare ones raised. The score is the share of the thing's weight that the clause
//! has, lowered when little weight is shared at all: two common words prove nothing, however short the message. It is
//! a proposal, and a reviewer decides.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::partition::Group;
use super::source::{Fact, Unit};
use super::tokens::{Bag, Words, n_words};
use super::written::{home, written};
use crate::domain::clause::{Clause, ClauseId};
use crate::domain::difference::{FactKind, OUTSIDE};
use crate::domain::document::Document;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A score below this means: not derivable.
    pub least_score: f64,
    /// A function serves a clause from this score on.
    pub least_serving: f64,
    /// So many of a thing's own words must be shared, and so many with those around it. A flag counts as two.
    pub least_own: usize,
    pub least_shared: usize,
    /// A score is halved when this much weight is shared.
    pub half_weight: f64,
    /// A clause of another feature of the chapter, and one of another chapter, count for these parts (0 to 1).
    pub other_feature: f64,
    pub other_chapter: f64,
    /// Conditions, calls and comments around a thing count for this part (0 to 1).
    pub around: f64,
    /// The definition that it stands in, its docstring and its file count for this part (0 to 1).
    pub definition: f64,
    /// What the document never says counts for this part (0 to 1).
    pub foreign: f64,
    pub clause: ClauseWeights,
}

/// How much a token weighs by where a clause says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClauseWeights {
    pub id: f64,
    pub syntax: f64,
    pub meaning: f64,
    pub behaviour: f64,
    /// Times this between backticks: names of tools, parameters, flags, and messages.
    pub code: f64,
    /// By how much a long clause counts for less, 0 (not at all) to 1 (by its length): it shares more by chance.
    pub length: f64,
}

/// The clauses of a document, ready to be asked.
pub struct Clauses<'d> {
    clauses: Vec<&'d Clause>,
    features: Vec<String>,
    /// Which clauses have a token, and its weight there.
    having: BTreeMap<String, Vec<(usize, f64)>>,
    words: &'d Words<'d>,
    settings: &'d Settings,
}

/// A clause with its score, 0 to 1.
pub type Scored = (usize, f64);

/// So many clauses are ranked; readers are shown the first few.
const N_RANKED: usize = 10;

impl<'d> Clauses<'d> {
    pub fn of(document: &'d Document, words: &'d Words<'d>, settings: &'d Settings) -> Self {
        let clauses: Vec<&Clause> = document.clauses().collect();
        let bags: Vec<Bag> = clauses
            .iter()
            .map(|clause| bag_of(clause, words, &settings.clause))
            .collect();
        let mean = bags.iter().map(Bag::len).sum::<usize>() as f64 / bags.len().max(1) as f64;
        let mut having: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
        for (idx, bag) in bags.into_iter().enumerate() {
            let length = settings.clause.length;
            let part = 1.0 / (1.0 - length + length * bag.len() as f64 / mean);
            for (token, weight) in bag {
                having.entry(token).or_default().push((idx, weight * part));
            }
        }
        Self {
            features: clauses
                .iter()
                .map(|clause| feature_of(&clause.id))
                .collect(),
            clauses,
            having,
            words,
            settings,
        }
    }

    pub fn id(&self, clause: usize) -> &ClauseId {
        &self.clauses[clause].id
    }

    /// How much a token says: the rarer in the document, the more.
    pub fn rarity(&self, token: &str) -> f64 {
        let n_having = self.having.get(token).map_or(1, Vec::len);
        (1.0 + self.clauses.len() as f64 / n_having as f64).ln()
    }

    /// The clauses that the thing follows from, the best first; none when it is not derivable. `key` is the
    /// document's name of a named thing.
    pub fn of_fact(&self, fact: &Fact, key: &str, unit: &Unit, groups: &[Group]) -> Vec<Scored> {
        if fact.kind.is_named() {
            return self.writing(fact, key);
        }
        // What a person placed outside the document follows from no clause.
        if groups.iter().any(|group| group.name == OUTSIDE) {
            return Vec::new();
        }
        let how = self.settings;
        let mut own = self.words.bag(&fact.key);
        let mut around = Bag::new();
        match fact.kind {
            // The name of an exception is general; what is tried and said is its matter.
            FactKind::Handler => self.words.add(&mut own, &fact.around, 1.0),
            // The number of a limit is what differs.
            FactKind::Limit => self.words.add(&mut around, &fact.around, how.around),
            _ => {
                let value = fact.value.as_deref().unwrap_or_default();
                self.words.add(&mut own, value, 1.0);
                self.words.add(&mut around, &fact.around, how.around);
            }
        }
        own.retain(|token, _| !OF_ERRORS.contains(&token.as_str()));
        for text in [&unit.name, &unit.about, &file_words(unit)] {
            self.words.add(&mut around, text, how.definition);
        }
        around.retain(|token, _| !own.contains_key(token) && !OF_ERRORS.contains(&token.as_str()));
        // A condition without a message, or an exception, says less of what it is for.
        let is_bare = matches!(fact.kind, FactKind::Check | FactKind::Handler);
        let least_own = how.least_own + usize::from(is_bare);
        self.best(&own, &around, groups, (how.least_score, least_own))
    }

    /// The clauses that a function serves as a whole, the best first.
    pub fn of_unit(&self, unit: &Unit, groups: &[Group]) -> Vec<Scored> {
        let mut own = self.words.bag(&unit.name);
        self.words.add(&mut own, &unit.about, 1.0);
        for fact in unit.facts.iter().filter(|fact| !fact.is_weak) {
            self.words.add(&mut own, &fact.key, self.settings.around);
        }
        let mut around = Bag::new();
        self.words
            .add(&mut around, &file_words(unit), self.settings.definition);
        for call in &unit.calls {
            self.words.add(&mut around, call, self.settings.definition);
        }
        around.retain(|token, _| !own.contains_key(token));
        if groups.iter().any(|group| group.name == OUTSIDE) {
            return Vec::new();
        }
        let how = self.settings;
        self.best(&own, &around, groups, (how.least_serving, how.least_own))
    }

    /// `least`: the score, and the number of own words that are shared.
    fn best(
        &self,
        own: &Bag,
        around: &Bag,
        groups: &[Group],
        (least, least_own): (f64, usize),
    ) -> Vec<Scored> {
        let how = self.settings;
        let mut total = 0.0;
        let mut shared: BTreeMap<usize, Shared> = BTreeMap::new();
        for (bag, is_own) in [(own, true), (around, false)] {
            for (token, weight) in bag {
                let weight = weight * self.rarity(token);
                let Some(having) = self.having.get(token) else {
                    if is_own {
                        total += how.foreign * weight;
                    }
                    continue;
                };
                total += weight;
                for (clause, part) in having {
                    let shared = shared.entry(*clause).or_default();
                    shared.weight += weight * part;
                    let n_words = n_words(token);
                    shared.n_all += n_words;
                    if is_own {
                        shared.n_own += n_words;
                    }
                }
            }
        }
        let mut scored: Vec<Scored> = shared
            .into_iter()
            .filter(|(_, shared)| shared.n_own >= least_own && shared.n_all >= how.least_shared)
            .map(|(clause, shared)| {
                let share = (shared.weight / total).min(1.0);
                let enough = shared.weight / (shared.weight + how.half_weight);
                (clause, share * enough * self.nearness(clause, groups))
            })
            .filter(|(_, score)| *score >= least)
            .collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(N_RANKED);
        scored
    }

    fn nearness(&self, clause: usize, groups: &[Group]) -> f64 {
        let chapter = self.clauses[clause].id.chapter();
        let is_of_chapter =
            |group: &Group| group.name.split('.').next().is_some_and(|it| it == chapter);
        if groups
            .iter()
            .any(|group| group.name == self.features[clause])
        {
            1.0
        } else if groups.iter().any(is_of_chapter) {
            self.settings.other_feature
        } else {
            self.settings.other_chapter
        }
    }

    /// The clauses that write a name; among equals one of the chapter that is about such things, then the one whose
    /// id speaks most of it, then the first of the document.
    fn writing(&self, fact: &Fact, key: &str) -> Vec<Scored> {
        let about: BTreeSet<String> = self.words.bag(key).into_keys().collect();
        let mut all: Vec<(f64, (bool, usize), usize)> = Vec::new();
        for (idx, clause) in self.clauses.iter().enumerate() {
            let score = written(clause, fact.kind, key);
            if score > 0.0 {
                let in_id = self.words.bag(clause.id.as_str());
                let in_id = in_id.keys().filter(|word| about.contains(*word)).count();
                let is_home = home(fact.kind).contains(&clause.id.chapter());
                all.push((score, (is_home, in_id), idx));
            }
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        all.truncate(N_RANKED);
        all.into_iter()
            .map(|(score, _, idx)| (idx, score))
            .collect()
    }
}

#[derive(Default)]
struct Shared {
    weight: f64,
    n_own: usize,
    n_all: usize,
}

/// Words that every error has.
const OF_ERRORS: &[&str] = &["error", "exception", "fail", "fatal", "rais", "warn"];

/// `chapter.feature` of a clause.
pub fn feature_of(id: &ClauseId) -> String {
    let mut parts = id.as_str().split('.');
    format!(
        "{}.{}",
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default()
    )
}

/// The tokens of a clause, each with its greatest weight.
pub(super) fn bag_of(clause: &Clause, words: &Words<'_>, weights: &ClauseWeights) -> Bag {
    let mut bag = Bag::new();
    words.add(&mut bag, &clause.id.as_str().replace('.', " "), weights.id);
    for (text, weight) in [
        (&clause.syntax, weights.syntax),
        (&clause.meaning, weights.meaning),
        (&clause.behaviour, weights.behaviour),
    ] {
        for (idx, part) in text.split('`').enumerate() {
            let is_code = idx % 2 == 1;
            let weight = if is_code {
                weight * weights.code
            } else {
                weight
            };
            words.add(&mut bag, part, weight);
        }
    }
    bag
}

/// The file and its folder.
fn file_words(unit: &Unit) -> String {
    let path = unit.file.with_extension("");
    let parts: Vec<String> = path
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    parts[parts.len().saturating_sub(2)..].join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::document::Chapter;
    use crate::methods::comparison::tokens::Weights;

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
                        (
                            "tools.read.range",
                            "`read(path, offset?, limit?)`",
                            "Zero is refused; the default of `limit` is 2000.",
                        ),
                        (
                            "tools.read.binary",
                            "none",
                            "A binary file gives an error, nothing of its content.",
                        ),
                        (
                            "tools.bash.timeout",
                            "`bash(command)`",
                            "A command is killed after its time limit; 120 seconds.",
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
            ],
        }
    }

    #[test]
    fn weighted_evidence_finds_the_clause_or_none() {
        let weights = Weights {
            word: 1.0,
            identifier: 2.0,
            number: 2.0,
            flag: 3.0,
        };
        let same = BTreeMap::from([("time limit".to_owned(), vec!["timeout".to_owned()])]);
        let words = Words::new(&same, &weights);
        let settings = Settings {
            least_score: 0.15,
            least_serving: 0.1,
            least_own: 2,
            least_shared: 2,
            half_weight: 4.0,
            other_feature: 0.8,
            other_chapter: 0.6,
            around: 0.6,
            definition: 0.3,
            foreign: 0.3,
            clause: ClauseWeights {
                id: 1.0,
                syntax: 1.0,
                meaning: 1.0,
                behaviour: 0.8,
                code: 1.2,
                length: 0.0,
            },
        };
        let document = document();
        let clauses = Clauses::of(&document, &words, &settings);
        let groups = [Group {
            name: "tools.read".to_owned(),
            score: 1.0,
            because: Vec::new(),
        }];
        let check = |kind, key: &str, definition: &str, expected: Option<&str>| {
            let fact = Fact::new(kind, key, key, 1);
            let unit = Unit::new(Path::new("a.py"), definition, 1);
            let found = clauses.of_fact(&fact, key, &unit, &groups);
            let best = found.first().map(|(idx, _)| clauses.id(*idx).as_str());
            assert_eq!(best, expected, "{key}");
        };
        use FactKind::{Check, Error, Flag, Limit, Parameter};
        check(Flag, "--max-turns", "", Some("flags.limits.max-turns"));
        check(Flag, "--timeout-s", "", Some("flags.limits.max-turns"));
        check(Flag, "--max", "", None);
        check(Parameter, "read.offset", "", Some("tools.read.range"));
        check(
            Error,
            "{} is a binary file",
            "ReadFile",
            Some("tools.read.binary"),
        );
        // A single word, a rare one too, is no evidence.
        check(Error, "binary", "", None);
        check(Error, "the socket handshake was torn", "connect", None);
        check(
            Limit,
            "COMMAND_TIMEOUT 120",
            "Shell",
            Some("tools.bash.timeout"),
        );
        check(Check, "default limit > 2000", "", Some("tools.read.range"));
        // A condition without a message has to say more.
        check(Check, "limit > 2000", "", None);
    }
}
