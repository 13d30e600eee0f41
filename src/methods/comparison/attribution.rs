//! From which clause a thing follows, if from any.
//!
//! Names are looked up: a flag follows from the clauses that write it. Errors, checks, handlers and limits are asked
//! about: the question is the lines around the thing with the function that they stand in, and clauses answer it by
//! BM25, together with what all clauses of their feature say. The certainty is the evidence for the best clause brought
//! to 0 to 1; it tells what the document speaks of from what it does not. It is a proposal, and a reviewer decides.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::partition::Group;
use super::search::Index;
use super::source::{Fact, Unit};
use super::tokens::{Bag, Words};
use super::written::{home, written};
use crate::domain::clause::{Clause, ClauseId};
use crate::domain::difference::FactKind;
use crate::domain::document::Document;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A certainty below this means: not derivable.
    pub least_score: f64,
    /// A function serves a clause from this certainty on.
    pub least_serving: f64,
    /// The evidence of a certainty of one half.
    pub half_evidence: f64,
    /// What all clauses of a feature say counts for this part of what one clause says.
    pub feature: f64,
    pub question: QuestionWeights,
    pub clause: ClauseWeights,
}

/// How much a token weighs by where the source says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionWeights {
    /// Messages, conditions and names of the thing itself, with what is said beside it.
    pub own: f64,
    /// Lines around it.
    pub near: f64,
    /// The name of the function, and that of its class.
    pub function: f64,
    pub class: f64,
    /// What the function says about itself.
    pub about: f64,
    /// All lines of the function.
    pub body: f64,
    /// The file and its folders.
    pub file: f64,
    /// The names of the functions that call it.
    pub callers: f64,
}

/// How much a token weighs by where a clause says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClauseWeights {
    pub id: f64,
    pub syntax: f64,
    pub meaning: f64,
    pub behaviour: f64,
    /// By how much a long clause counts for less, 0 (not at all) to 1 (by its length): it shares more by chance.
    pub length: f64,
}

/// The clauses of a document, ready to be asked.
pub struct Clauses<'d> {
    clauses: Vec<&'d Clause>,
    /// The feature of each clause, as a position among the features.
    feature_of: Vec<usize>,
    features: Vec<String>,
    of_clauses: Index,
    of_features: Index,
    words: &'d Words<'d>,
    settings: &'d Settings,
}

/// A clause with its certainty, 0 to 1.
pub type Scored = (usize, f64);

/// So many clauses are ranked; readers are shown the first few.
const N_RANKED: usize = 10;
/// Lines before and after a thing that belong to the question.
const N_NEAR: usize = 4;
/// A token of the question that weighs this much counts for half of what it can.
const HALF_WEIGHT: f64 = 3.0;

impl<'d> Clauses<'d> {
    pub fn of(document: &'d Document, words: &'d Words<'d>, settings: &'d Settings) -> Self {
        let clauses: Vec<&Clause> = document.clauses().collect();
        let names: Vec<String> = clauses
            .iter()
            .map(|clause| feature_of(&clause.id))
            .collect();
        let features: BTreeSet<&String> = names.iter().collect();
        let features: Vec<String> = features.into_iter().cloned().collect();
        let feature_of: Vec<usize> = names
            .iter()
            .map(|name| features.partition_point(|feature| feature < name))
            .collect();
        let mut of_features = vec![Bag::new(); features.len()];
        let mut of_clauses = Vec::new();
        for (clause, feature) in clauses.iter().zip(&feature_of) {
            let bag = bag_of(clause, words, &settings.clause);
            for (token, weight) in &bag {
                *of_features[*feature].entry(token.clone()).or_default() += weight;
            }
            of_clauses.push(bag);
        }
        Self {
            clauses,
            feature_of,
            features,
            of_clauses: Index::of(&of_clauses, settings.clause.length),
            of_features: Index::of(&of_features, settings.clause.length),
            words,
            settings,
        }
    }

    pub fn id(&self, clause: usize) -> &ClauseId {
        &self.clauses[clause].id
    }

    /// How much a token says: the rarer in the document, the more.
    pub fn rarity(&self, token: &str) -> f64 {
        self.of_clauses.rarity(token)
    }

