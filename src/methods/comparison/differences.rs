//! What two partitioned trees do not have in common.
//!
//! Names that users or the model write (commands, flags, tools, parameters, exit codes) are compared over the whole
//! trees, under the document's names: where in the source they stand is a manner of implementation. Errors, checks,
//! handlers and limits have no agreed names: two are the same thing when they follow from the same clause and are alike.

use std::collections::{BTreeMap, BTreeSet};

use super::aliases::Aliases;
use super::attribution::{Clauses, Scored, feature_of};
use super::calls::Calls;
use super::effects::looks;
use super::likeness::{Seen, counterpart, is_comparable};
use super::limits::amount;
use super::partition::Group;
use super::source::{Fact, Unit};
use super::syntax::last;
use super::tokens::{Bag, Words};
use crate::domain::difference::{FactKind, OUTSIDE, Side, Sight};
use crate::domain::digest;

/// The units of one tree with the groups of each.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'u> {
    pub units: &'u [Unit],
    pub placement: &'u [Vec<Group>],
    /// What each unit asks the clauses, from [`questions`].
    pub questions: &'u [Bag],
}

/// What two trees are held against each other by.
pub struct Measure<'m> {
    pub clauses: &'m Clauses<'m>,
    pub words: &'m Words<'m>,
    pub aliases: &'m Aliases,
    /// Two things of the same clause are the same from this overlap on (0 to 1).
    pub same: f64,
}

/// What each unit asks the clauses: its words, and the names of those that call it.
pub fn questions(units: &[Unit], clauses: &Clauses<'_>) -> Vec<Bag> {
    let calls = Calls::of(units);
    units
        .iter()
        .map(|unit| {
            let callers = calls.callers(unit).map(|caller| last(&caller.name));
            let callers: BTreeSet<&str> = callers.collect();
            clauses.question(unit, &callers.into_iter().collect::<Vec<_>>())
        })
        .collect()
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub kind: FactKind,
    pub side: Side,
    /// The feature of the clause, else the first group of the unit that it was seen in.
    pub module: String,
    /// `path:line` of the unit that it was seen in.
    pub definition: String,
    /// The document's name of the thing, or what it is known by.
    pub key: String,
    pub target: Option<Sight>,
    pub candidate: Option<Sight>,
    /// The clauses that it follows from, the best first.
    pub clauses: Vec<Scored>,
}

/// Lists all differences, in the order of kind, module and key.
pub fn differences(candidate: Tree<'_>, target: Tree<'_>, measure: &Measure<'_>) -> Vec<Found> {
    let ours = candidate.seen(measure);
    let theirs = target.seen(measure);
    let serving = candidate.serving(measure);
    let mentioned = candidate.mentioned();
    let is_mentioned = |their: &Seen<'_>| {
        let name = their.key.rsplit('.').next().unwrap_or(&their.key);
        their.fact.kind.is_named() && mentioned.contains(name.trim_start_matches('-'))
    };
    let mut found = Vec::new();
    let calls = Calls::of(candidate.units);
    for their in theirs.iter().filter(|their| !their.fact.is_weak) {
        match counterpart(their, &ours, measure.same) {
            Some(our) => found.extend(differing(our, their, &calls, measure)),
            // It is handled in a way that we do not read.
            None if is_mentioned(their) => {}
            None => {
                let mut missing = their.alone(Side::Missing, measure);
                // Where the candidate would handle it.
                missing.candidate = their
                    .clauses
                    .first()
                    .filter(|_| !their.fact.kind.is_named())
                    .and_then(|(clause, _)| serving.get(clause))
                    .map(|(_, unit)| Sight {
                        place: unit.place(),
                        shown: format!("not in {}", named(unit)),
                    });
                found.push(missing);
            }
        }
    }
    let extra = ours.iter().filter(|our| !our.fact.is_weak);
    found.extend(
        extra
            .filter(|our| counterpart(our, &theirs, measure.same).is_none())
            .map(|our| our.alone(Side::Extra, measure)),
    );
    found.sort_by(|a, b| {
        (a.kind, &a.module, &a.key, a.side).cmp(&(b.kind, &b.module, &b.key, b.side))
    });
    found
}

/// The identity of a difference, `target/module/kind-xxxxxxxx`. Lines of source and the candidate do not count.
pub fn id(target: &str, module: &str, found: &Found) -> String {
    let seen = match (found.side, &found.target, &found.candidate) {
        (Side::Differs, Some(target), Some(candidate)) => {
            format!("{}\0{}", target.shown, candidate.shown)
        }
        _ => found.key.clone(),
    };
    let digest = digest::of([found.side.as_str(), &seen]);
    format!("{target}/{module}/{}-{}", found.kind, &digest[..8])
}

