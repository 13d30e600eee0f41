//! The modules of a source tree, by the features of the document.
//!
//! Each `chapter.feature` is a module. A feature has a vector of words from its clauses, a unit of source one from
//! its names, the names of what it handles, and its texts; rare words weigh more. A unit belongs to the feature
//! whose vector points most nearly into the same direction (cosine), else to that of its file, else to none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::aliases::Aliases;
use super::python::Unit;
use super::terms::terms;
use crate::domain::difference::{FactKind, OUTSIDE};
use crate::domain::document::Document;

/// How much each kind of evidence in the source weighs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Words of the file's path.
    pub file: f64,
    /// Words of the names of classes and functions.
    pub definition: f64,
    /// Commands, flags, tools and parameters, under their names in the document.
    pub name: f64,
    /// Messages of errors, and names of exceptions and limits.
    pub message: f64,
    /// Other texts.
    pub text: f64,
    /// A unit nearer than this to no feature is placed where its file is.
    pub least: f64,
}

/// The features of a document, ready to place units.
#[derive(Debug)]
pub struct Features {
    vectors: BTreeMap<String, Vector>,
    /// How many features use a word.
    n_using: BTreeMap<String, usize>,
}

/// Where each unit belongs: the index of a unit → the name of its module.
pub type Placement = Vec<String>;

/// Words with their weights, of length 1.
type Vector = BTreeMap<String, f64>;

/// A feature's own name weighs more than what is written about it.
const NAME: f64 = 6.0;
const POINT: f64 = 2.0;
const SYNTAX: f64 = 2.0;
const PROSE: f64 = 1.0;

impl Features {
    pub fn of(document: &Document) -> Self {
        let mut counted: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for clause in document.clauses() {
            let parts: Vec<&str> = clause.id.as_str().split('.').collect();
            let words = counted
                .entry(format!("{}.{}", parts[0], parts[1]))
                .or_default();
            // The name counts once for the feature, not once for each of its clauses.
            if words.is_empty() {
                add(words, parts[0], POINT);
                add(words, parts[1], NAME);
            }
            add(words, parts[2], POINT);
            add(words, &clause.syntax, SYNTAX);
            add(words, &clause.meaning, PROSE);
            add(words, &clause.behaviour, PROSE);
        }
        let mut n_using: BTreeMap<String, usize> = BTreeMap::new();
        for words in counted.values() {
            for word in words.keys() {
                *n_using.entry(word.clone()).or_default() += 1;
            }
        }
        let mut features = Self {
            vectors: BTreeMap::new(),
            n_using,
        };
        features.vectors = counted
            .iter()
            .map(|(feature, words)| (feature.clone(), features.vector(words, counted.len())))
            .collect();
        features
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.vectors.keys().map(String::as_str)
    }

    /// The module of each unit; [`OUTSIDE`] where neither the unit nor its file is near a feature.
    pub fn place(&self, units: &[Unit], aliases: &Aliases, evidence: &Evidence) -> Placement {
        let mut of_files: BTreeMap<&PathBuf, BTreeMap<String, f64>> = BTreeMap::new();
        let mut of_units = Vec::new();
        for unit in units {
            let words = words_of(unit, aliases, evidence);
            let file = of_files.entry(&unit.file).or_default();
            for (word, weight) in &words {
                *file.entry(word.clone()).or_default() += weight;
            }
            of_units.push(words);
        }
        let files: BTreeMap<&PathBuf, Option<&str>> = of_files
            .iter()
            .map(|(file, words)| (*file, self.nearest(words, evidence.least)))
            .collect();
        units
            .iter()
            .zip(&of_units)
            .map(|(unit, words)| {
                self.nearest(words, evidence.least)
                    .or(files[&unit.file])
                    .unwrap_or(OUTSIDE)
                    .to_owned()
            })
            .collect()
    }

    fn nearest(&self, words: &BTreeMap<String, f64>, least: f64) -> Option<&str> {
        let vector = self.vector(words, self.vectors.len());
        let mut best: Option<(&str, f64)> = None;
        for (feature, theirs) in &self.vectors {
            let cosine: f64 = vector
                .iter()
                .filter_map(|(word, weight)| Some(weight * theirs.get(word)?))
                .sum();
            if cosine >= least && best.is_none_or(|(_, most)| cosine > most) {
                best = Some((feature, cosine));
            }
        }
        best.map(|(feature, _)| feature)
    }