    /// The question that a function asks by itself; that of each thing in it begins with this.
    pub fn question(&self, unit: &Unit, callers: &[&str]) -> Bag {
        let how = &self.settings.question;
        let (class, function) = match unit.name.rsplit_once('.') {
            Some((class, function)) => (class, function),
            None => ("", unit.name.as_str()),
        };
        let mut question = Bag::new();
        for (text, weight) in [
            (function, how.function),
            (class, how.class),
            (unit.about.as_str(), how.about),
            (unit.body().as_str(), how.body),
            (file_words(unit).as_str(), how.file),
            (callers.join(" ").as_str(), how.callers),
        ] {
            self.words.count(&mut question, text, weight);
        }
        question
    }

    /// The clauses that the thing may follow from, the best first; [`Self::is_derivable`] says whether it does. `key` is
    /// the document's name of a named thing, `question` that of its function.
    pub fn of_fact(
        &self,
        fact: &Fact,
        key: &str,
        unit: &Unit,
        question: &Bag,
        groups: &[Group],
    ) -> Vec<Scored> {
        if fact.kind.is_named() {
            return self.writing(fact, key, groups);
        }
        let how = &self.settings.question;
        let mut question = question.clone();
        let own = format!("{} {}", fact.key, fact.around);
        self.words.count(&mut question, &own, how.own);
        let near = unit.near(fact.line, N_NEAR);
        self.words.count(&mut question, &near, how.near);
        self.best(&question, groups)
    }

    /// Whether the evidence for the best of these clauses is enough.
    pub fn is_derivable(&self, kind: FactKind, clauses: &[Scored]) -> bool {
        let least = if kind.is_named() {
            0.0
        } else {
            self.settings.least_score
        };
        clauses.first().is_some_and(|(_, score)| *score >= least)
    }

    /// The clauses that a function serves as a whole, the best first.
    pub fn of_unit(&self, question: &Bag, groups: &[Group]) -> Vec<Scored> {
        let mut clauses = self.best(question, groups);
        if clauses
            .first()
            .is_some_and(|(_, score)| *score < self.settings.least_serving)
        {
            clauses.clear();
        }
        clauses
    }

    /// Which clauses a thing of these groups may follow from: a person's groups decide, also that it is outside of the
    /// document.
    fn may_answer<'g>(&'g self, groups: &'g [Group]) -> impl Fn(usize) -> bool + 'g {
        let of_person = groups.iter().filter(|group| group.is_of_person);
        let said: Vec<&str> = of_person.map(|group| group.name.as_str()).collect();
        move |clause| {
            said.is_empty() || said.contains(&self.features[self.feature_of[clause]].as_str())
        }
    }

    fn best(&self, question: &Bag, groups: &[Group]) -> Vec<Scored> {
        let may_answer = self.may_answer(groups);
        let saturated: Bag = question
            .iter()
            .map(|(token, weight)| {
                let part = weight / (weight + HALF_WEIGHT);
                (token.clone(), part * (1.0 + HALF_WEIGHT))
            })
            .collect();
        let of_clauses = self.of_clauses.scores(&saturated);
        let of_features = self.of_features.scores(&saturated);
        let most = |scores: &[f64]| scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let (most_clause, most_feature) = (most(&of_clauses), most(&of_features));
        let mut ranked: Vec<(usize, f64)> = (0..self.clauses.len())
            .filter(|clause| of_clauses[*clause] > 0.0 && may_answer(*clause))
            .map(|clause| {
                let of_feature = of_features[self.feature_of[clause]] / most_feature;
                let of_clause = of_clauses[clause] / most_clause;
                (clause, of_clause + self.settings.feature * of_feature)
            })
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.truncate(N_RANKED);
        let Some(&(best, most)) = ranked.first() else {
            return Vec::new();
        };
        let evidence = of_clauses[best];
        let certainty = evidence / (evidence + self.settings.half_evidence);
        ranked
            .into_iter()
            .map(|(clause, both)| (clause, certainty * both / most))
            .collect()
    }