/// The name of a unit, or that of its file.
pub fn named(unit: &Unit) -> String {
    if unit.name.is_empty() {
        unit.file.display().to_string()
    } else {
        unit.name.clone()
    }
}

/// What stands around a thing counts for this part when two are held against each other.
const AROUND: f64 = 0.5;

impl<'u> Tree<'u> {
    fn seen(&self, measure: &Measure<'_>) -> Vec<Seen<'u>> {
        let mut facts: Vec<(&'u Fact, usize)> = Vec::new();
        for (idx, unit) in self.units.iter().enumerate() {
            facts.extend(unit.facts.iter().map(|fact| (fact, idx)));
        }
        facts.sort_by_key(|(fact, idx)| {
            let file = &self.units[*idx].file;
            (file, fact.is_weak, fact.line, fact.kind, &fact.key)
        });
        let mut seen: BTreeMap<(FactKind, String), Seen<'u>> = BTreeMap::new();
        for (fact, idx) in facts {
            let (unit, groups) = (&self.units[idx], &self.placement[idx]);
            let key = match fact.kind {
                // The name is general; what it is about is only where it stands.
                FactKind::Handler | FactKind::Effect => {
                    format!("{} in {} {}", fact.key, unit.file.display(), unit.name)
                }
                _ => measure.aliases.canonical(fact.kind, &fact.key),
            };
            let entry = (fact.kind, key.clone());
            match seen.get_mut(&entry) {
                // A schema says more about a parameter than a signature does; and one is surely there.
                Some(known)
                    if known.fact.bounds.len() < fact.bounds.len()
                        || (known.fact.is_weak && !fact.is_weak) =>
                {
                    known.fact = fact;
                    known.unit = unit;
                }
                Some(_) => {}
                None => {
                    let mut bag = measure.words.bag(&fact.key);
                    if fact.kind != FactKind::Limit {
                        measure.words.add(&mut bag, &fact.around, AROUND);
                    }
                    if fact.kind == FactKind::Effect {
                        measure.words.add(&mut bag, &fact.shown, AROUND);
                        measure.words.add(&mut bag, &unit.name, AROUND);
                    }
                    for (token, weight) in &mut bag {
                        *weight *= measure.clauses.rarity(token);
                    }
                    let here = Seen {
                        fact,
                        unit,
                        group: groups.first().map_or(OUTSIDE, |group| group.name.as_str()),
                        clauses: {
                            let question = &self.questions[idx];
                            measure.clauses.of_fact(fact, &key, unit, question, groups)
                        },
                        key,
                        bag,
                    };
                    seen.insert(entry, here);
                }
            }
        }
        seen.into_values().collect()
    }

    /// The words that short texts consist of, and those that longer ones begin with: names in tables and comparisons.
    fn mentioned(&self) -> BTreeSet<&'u str> {
        const N_SHORT: usize = 60;
        let mut words = BTreeSet::new();
        for text in self.units.iter().flat_map(|unit| &unit.strings) {
            let split = text
                .split(|letter: char| !(letter.is_alphanumeric() || "-_".contains(letter)))
                .map(|word| word.trim_matches('-'))
                .filter(|word| !word.is_empty());
            let n = if text.len() <= N_SHORT { usize::MAX } else { 1 };
            words.extend(split.take(n));
        }
        words
    }

    /// The unit that serves each clause best.
    pub(super) fn serving(&self, measure: &Measure<'_>) -> BTreeMap<usize, (f64, &'u Unit)> {
        let mut best: BTreeMap<usize, (f64, &'u Unit)> = BTreeMap::new();
        for (idx, unit) in self.units.iter().enumerate() {
            for (clause, score) in self.served_by(idx, measure) {
                if best.get(&clause).is_none_or(|(most, _)| score > *most) {
                    best.insert(clause, (score, unit));
                }
            }
        }
        best
    }

    pub(super) fn served_by(&self, idx: usize, measure: &Measure<'_>) -> Vec<Scored> {
        let clauses = measure.clauses;
        clauses.of_unit(&self.questions[idx], &self.placement[idx])
    }
}

impl Seen<'_> {
    fn sight(&self, shown: &str) -> Sight {
        Sight {
            place: self.unit.place_of(self.fact.line),
            shown: shown.to_owned(),
        }
    }

    fn alone(&self, side: Side, measure: &Measure<'_>) -> Found {
        let sight = Some(self.sight(&self.fact.shown));
        let (target, candidate) = match side {
            Side::Extra => (None, sight),
            Side::Missing | Side::Differs => (sight, None),
        };
        self.found(side, target, candidate, measure)
    }

    fn found(
        &self,
        side: Side,
        target: Option<Sight>,
        candidate: Option<Sight>,
        measure: &Measure<'_>,
    ) -> Found {
        let mut clauses = self.clauses.clone();
        if !measure.clauses.is_derivable(self.fact.kind, &clauses) {
            clauses.clear();
        }
        let best = clauses.first();
        Found {
            kind: self.fact.kind,
            side,
            module: best.map_or_else(
                || self.group.to_owned(),
                |(clause, _)| feature_of(measure.clauses.id(*clause)),
            ),
            definition: self.unit.place(),
            key: self.key.clone(),
            target,
            candidate,
            clauses,
        }
    }
}

/// Differing values of one thing: a limit's number, what a check compares with and how it ends, how a handler ends,
/// the bounds of a parameter or a flag that both sides tell, what only the target looks at before an effect.
fn differing(
    our: &Seen<'_>,
    their: &Seen<'_>,
    calls: &Calls<'_>,
    measure: &Measure<'_>,
) -> Option<Found> {
    let (our_fact, their_fact) = (our.fact, their.fact);
    if our_fact.is_weak || !is_comparable(our, their) {
        return None;
    }
    let (ours, theirs) = match their_fact.kind {
        FactKind::Limit | FactKind::Check
            if numbers(our_fact).is_some()
                && numbers(their_fact).is_some()
                && numbers(our_fact) != numbers(their_fact) =>
        {
            (our_fact.shown.clone(), their_fact.shown.clone())
        }
        FactKind::Check | FactKind::Handler if our_fact.kind == their_fact.kind => {
            let ends = our_fact.reaction.is_some()
                && their_fact.reaction.is_some()
                && our_fact.reaction != their_fact.reaction;
            if !ends {
                return None;
            }
            let shown = |fact: &Fact| match fact.reaction {
                Some(reaction) => format!("{} ({})", fact.shown, reaction.as_str()),
                None => fact.shown.clone(),
            };
            (shown(our_fact), shown(their_fact))
        }
        FactKind::Effect => {
            // A unit that is no function has no body, but the effect knows what stands before it.
            let mut known = our_fact.looks.clone();
            known.extend(looked_at(our.unit, calls));
            let only_theirs: Vec<&str> = their_fact.looks.difference(&known).copied().collect();
            if only_theirs.is_empty() {
                return None;
            }
            (
                format!("{} without", our_fact.shown),
                format!(
                    "{} after a look at: {}",
                    their_fact.shown,
                    only_theirs.join(", ")
                ),
            )
        }
        FactKind::Parameter | FactKind::Flag => {
            let differing: Vec<(&String, &String, &String)> = their_fact
                .bounds
                .iter()
                .filter_map(|(key, value)| Some((key, our_fact.bounds.get(key)?, value)))
                .filter(|(_, our, their)| our != their)
                .collect();
            if differing.is_empty() {
                return None;
            }
            let list = |pick: fn(&(&String, &String, &String)) -> String| {
                differing.iter().map(pick).collect::<Vec<_>>().join(", ")
            };
            let ours = list(|(key, our, _)| format!("{key} {our}"));
            let theirs = list(|(key, _, their)| format!("{key} {their}"));
            (
                format!("{}: {ours}", our_fact.shown),
                format!("{}: {theirs}", their_fact.shown),
            )
        }
        _ => return None,
    };
    Some(their.found(
        Side::Differs,
        Some(their.sight(&theirs)),
        Some(our.sight(&ours)),
        measure,
    ))
}

/// What a function looks at, in conditions or not, with those that call it and those that it calls.
fn looked_at(unit: &Unit, calls: &Calls<'_>) -> BTreeSet<&'static str> {
    let around = calls.callers(unit).chain(calls.called(unit));
    [unit]
        .into_iter()
        .chain(around)
        .flat_map(|unit| looks(&unit.body()))
        .collect()
}

/// The numbers that a fact compares with, without the operators; times in seconds.
fn numbers(fact: &Fact) -> Option<String> {
    let value = fact.value.as_ref()?;
    if fact.kind == FactKind::Limit {
        return Some(amount(&fact.key, value));
    }
    Some(
        value
            .chars()
            .filter(|letter| letter.is_ascii_digit() || ".,".contains(*letter))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::attribution::Settings;
    use super::super::source::units;
    use super::super::tokens::Weights;
    use super::*;
    use crate::domain::document::{Chapter, Document};

    fn document() -> Document {
        let chapter = |file: &str, clauses: &[(&str, &str)]| {
            let clauses = clauses.iter().map(|(id, text)| {
                format!(
                    "### {id} · ordinary\n**Syntax** {text}\n**Meaning** {text}\n**Behaviour** {text}\n\
                     **Channels** exit\n\n"
                )
            });
            let text = format!("# T\n\n{}", clauses.collect::<String>());
            Chapter::parse(Path::new(file), &text).expect("parses")
        };
        let tools = [
            (
                "tools.read.missing",
                "a file that does not exist is missing",
            ),
            (
                "tools.read.binary",
                "the content of a binary file is not decoded",
            ),
            (
                "tools.read.large",
                "`read(path, limit?)` shows so many lines of long files",
            ),
        ];
        Document {
            chapters: vec![
                chapter("02-tools.md", &tools),
                chapter("05-flags.md", &[("flags.where.cwd", "`--cwd DIR`")]),
            ],
        }
    }

    const SETTINGS: &str = "least_score = 0.1\nleast_serving = 0.1\nhalf_evidence = 5.0\nfeature = 0.0\n\
        [question]\nown = 1.0\nnear = 0.1\nfunction = 1.0\nclass = 0.3\nabout = 0.3\nbody = 0.1\nfile = 0.1\n\
        callers = 0.3\n\
        [clause]\nid = 1.0\nsyntax = 1.0\nmeaning = 1.0\nbehaviour = 1.0\nlength = 0.0\n";

    fn compared(candidate: &str, target: &str) -> Vec<String> {
        let aliases: Aliases = toml::from_str(
            "[tools]\nread = [\"ReadFile\"]\n[parameters]\nlimit = [\"n_lines\"]\n[flags]\n\"--cwd\" = [\"--work-dir\"]\n",
        )
        .expect("parses");
        let weights = Weights {
            word: 1.0,
            identifier: 0.5,
            number: 1.0,
            flag: 3.0,
        };
        let words = Words::new(&BTreeMap::new(), &weights);
        let settings: Settings = toml::from_str(SETTINGS).expect("parses");
        let document = document();
        let clauses = Clauses::of(&document, &words, &settings);
        let measure = Measure {
            clauses: &clauses,
            words: &words,
            aliases: &aliases,
            same: 0.45,
        };
        let (ours, theirs) = (
            units(Path::new("c.py"), candidate, &|_| false),
            units(Path::new("t.py"), target, &|_| false),
        );
        let groups = |units: &[Unit]| -> Vec<Vec<Group>> {
            let group = Group {
                name: "tools.read".to_owned(),
                score: 1.0,
                because: Vec::new(),
                is_of_person: false,
            };
            vec![vec![group]; units.len()]
        };
        let (our_groups, their_groups) = (groups(&ours), groups(&theirs));
        let (our_questions, their_questions) =
            (questions(&ours, &clauses), questions(&theirs, &clauses));
        let ours = Tree {
            units: &ours,
            placement: &our_groups,
            questions: &our_questions,
        };
        let theirs = Tree {
            units: &theirs,
            placement: &their_groups,
            questions: &their_questions,
        };
        differences(ours, theirs, &measure)
            .iter()
            .map(|found| {
                let place = |sight: &Option<Sight>| {
                    sight.as_ref().map_or("-", |sight| &sight.place).to_owned()
                };
                let clause = match found.clauses.first() {
                    Some((clause, _)) => clauses.id(*clause).as_str(),
                    None => "none",
                };
                format!(
                    "{} {} {} {} {clause}",
                    found.side.as_str(),
                    found.kind,
                    place(&found.target),
                    place(&found.candidate)
                )
            })
            .collect()
    }

    #[test]
    fn each_difference_stands_on_the_side_where_it_is() {
        let check = |candidate: &str, target: &str, expected: &[&str]| {
            assert_eq!(
                compared(candidate, target),
                expected,
                "{candidate} | {target}"
            );
        };
        check(
            "",
            "p.add_argument('--yolo')\n",
            &["missing flag t.py:1 - none"],
        );
        check(
            "p.add_argument('--cwd')\n",
            "p.add_argument('--work-dir')\n",
            &[],
        );
        // Flags in a table, without dashes, of a file that reads its arguments itself.
        check(
            "if arg.startswith('--'):\n    pass\nFLAGS = {'cwd': 1}\n",
            "p.add_argument('--work-dir')\n",
            &[],
        );
        check(
            "p.add_argument('--cwd', default=5)\n",
            "p.add_argument('--work-dir', default=7)\n",
            &["differs flag t.py:1 c.py:1 flags.where.cwd"],
        );
        check(
            "raise ToolError('the file does not exist')\n",
            "raise ToolError('file does not exist: {}')\n",
            &[],
        );
        check(
            "raise ToolError('the file does not exist')\n",
            "raise ToolError('binary content of the file')\n",
            &[
                "missing error t.py:1 - tools.read.binary",
                "extra error - c.py:1 tools.read.missing",
            ],
        );
    }

    #[test]
    fn boundaries_of_one_clause_are_held_against_each_other() {
        let check = |candidate: &str, target: &str, expected: &[&str]| {
            assert_eq!(
                compared(candidate, target),
                expected,
                "{candidate} | {target}"
            );
        };
        let limit = |n: u32| format!("READ_LINES_LIMIT = {n}\n");
        check(&limit(1000), &limit(1000), &[]);
        check(
            &limit(2000),
            &limit(1000),
            &["differs limit t.py:1 c.py:1 tools.read.large"],
        );
        let lines =
            |n: u32| format!("if read_lines > {n}:\n    return 'too many lines of files'\n");
        check(&lines(5), &lines(5), &[]);
        check(
            &lines(5),
            &lines(6),
            &["differs check t.py:1 c.py:1 tools.read.large"],
        );
        let handler = |ends: &str| {
            format!("try:\n    decode_binary_content(x)\nexcept UnicodeDecodeError:\n    {ends}\n")
        };
        check(&handler("raise"), &handler("raise"), &[]);
        check(
            &handler("raise"),
            &handler("pass"),
            &["differs handler t.py:3 c.py:3 tools.read.binary"],
        );
        let all = "try:\n    decode_binary_content(x)\nexcept Exception:\n    raise\n";
        check(all, &handler("pass"), &[]);
    }

    #[test]
    fn what_is_looked_at_before_an_effect_is_a_boundary() {
        let remove = |before: &str, called: &str| {
            format!("def remove_binary_content(path):\n{before}    path.unlink()\n{called}")
        };
        let look = "    if path.is_symlink():\n        return\n";
        let differs = |candidate: &str, target: &str| {
            let found = compared(candidate, target);
            let mut effects = found.into_iter().filter(|it| it.contains(" effect "));
            effects.next()
        };
        let found = differs(&remove("", ""), &remove(look, ""));
        let expected = "differs effect t.py:4 c.py:2 tools.read.binary";
        assert_eq!(found.as_deref(), Some(expected));
        assert_eq!(differs(&remove(look, ""), &remove(look, "")), None);
        // The look is in a function that calls it.
        let caller =
            "def all(path):\n    if not is_link(path):\n        remove_binary_content(path)\n";
        assert_eq!(differs(&remove("", caller), &remove(look, "")), None);
        // Neither side has a function around it.
        let outside = "if not binary_content.is_symlink():\n    binary_content.unlink()\n";
        assert_eq!(differs(outside, outside), None);
        let found = differs("binary_content.unlink()\n", outside);
        let expected = "differs effect t.py:2 c.py:1 tools.read.binary";
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn what_is_missing_is_shown_with_the_function_where_it_would_be() {
        let candidate = "def decode_binary_content():\n    'The content of a binary file.'\n";
        let found = compared(candidate, "raise ToolError('binary content of the file')\n");
        assert_eq!(found, ["missing error t.py:1 c.py:1 tools.read.binary"]);
    }

    #[test]
    fn an_id_outlives_a_moved_line() {
        let found = |key: &str, line: usize| Found {
            kind: FactKind::Error,
            side: Side::Missing,
            module: "tools.read".to_owned(),
            definition: format!("t.py:{line}"),
            key: key.to_owned(),
            target: Some(Sight {
                place: format!("t.py:{line}"),
                shown: key.to_owned(),
            }),
            candidate: None,
            clauses: Vec::new(),
        };
        let id = |found: &Found| id("kimi", "tools.read", found);
        assert_eq!(id(&found("no such file", 1)), id(&found("no such file", 4)));
        assert_ne!(id(&found("no such file", 1)), id(&found("no file", 1)));
        assert!(id(&found("no such file", 1)).starts_with("kimi/tools.read/error-"));
    }
}
