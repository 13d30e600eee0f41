//! What two partitioned trees do not have in common.
//!
//! Names that users or the model write (commands, flags, tools, parameters, exit codes) are compared over the whole
//! trees, under the document's names: where in the source they stand is a manner of implementation. Errors, caught
//! exceptions and limits have no agreed names; they are compared inside a module, by their words.

use std::collections::{BTreeMap, BTreeSet};

use super::aliases::Aliases;
use super::python::{Fact, Unit};
use super::terms::terms;
use crate::domain::difference::{FactKind, Side, Sight};
use crate::domain::digest;

/// The units of one tree with the module of each.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'u> {
    pub units: &'u [Unit],
    pub placement: &'u [String],
}

/// A difference that is not traced yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub kind: FactKind,
    pub side: Side,
    /// The module of the unit that it was seen in.
    pub module: String,
    /// The document's name of the thing, or the words it is known by.
    pub key: String,
    pub target: Option<Sight>,
    pub candidate: Option<Sight>,
    /// What its text is about, for tracing.
    pub text: String,
    /// The file and the definition that it stands in.
    pub context: String,
}

/// Lists all differences, in the order of kind, module and key.
///
/// Two messages or limits whose words overlap by at least `same_words` (intersection / union, 0 to 1) are the same.
pub fn differences(
    candidate: Tree<'_>,
    target: Tree<'_>,
    aliases: &Aliases,
    same_words: f64,
) -> Vec<Found> {
    let ours = candidate.seen(aliases);
    let theirs = target.seen(aliases);
    let mut found = Vec::new();
    for their in &theirs {
        match counterpart(their, &ours, same_words) {
            None => found.push(their.alone(Side::Missing)),
            Some(our) => found.extend(differing(our, their)),
        }
    }
    found.extend(
        ours.iter()
            .filter(|our| counterpart(our, &theirs, same_words).is_none())
            .map(|our| our.alone(Side::Extra)),
    );
    found.sort_by(|a, b| {
        (a.kind, &a.module, &a.key, a.side).cmp(&(b.kind, &b.module, &b.key, b.side))
    });
    found
}

/// The identity of a difference, `target/module/kind-xxxxxxxx`. Lines of source and the candidate do not count.
pub fn id(target: &str, module: &str, found: &Found) -> String {
    let seen = match (&found.target, &found.candidate) {
        (Some(target), Some(candidate)) => {
            format!("{}\0{}", target.shown, candidate.shown)
        }
        _ => found.key.clone(),
    };
    let digest = digest::of([found.side.as_str(), &seen]);
    format!("{target}/{module}/{}-{}", found.kind, &digest[..8])
}

/// One fact of a tree; of equal ones the first.
struct Seen<'u> {
    fact: &'u Fact,
    unit: &'u Unit,
    module: &'u str,
    key: String,
    words: BTreeSet<String>,
}

impl<'u> Tree<'u> {
    fn seen(&self, aliases: &Aliases) -> Vec<Seen<'u>> {
        let mut facts: Vec<(&'u Fact, &'u Unit, &'u str)> = Vec::new();
        for (unit, module) in self.units.iter().zip(self.placement) {
            facts.extend(unit.facts.iter().map(|fact| (fact, unit, module.as_str())));
        }
        facts.sort_by_key(|(fact, unit, _)| (&unit.file, fact.line, fact.kind, &fact.key));
        let mut seen: BTreeMap<(FactKind, &'u str, String), Seen<'u>> = BTreeMap::new();
        for (fact, unit, module) in facts {
            let words: BTreeSet<String> = terms(&fact.key).into_iter().collect();
            let (place, key) = if fact.kind.is_named() {
                ("", aliases.canonical(fact.kind, &fact.key))
            } else if fact.kind == FactKind::Handler {
                (module, fact.key.clone())
            } else {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                (module, words.join(" "))
            };
            if key.is_empty() {
                continue;
            }
            let entry = (fact.kind, place, key.clone());
            match seen.get_mut(&entry) {
                // A schema says more about a parameter than a signature does.
                Some(known) if known.fact.bounds.len() < fact.bounds.len() => known.fact = fact,
                Some(_) => {}
                None => {
                    let here = Seen {
                        fact,
                        unit,
                        module,
                        key,
                        words,
                    };
                    seen.insert(entry, here);
                }
            }
        }
        seen.into_values().collect()
    }
}

impl Seen<'_> {
    fn sight(&self, shown: &str) -> Sight {
        Sight {
            place: format!("{}:{}", self.unit.file.display(), self.fact.line),
            shown: shown.to_owned(),
        }
    }

    fn alone(&self, side: Side) -> Found {
        let sight = Some(self.sight(&self.fact.shown));
        let (target, candidate) = match side {
            Side::Extra => (None, sight),
            Side::Missing | Side::Differs => (sight, None),
        };
        self.found(side, target, candidate)
    }

    fn found(&self, side: Side, target: Option<Sight>, candidate: Option<Sight>) -> Found {
        Found {
            kind: self.fact.kind,
            side,
            module: self.module.to_owned(),
            key: self.key.clone(),
            target,
            candidate,
            text: self.fact.key.clone(),
            context: format!(
                "{} {}",
                self.unit.file.with_extension("").display(),
                self.unit.name
            ),
        }
    }
}

