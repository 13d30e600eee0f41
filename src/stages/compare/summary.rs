//! What a comparison tells: groups, placed units, functions to read beside each other, and differences in words.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::clause::ClauseId;
use crate::domain::difference::{Difference, OUTSIDE, Side, Sight, Trace};
use crate::domain::visible::{shortened, visible_line};
use crate::methods::comparison::attribution::Clauses;
use crate::methods::comparison::differences::{self, Found, Tree, named};
use crate::methods::comparison::judged::Figures;
use crate::methods::comparison::partition::{Features, Group};
use crate::methods::comparison::readings::Reading;
use crate::methods::comparison::source::Unit;

#[derive(Debug, Serialize)]
pub struct Summary {
    pub candidate: String,
    pub target: String,
    /// Features of the document in the order of their names, then what no feature claims.
    pub modules: Vec<Module>,
    /// Every unit of both trees with its groups.
    pub partition: Vec<Placed>,
    /// Functions of the target that serve a clause, each with the candidate's, the surest first.
    pub readings: Vec<ReadingShown>,
    /// The traced ones first, the best first; extras are last.
    pub differences: Vec<Difference>,
    /// Traced, and stored for review.
    pub n_traced: usize,
    /// Of these, not known from any comparison before.
    pub n_new: usize,
    /// Further ones of the same clause, which are not listed.
    pub n_further: usize,
    pub n_not_derivable: usize,
    /// What only the candidate has.
    pub n_extra: usize,
    /// Only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Figures>,
}

/// One group on both sides. A unit that serves several groups counts in each.
#[derive(Debug, Default, Serialize)]
pub struct Module {
    pub module: String,
    pub candidate: Part,
    pub target: Part,
    pub n_missing: usize,
    pub n_differs: usize,
    /// Of the missing and the differing ones.
    pub n_traced: usize,
    pub n_extra: usize,
}

#[derive(Debug, Default, Clone, Serialize)]
pub struct Part {
    pub n_units: usize,
    pub n_lines: usize,
}

/// A function, method, class or file body with its groups.
#[derive(Debug, Serialize)]
pub struct Placed {
    /// `candidate` or `target`.
    pub side: &'static str,
    /// `path:line`.
    pub place: String,
    pub name: String,
    pub n_lines: usize,
    /// The nearest first; none: outside the document.
    pub groups: Vec<Group>,
    /// A person wrote the groups.
    pub is_corrected: bool,
}

/// Functions to read beside each other.
#[derive(Debug, Serialize)]
pub struct ReadingShown {
    /// `path:line name` of each.
    pub target: String,
    pub candidate: Option<String>,
    pub n_lines: usize,
    /// The clauses that the target's function serves, the best first.
    pub clauses: Vec<ClauseId>,
    /// The certainty of the first, 0 to 1.
    pub score: f64,
    /// Listed differences in these lines, by their ids.
    pub differences: Vec<String>,
}

/// The functions to read, with the listed differences that are traced.
pub fn readings(
    readings: &[Reading<'_>],
    differences: &[Difference],
    clauses: &Clauses<'_>,
) -> Vec<ReadingShown> {
    let mut by_file: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for difference in differences.iter().filter(|it| it.trace.is_some()) {
        let place = difference.target.as_ref().map(|it| it.place.as_str());
        if let Some((file, line)) = place.and_then(split) {
            by_file
                .entry(file)
                .or_default()
                .push((line, &difference.id));
        }
    }
    let shown =
        |unit: &Unit| visible_line(&format!("{} {}", unit.place(), named(unit))).into_owned();
    let of = |reading: &Reading<'_>| {
        let n_lines = reading.target.n_lines;
        let place = visible_line(&reading.target.place()).into_owned();
        let (file, first) = split(&place).expect("a unit has a line");
        let inside = by_file.get(file).into_iter().flatten();
        let inside = inside.filter(|(line, _)| (first..first + n_lines).contains(line));
        let proposed = reading.clauses.iter().take(1 + N_OTHERS);
        ReadingShown {
            target: shown(reading.target),
            candidate: reading.candidate.map(shown),
            n_lines,
            clauses: proposed.map(|(it, _)| clauses.id(*it).clone()).collect(),
            score: rounded(reading.clauses[0].1),
            differences: inside.map(|(_, id)| (*id).to_owned()).collect(),
        }
    };
    readings.iter().map(of).collect()
}

