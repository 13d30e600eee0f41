//! The groups of a source tree, by the features of the document.
//!
//! Each `chapter.feature` is a group. A feature has a vector of tokens from its clauses, a unit of source one from its
//! names, what it handles, what it calls and imports, and its texts; rare tokens weigh more. A unit serves the features
//! whose vectors point most nearly into the same direction (cosine), else those of its file, else none. A correction
//! that a person wrote decides over that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use globset::Glob;
use serde::{Deserialize, Serialize};

use super::aliases::Aliases;
use super::attribution::feature_of;
use super::source::Unit;
use super::tokens::{Bag, Words};
use crate::domain::clause::Clause;
use crate::domain::difference::{FactKind, OUTSIDE};
use crate::domain::document::Document;

/// How much each kind of evidence in the source weighs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Words of the file's path.
    pub file: f64,
    /// Words of the names of classes and functions, and of what they say about themselves.
    pub definition: f64,
    /// Commands, flags, tools and parameters, under their names in the document.
    pub name: f64,
    /// Messages of errors, conditions, and names of exceptions and limits.
    pub message: f64,
    /// Names of what is called and imported.
    pub call: f64,
    /// Other texts.
    pub text: f64,
    /// A unit nearer than this to no feature is placed where its file is, when that has no more lines than these.
    pub least: f64,
    pub file_lines: usize,
    /// Further groups must be this near, as a part of the nearest (0 to 1).
    pub further: f64,
}

/// A feature that a unit serves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// `chapter.feature`.
    pub name: String,
    /// Cosine, 0 to 1; 1 where a person said so.
    pub score: f64,
    /// The tokens that weigh most; none where a person said so.
    pub because: Vec<String>,
    /// A person said so, and no calculation did.
    pub is_of_person: bool,
}

/// The groups of each unit, the nearest first; none where nothing is near, [`OUTSIDE`] where a person said so.
pub type Placement = Vec<Vec<Group>>;

/// What a person wrote about the groups of some units.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// A candidate or a target, with or without its version; every one when left out.
    pub source: Option<String>,
    /// A glob on the path below the tree.
    pub path: String,
    /// A glob on the name of the unit; every one when left out.
    pub unit: Option<String>,
    /// Instead of what was calculated; empty: outside.
    pub groups: Vec<String>,
}

/// The file of corrections.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Corrections {
    pub correction: Vec<Correction>,
}

/// The features of a document, ready to place units.
#[derive(Debug)]
pub struct Features<'d> {
    vectors: BTreeMap<String, Bag>,
    /// How many features use a token.
    n_using: BTreeMap<String, usize>,
    words: &'d Words<'d>,
}

/// A feature's own name weighs more than what is written about it.
const NAME: f64 = 6.0;
/// A unit serves at most so many.
const N_GROUPS: usize = 3;
const N_BECAUSE: usize = 4;

impl<'d> Features<'d> {
    pub fn of(document: &Document, words: &'d Words<'d>) -> Self {
        let mut counted: BTreeMap<String, Bag> = BTreeMap::new();
        for clause in document.clauses() {
            let feature = feature_of(&clause.id);
            let bag = counted.entry(feature.clone()).or_default();
            for (token, weight) in tokens_of(clause, words) {
                *bag.entry(token).or_default() += weight;
            }
            let name = feature.split('.').nth(1).unwrap_or_default();
            words.add(bag, name, NAME);
        }
        let mut n_using: BTreeMap<String, usize> = BTreeMap::new();
        for bag in counted.values() {
            for token in bag.keys() {
                *n_using.entry(token.clone()).or_default() += 1;
            }
        }
        let mut features = Self {
            vectors: BTreeMap::new(),
            n_using,
            words,
        };
        features.vectors = counted
            .iter()
            .map(|(feature, bag)| (feature.clone(), features.vector(bag, counted.len())))
            .collect();
        features
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.vectors.keys().map(String::as_str)
    }

    /// The groups of each unit.
    pub fn place(&self, units: &[Unit], aliases: &Aliases, evidence: &Evidence) -> Placement {
        let mut of_files: BTreeMap<&PathBuf, Bag> = BTreeMap::new();
        let mut lines: BTreeMap<&PathBuf, usize> = BTreeMap::new();
        let mut of_units = Vec::new();
        for unit in units {
            let bag = self.tokens_of(unit, aliases, evidence);
            *lines.entry(&unit.file).or_default() += unit.n_lines;
            let file = of_files.entry(&unit.file).or_default();
            for (token, weight) in &bag {
                *file.entry(token.clone()).or_default() += weight;
            }
            of_units.push(bag);
        }
        let files: BTreeMap<&PathBuf, Vec<Group>> = of_files
            .iter()
            .map(|(file, bag)| (*file, self.nearest(bag, evidence)))
            .collect();
        units
            .iter()
            .zip(&of_units)
            .map(|(unit, bag)| {
                let own = self.nearest(bag, evidence);
                // A long file has many matters.
                if own.is_empty() && lines[&unit.file] <= evidence.file_lines {
                    files[&unit.file].clone()
                } else {
                    own
                }
            })
            .collect()
    }