fn counterpart<'s, 'u>(
    wanted: &Seen<'u>,
    others: &'s [Seen<'u>],
    same: f64,
) -> Option<&'s Seen<'u>> {
    let mut best: Option<(&Seen<'_>, f64)> = None;
    for other in others
        .iter()
        .filter(|other| other.fact.kind == wanted.fact.kind)
    {
        let overlap = if wanted.fact.kind.is_named() {
            f64::from(other.key == wanted.key)
        } else if other.module != wanted.module {
            0.0
        } else if wanted.fact.kind == FactKind::Handler {
            f64::from(other.key == wanted.key)
        } else {
            overlap(&wanted.words, &other.words)
        };
        if overlap >= same && overlap > best.map_or(0.0, |(_, most)| most) {
            best = Some((other, overlap));
        }
    }
    best.map(|(other, _)| other)
}

/// Intersection over union; 0 for two empty sets.
fn overlap(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let n_union = a.union(b).count();
    if n_union == 0 {
        return 0.0;
    }
    a.intersection(b).count() as f64 / n_union as f64
}

/// Differing values of one thing: the number of a limit, the bounds of a parameter that both sides tell.
fn differing(our: &Seen<'_>, their: &Seen<'_>) -> Option<Found> {
    let (ours, theirs) = match their.fact.kind {
        FactKind::Limit if our.fact.number != their.fact.number => {
            (our.fact.shown.clone(), their.fact.shown.clone())
        }
        FactKind::Parameter => {
            let differing: Vec<(&String, &String, &String)> = their
                .fact
                .bounds
                .iter()
                .filter_map(|(key, value)| Some((key, our.fact.bounds.get(key)?, value)))
                .filter(|(_, our, their)| our != their)
                .collect();
            if differing.is_empty() {
                return None;
            }
            let list = |pick: fn(&(&String, &String, &String)) -> String| {
                differing.iter().map(pick).collect::<Vec<_>>().join(", ")
            };
            (
                format!(
                    "{}: {}",
                    our.fact.shown,
                    list(|(key, our, _)| format!("{key} {our}"))
                ),
                format!(
                    "{}: {}",
                    their.fact.shown,
                    list(|(key, _, their)| format!("{key} {their}"))
                ),
            )
        }
        _ => return None,
    };
    Some(their.found(
        Side::Differs,
        Some(their.sight(&theirs)),
        Some(our.sight(&ours)),
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::python::units;
    use super::*;

    fn compared(candidate: &str, target: &str) -> Vec<String> {
        let aliases: Aliases = toml::from_str(
            "[tools]\nread = [\"ReadFile\"]\n[parameters]\nlimit = [\"n_lines\"]\n[flags]\n\"--cwd\" = [\"--work-dir\"]\n",
        )
        .expect("parses");
        let (ours, theirs) = (
            units(Path::new("c.py"), candidate),
            units(Path::new("t.py"), target),
        );
        let module = |units: &[Unit]| vec!["tools.read".to_owned(); units.len()];
        let (our_module, their_module) = (module(&ours), module(&theirs));
        differences(
            Tree {
                units: &ours,
                placement: &our_module,
            },
            Tree {
                units: &theirs,
                placement: &their_module,
            },
            &aliases,
            0.5,
        )
        .iter()
        .map(|found| {
            let place =
                |sight: &Option<Sight>| sight.as_ref().map_or("-", |sight| &sight.place).to_owned();
            format!(
                "{} {} {} {} {}",
                found.side.as_str(),
                found.kind,
                found.key,
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
            &["missing flag --yolo t.py:1 -"],
        );
        check(
            "p.add_argument('--cwd')\n",
            "p.add_argument('--work-dir')\n",
            &[],
        );
        check(
            "p.add_argument('--x-y')\n",
            "",
            &["extra flag --x-y - c.py:1"],
        );
        check(
            "raise ToolError('no such file here')\n",
            "raise ToolError('no such file: there')\n",
            &[],
        );
        check(
            "raise ToolError('no such file')\n",
            "raise ToolError('binary content refused')\n",
            &[
                "missing error binary content refus t.py:1 -",
                "extra error fil - c.py:1",
            ],
        );
        check(
            "MAX_LINES = 5\n",
            "\nMAX_LINES = 9\n",
            &["differs limit lin max t.py:2 c.py:1"],
        );
        check("MAX_LINES = 9\n", "MAX_LINES = 9\n", &[]);
        check(
            "T = {'name': 'read', 'parameters': {'properties': {'limit': {'type': 'integer', 'minimum': 1}}}}\n",
            "T = {'name': 'ReadFile', 'parameters': {'properties': {'n_lines': {'type': 'integer', 'minimum': 0}}}}\n",
            &["differs parameter read.limit t.py:1 c.py:1"],
        );
        check(
            "try:\n    f()\nexcept OSError:\n    pass\n",
            "try:\n    f()\nexcept UnicodeDecodeError:\n    pass\n",
            &[
                "extra handler OSError - c.py:3",
                "missing handler UnicodeDecodeError t.py:3 -",
            ],
        );
    }

    #[test]
    fn an_id_outlives_a_moved_line() {
        let found = |text: &str| {
            let units = units(Path::new("t.py"), text);
            let module = vec!["tools.read".to_owned(); units.len()];
            let none = Tree {
                units: &[],
                placement: &[],
            };
            let target = Tree {
                units: &units,
                placement: &module,
            };
            let all = differences(none, target, &Aliases::default(), 0.5);
            id("kimi", "tools.read", &all[0])
        };
        let here = found("raise ToolError('no such file')\n");
        assert_eq!(here, found("\n\n\nraise ToolError('no such file')\n"));
        assert_ne!(here, found("raise ToolError('no such directory')\n"));
        assert!(here.starts_with("kimi/tools.read/error-"), "{here}");
    }
}