/// `path:line`, in its parts.
pub(super) fn split(place: &str) -> Option<(&str, usize)> {
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

/// Characters of a message that are kept; what a harness says in more is not said in one error.
const N_SHOWN: usize = 300;

/// So many further clauses are proposed.
const N_OTHERS: usize = 2;

/// A difference with its clause, in words.
pub fn difference(target: &str, found: Found, clauses: &Clauses<'_>) -> Difference {
    let clean = |sight: &Sight| Sight {
        place: visible_line(&sight.place).into_owned(),
        shown: shortened(&visible_line(&sight.shown), N_SHOWN).into_owned(),
    };
    let ours = found.candidate.as_ref().map(clean);
    let theirs = found.target.as_ref().map(clean);
    let shown = |sight: &Option<Sight>| sight.as_ref().map_or("", |sight| &sight.shown).to_owned();
    let title = match found.side {
        Side::Missing => format!("{} not in the candidate: {}", found.kind, shown(&theirs)),
        Side::Extra => format!("{} only in the candidate: {}", found.kind, shown(&ours)),
        Side::Differs => format!(
            "{} differs: {} in the target, {} in the candidate",
            found.kind,
            shown(&theirs),
            shown(&ours)
        ),
    };
    let trace = found.clauses.first().map(|(best, score)| Trace {
        clause: clauses.id(*best).clone(),
        score: rounded(*score),
        others: found
            .clauses
            .iter()
            .skip(1)
            .take(N_OTHERS)
            .map(|(other, _)| clauses.id(*other).clone())
            .collect(),
    });
    Difference {
        id: differences::id(target, &found.module, &found),
        module: found.module,
        kind: found.kind,
        side: found.side,
        title,
        target: theirs,
        candidate: ours,
        trace,
    }
}

fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// Each unit of a tree with its groups.
pub fn placed<'t>(
    side: &'static str,
    tree: Tree<'t>,
    corrected: &'t BTreeSet<usize>,
) -> impl Iterator<Item = Placed> + 't {
    tree.units
        .iter()
        .zip(tree.placement)
        .enumerate()
        .map(move |(idx, (unit, groups))| Placed {
            side,
            place: visible_line(&unit.place()).into_owned(),
            name: visible_line(&unit.name).into_owned(),
            n_lines: unit.n_lines,
            groups: groups.clone(),
            is_corrected: corrected.contains(&idx),
        })
}

/// Counts by group.
pub fn modules(
    features: &Features<'_>,
    ours: Tree<'_>,
    theirs: Tree<'_>,
    differences: &[Difference],
) -> Vec<Module> {
    let mut modules: Vec<Module> = features
        .names()
        .chain([OUTSIDE])
        .map(|name| Module {
            module: name.to_owned(),
            ..Module::default()
        })
        .collect();
    let index: BTreeMap<String, usize> = modules
        .iter()
        .enumerate()
        .map(|(idx, module)| (module.module.clone(), idx))
        .collect();
    for (tree, is_ours) in [(ours, true), (theirs, false)] {
        for (unit, groups) in tree.units.iter().zip(tree.placement) {
            let names: Vec<&str> = match groups.as_slice() {
                [] => vec![OUTSIDE],
                groups => groups.iter().map(|group| group.name.as_str()).collect(),
            };
            for name in names {
                let module = &mut modules[index[name]];
                let part = if is_ours {
                    &mut module.candidate
                } else {
                    &mut module.target
                };
                part.n_units += 1;
                part.n_lines += unit.n_lines;
            }
        }
    }
    for difference in differences {
        let module = &mut modules[index[&difference.module]];
        let count = match difference.side {
            Side::Missing => &mut module.n_missing,
            Side::Differs => &mut module.n_differs,
            Side::Extra => &mut module.n_extra,
        };
        *count += 1;
        if difference.side != Side::Extra && difference.trace.is_some() {
            module.n_traced += 1;
        }
    }
    modules
}