    /// Weights damped, rare words raised, length 1. Words that no feature uses count for the length only.
    fn vector(&self, words: &BTreeMap<String, f64>, n_features: usize) -> Vector {
        let mut vector: Vector = words
            .iter()
            .map(|(word, count)| {
                let n_using = self.n_using.get(word).copied().unwrap_or(1);
                let rare = (1.0 + n_features as f64 / n_using as f64).ln();
                (word.clone(), (1.0 + count).ln() * rare)
            })
            .collect();
        let length = vector
            .values()
            .map(|weight| weight * weight)
            .sum::<f64>()
            .sqrt();
        if length > 0.0 {
            vector.values_mut().for_each(|weight| *weight /= length);
        }
        vector
    }
}

fn add(words: &mut BTreeMap<String, f64>, text: &str, weight: f64) {
    for word in terms(text) {
        *words.entry(word).or_default() += weight;
    }
}

fn words_of(unit: &Unit, aliases: &Aliases, evidence: &Evidence) -> BTreeMap<String, f64> {
    let mut words = BTreeMap::new();
    add(
        &mut words,
        &unit.file.with_extension("").to_string_lossy(),
        evidence.file,
    );
    add(&mut words, &unit.name, evidence.definition);
    // A class `ReadFile` is evidence for `read` when the document calls the tool so.
    for part in unit.name.split('.').chain(
        unit.file
            .iter()
            .filter_map(|part| part.to_str())
            .map(|part| part.trim_end_matches(".py")),
    ) {
        let canonical = aliases.canonical(FactKind::Tool, part);
        if canonical != part.to_lowercase() {
            add(&mut words, &canonical, evidence.name);
        }
    }
    let facts: BTreeSet<(FactKind, &str)> = unit
        .facts
        .iter()
        .map(|fact| (fact.kind, fact.key.as_str()))
        .collect();
    for (kind, key) in facts {
        if kind.is_named() {
            add(&mut words, &aliases.canonical(kind, key), evidence.name);
        } else {
            add(&mut words, key, evidence.message);
        }
    }
    for text in &unit.strings {
        add(&mut words, text, evidence.text);
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::python::units;
    use super::*;
    use crate::domain::document::Chapter;

    fn features() -> Features {
        let clause = |id: &str, text: &str| {
            format!(
                "### {id} · ordinary\n**Syntax** `x`\n**Meaning** {text}\n**Behaviour** {text}\n**Channels** exit\n\n"
            )
        };
        let markdown = format!(
            "# T\n\n{}{}{}",
            clause("tools.read.range", "the lines of a file from an offset"),
            clause("tools.grep.invalid", "a regular expression searches files"),
            clause("tools.todo.replace", "the list of things to do"),
        );
        let chapter = Chapter::parse(Path::new("02-tools.md"), &markdown).expect("parses");
        Features::of(&Document {
            chapters: vec![chapter],
        })
    }

    fn evidence() -> Evidence {
        Evidence {
            file: 2.0,
            definition: 3.0,
            name: 3.0,
            message: 1.0,
            text: 0.5,
            least: 0.1,
        }
    }

    #[test]
    fn a_unit_goes_to_its_feature_else_with_its_file_else_outside() {
        let aliases: Aliases = toml::from_str("[tools]\nread = [\"ViewFile\"]\n").expect("parses");
        let features = features();
        let check = |file: &str, text: &str, expected: &[&str]| {
            let units = units(Path::new(file), text);
            assert_eq!(
                features.place(&units, &aliases, &evidence()),
                expected,
                "{file}"
            );
        };
        check(
            "tools/search.py",
            "def grep(expression):\n    'regular expression'\n",
            &["tools.grep", "tools.grep"],
        );
        check(
            "view.py",
            "class ViewFile:\n    pass\n",
            &["tools.read", "tools.read"],
        );
        check(
            "net/socket.py",
            "def connect():\n    'handshake'\n",
            &[OUTSIDE, OUTSIDE],
        );
    }

    #[test]
    fn the_order_of_units_changes_nothing() {
        let features = features();
        let text = "def grep():\n    pass\n\ndef todo_list():\n    pass\n";
        let mut units = units(Path::new("a.py"), text);
        let forward = features.place(&units, &Aliases::default(), &evidence());
        units.reverse();
        let mut backward = features.place(&units, &Aliases::default(), &evidence());
        backward.reverse();
        assert_eq!(forward, backward);
    }
}