    /// The clauses that write a name; among equals one of the chapter that is about such things, then the one whose
    /// id speaks most of it, then the first of the document.
    fn writing(&self, fact: &Fact, key: &str, groups: &[Group]) -> Vec<Scored> {
        let may_answer = self.may_answer(groups);
        let about: BTreeSet<String> = self.words.bag(key).into_keys().collect();
        let mut all: Vec<(f64, (bool, usize), usize)> = Vec::new();
        for (idx, clause) in self.clauses.iter().enumerate() {
            let score = written(clause, fact.kind, key);
            if score > 0.0 && may_answer(idx) {
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

/// `chapter.feature` of a clause.
pub fn feature_of(id: &ClauseId) -> String {
    let mut parts = id.as_str().split('.');
    format!(
        "{}.{}",
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default()
    )
}

/// The tokens of a clause with their weights: how often each part says them, up to three times.
fn bag_of(clause: &Clause, words: &Words<'_>, weights: &ClauseWeights) -> Bag {
    const MOST: f64 = 3.0;
    let id = clause.id.as_str().replace('.', " ");
    let mut bag = Bag::new();
    for (text, weight) in [
        (&id, weights.id),
        (&clause.syntax, weights.syntax),
        (&clause.meaning, weights.meaning),
        (&clause.behaviour, weights.behaviour),
    ] {
        for (token, (n, sort)) in words.counted(text) {
            *bag.entry(token).or_default() += sort * weight * (n as f64).min(MOST);
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
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::domain::difference::OUTSIDE;
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
            least_score: 0.25,
            least_serving: 0.1,
            half_evidence: 10.0,
            feature: 0.2,
            question: QuestionWeights {
                own: 1.0,
                near: 0.0,
                function: 0.5,
                class: 0.3,
                about: 0.3,
                body: 0.3,
                file: 0.3,
                callers: 0.5,
            },
            clause: ClauseWeights {
                id: 1.0,
                syntax: 1.0,
                meaning: 1.0,
                behaviour: 0.8,
                length: 0.0,
            },
        };
        let document = document();
        let clauses = Clauses::of(&document, &words, &settings);
        let group = |name: &str, is_of_person: bool| Group {
            name: name.to_owned(),
            score: 1.0,
            because: Vec::new(),
            is_of_person,
        };
        let groups = [group("tools.read", false)];
        let check = |kind, key: &str, definition: &str, expected: Option<&str>| {
            let fact = Fact::new(kind, key, key, 1);
            let unit = Unit::new(Path::new("a.py"), definition, 1);
            let question = clauses.question(&unit, &[]);
            let found = clauses.of_fact(&fact, key, &unit, &question, &groups);
            let found = found.first().filter(|_| clauses.is_derivable(kind, &found));
            let best = found.map(|(idx, _)| clauses.id(*idx).as_str());
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
        check(Error, "the socket handshake was torn", "connect", None);
        check(
            Limit,
            "COMMAND_TIMEOUT 120",
            "Shell",
            Some("tools.bash.timeout"),
        );
        check(Check, "default limit > 2000", "", Some("tools.read.range"));
        // A person said where it belongs.
        let unit = Unit::new(Path::new("a.py"), "ReadFile", 1);
        let features = |kind, key: &str, groups: &[Group]| -> BTreeSet<String> {
            let fact = Fact::new(kind, key, "", 1);
            let question = clauses.question(&unit, &[]);
            let found = clauses.of_fact(&fact, key, &unit, &question, groups);
            let ids = found.iter().map(|(idx, _)| clauses.id(*idx));
            ids.map(feature_of).collect()
        };
        for (kind, key) in [(Error, "{} is a binary file"), (Parameter, "read.offset")] {
            let all = features(kind, key, &groups);
            assert!(all.contains("tools.read"), "{key}: {all:?}");
            let of_person = features(kind, key, &[group("tools.bash", true)]);
            assert!(!of_person.contains("tools.read"), "{key}: {of_person:?}");
            let outside = features(kind, key, &[group(OUTSIDE, true)]);
            assert!(outside.is_empty(), "{key}: {outside:?}");
        }
    }
}