    fn nearest(&self, bag: &Bag, evidence: &Evidence) -> Vec<Group> {
        let vector = self.vector(bag, self.vectors.len());
        let mut near: Vec<Group> = Vec::new();
        for (feature, theirs) in &self.vectors {
            let mut parts: Vec<(f64, &String)> = vector
                .iter()
                .filter_map(|(token, weight)| Some((weight * theirs.get(token)?, token)))
                .collect();
            let score: f64 = parts.iter().map(|(part, _)| part).sum();
            if score < evidence.least {
                continue;
            }
            parts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
            let because = parts
                .iter()
                .take(N_BECAUSE)
                .map(|(_, token)| (*token).clone());
            near.push(Group {
                name: feature.clone(),
                score: (score * 1000.0).round() / 1000.0,
                because: because.collect(),
                is_of_person: false,
            });
        }
        near.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.name.cmp(&b.name)));
        let most = near.first().map_or(0.0, |group| group.score);
        near.retain(|group| group.score >= evidence.further * most);
        near.truncate(N_GROUPS);
        near
    }

    /// Weights damped, rare tokens raised, length 1. Tokens that no feature uses count for the length only.
    fn vector(&self, bag: &Bag, n_features: usize) -> Bag {
        let mut vector: Bag = bag
            .iter()
            .map(|(token, count)| {
                let n_using = self.n_using.get(token).copied().unwrap_or(1);
                let rare = (1.0 + n_features as f64 / n_using as f64).ln();
                (token.clone(), (1.0 + count).ln() * rare)
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

    fn tokens_of(&self, unit: &Unit, aliases: &Aliases, evidence: &Evidence) -> Bag {
        let mut bag = Bag::new();
        let mut count = |text: &str, weight: f64| {
            for (token, sort) in self.words.bag(text) {
                *bag.entry(token).or_default() += sort * weight;
            }
        };
        count(
            &unit.file.with_extension("").to_string_lossy(),
            evidence.file,
        );
        count(&unit.name, evidence.definition);
        count(&unit.about, evidence.definition);
        // A class `ReadFile` is evidence for `read` when the document calls the tool so.
        let path = unit.file.with_extension("");
        let parts = path.iter().filter_map(|part| part.to_str());
        for part in unit.name.split('.').chain(parts) {
            let canonical = aliases.canonical(FactKind::Tool, part);
            if canonical != part.to_lowercase() {
                count(&canonical, evidence.name);
            }
        }
        let facts: BTreeSet<(FactKind, &str)> = unit
            .facts
            .iter()
            .map(|fact| (fact.kind, fact.key.as_str()))
            .collect();
        for (kind, key) in facts {
            if kind.is_named() {
                count(&aliases.canonical(kind, key), evidence.name);
            } else {
                count(key, evidence.message);
            }
        }
        let calls: BTreeSet<&String> = unit.calls.iter().collect();
        for call in calls {
            count(call, evidence.call);
        }
        for text in &unit.strings {
            count(text, evidence.text);
        }
        bag
    }
}

/// The tokens of a clause, each with its greatest weight: a feature has what its clauses share, not what one repeats.
fn tokens_of(clause: &Clause, words: &Words<'_>) -> Bag {
    let mut bag = Bag::new();
    for (text, weight) in [
        (clause.id.as_str().replace('.', " ").as_str(), 1.8),
        (&clause.syntax, 1.1),
        (&clause.meaning, 1.0),
        // It mentions the matter of other clauses too.
        (&clause.behaviour, 0.8),
    ] {
        words.add(&mut bag, text, weight);
    }
    bag
}

impl Corrections {
    /// Puts the groups that a person wrote in place of what was calculated for the tree of this name; a later
    /// correction decides over an earlier one. Returns which units it was.
    pub fn apply(
        &self,
        source: &str,
        units: &[Unit],
        placement: &mut Placement,
    ) -> Result<BTreeSet<usize>, globset::Error> {
        let mut corrected = BTreeSet::new();
        for correction in &self.correction {
            let is_named = correction.source.as_ref().is_none_or(|named| {
                named == source || source.split('@').next() == Some(named.as_str())
            });
            if !is_named {
                continue;
            }
            let path = Glob::new(&correction.path)?.compile_matcher();
            let name = match &correction.unit {
                Some(unit) => Some(Glob::new(unit)?.compile_matcher()),
                None => None,
            };
            for (idx, unit) in units.iter().enumerate() {
                let is_meant = path.is_match(&unit.file)
                    && name.as_ref().is_none_or(|name| name.is_match(&unit.name));
                if is_meant {
                    let group = |name: &String| Group {
                        name: name.clone(),
                        score: 1.0,
                        because: Vec::new(),
                        is_of_person: true,
                    };
                    placement[idx] = match correction.groups.as_slice() {
                        [] => vec![group(&OUTSIDE.to_owned())],
                        groups => groups.iter().map(group).collect(),
                    };
                    corrected.insert(idx);
                }
            }
        }
        Ok(corrected)
    }

    /// The first group that is no feature of the document.
    pub fn unknown(&self, features: &Features<'_>) -> Option<&str> {
        self.correction
            .iter()
            .flat_map(|correction| &correction.groups)
            .find(|group| !features.vectors.contains_key(*group))
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::source::units;
    use super::super::tokens::Weights;
    use super::*;
    use crate::domain::document::Chapter;

    const WEIGHTS: Weights = Weights {
        word: 1.0,
        identifier: 2.0,
        number: 2.0,
        flag: 3.0,
    };
    const EVIDENCE: Evidence = Evidence {
        file: 2.0,
        definition: 3.0,
        name: 3.0,
        message: 1.0,
        call: 0.3,
        text: 0.5,
        least: 0.1,
        file_lines: 300,
        further: 0.7,
    };

    fn document() -> Document {
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
        Document {
            chapters: vec![chapter],
        }
    }

    fn names(placement: &Placement) -> Vec<Vec<&str>> {
        fn of_unit(groups: &[Group]) -> Vec<&str> {
            groups.iter().map(|group| group.name.as_str()).collect()
        }
        placement.iter().map(|groups| of_unit(groups)).collect()
    }

    #[test]
    fn a_unit_goes_to_its_features_else_with_its_file_else_outside() {
        let aliases: Aliases = toml::from_str("[tools]\nread = [\"ViewFile\"]\n").expect("parses");
        let words = Words::new(&BTreeMap::new(), &WEIGHTS);
        let features = Features::of(&document(), &words);
        let check = |file: &str, text: &str, expected: &[&[&str]]| {
            let units = units(Path::new(file), text, &|_| false);
            let placement = features.place(&units, &aliases, &EVIDENCE);
            assert_eq!(names(&placement), expected, "{file}");
        };
        check(
            "tools/search.py",
            "def grep(expression):\n    'regular expression'\n",
            &[&["tools.grep"], &["tools.grep"]],
        );
        check(
            "view.py",
            "class ViewFile:\n    pass\n",
            &[&["tools.read"], &["tools.read"]],
        );
        check(
            "net/socket.py",
            "def connect():\n    'handshake'\n",
            &[&[], &[]],
        );
        check(
            "both.py",
            "def read_offset_grep_expression():\n    pass\n",
            &[&["tools.read", "tools.grep"], &["tools.read", "tools.grep"]],
        );
    }

    #[test]
    fn a_person_decides_over_what_was_calculated() {
        let words = Words::new(&BTreeMap::new(), &WEIGHTS);
        let features = Features::of(&document(), &words);
        let units = units(
            Path::new("a/b.py"),
            "def grep():\n    pass\n\ndef todo():\n    pass\n",
            &|_| false,
        );
        let calculated = features.place(&units, &Aliases::default(), &EVIDENCE);
        let check = |text: &str, expected: &[&str]| {
            let corrections: Corrections = toml::from_str(text).expect("parses");
            let mut placement = calculated.clone();
            corrections
                .apply("kimi@1.0", &units, &mut placement)
                .expect("globs");
            let grep: Vec<&str> = names(&placement)[1].clone();
            assert_eq!(grep, expected, "{text}");
        };
        let correction = |rest: &str| format!("[[correction]]\npath = \"a/*.py\"\n{rest}\n");
        check("", &["tools.grep"]);
        check(&correction("groups = [\"tools.read\"]"), &["tools.read"]);
        check(&correction("groups = []"), &[OUTSIDE]);
        check(
            &correction("groups = [\"tools.read\"]\nsource = \"kimi\""),
            &["tools.read"],
        );
        check(
            &correction("groups = [\"tools.read\"]\nsource = \"other\""),
            &["tools.grep"],
        );
        check(
            &correction("groups = [\"tools.read\"]\nunit = \"tod*\""),
            &["tools.grep"],
        );
        let wrong: Corrections =
            toml::from_str(&correction("groups = [\"tools.nothing\"]")).expect("parses");
        assert_eq!(wrong.unknown(&features), Some("tools.nothing"));
    }

    #[test]
    fn the_order_of_units_changes_nothing() {
        let words = Words::new(&BTreeMap::new(), &WEIGHTS);
        let features = Features::of(&document(), &words);
        let text = "def grep():\n    pass\n\ndef todo_list():\n    pass\n";
        let mut units = units(Path::new("a.py"), text, &|_| false);
        let forward = features.place(&units, &Aliases::default(), &EVIDENCE);
        units.reverse();
        let mut backward = features.place(&units, &Aliases::default(), &EVIDENCE);
        backward.reverse();
        assert_eq!(forward, backward);
    }
}
