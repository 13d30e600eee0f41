//! Whether two things of two trees are the same thing.

use super::attribution::Scored;
use super::limits::counted;
use super::source::{Fact, Unit};
use super::tokens::Bag;
use crate::domain::difference::FactKind;

/// One fact of a tree; of equal ones the first.
pub(super) struct Seen<'u> {
    pub(super) fact: &'u Fact,
    pub(super) unit: &'u Unit,
    pub(super) group: &'u str,
    pub(super) key: String,
    /// Its tokens, the rare ones raised.
    pub(super) bag: Bag,
    pub(super) clauses: Vec<Scored>,
}

impl Seen<'_> {
    fn shares_clause(&self, other: &Seen<'_>) -> bool {
        /// So many of the ranked clauses may be meant.
        const MEANT: usize = 3;
        let first = |clauses: &[Scored]| clauses[..clauses.len().min(MEANT)].to_vec();
        let theirs = first(&other.clauses);
        let is_theirs = |clause: usize| theirs.iter().any(|(their, _)| *their == clause);
        first(&self.clauses)
            .iter()
            .any(|(clause, _)| is_theirs(*clause))
    }
}

/// The same thing on the other side, if it is there.
pub(super) fn counterpart<'s, 'u>(
    wanted: &Seen<'u>,
    others: &'s [Seen<'u>],
    same: f64,
) -> Option<&'s Seen<'u>> {
    let mut best: Option<(&Seen<'_>, f64)> = None;
    for other in others {
        let alike = alike(wanted, other, same);
        if alike > best.map_or(0.0, |(_, most)| most) {
            best = Some((other, alike));
        }
    }
    best.map(|(other, _)| other)
}

/// Whether two things that are the same may differ: they follow from one clause, and have more than that in common. Half
/// of all handlers catch the same few exceptions.
pub(super) fn is_comparable(our: &Seen<'_>, their: &Seen<'_>) -> bool {
    let first = |seen: &Seen<'_>| seen.clauses.first().map(|(clause, _)| *clause);
    our.fact.kind.is_named()
        || (first(our) == first(their) && overlap(&our.bag, &their.bag) >= BOUND)
}

/// How much two things are the same, 0 to 1; 0 when they are not.
fn alike(wanted: &Seen<'_>, other: &Seen<'_>, same: f64) -> f64 {
    let (kind, other_kind) = (wanted.fact.kind, other.fact.kind);
    if kind.is_named() {
        return f64::from(other_kind == kind && other.key == wanted.key);
    }
    let shares_clause = wanted.shares_clause(other);
    if kind == FactKind::Handler {
        let is_covered = other_kind == kind && covers(&other.fact.key, &wanted.fact.key);
        let overlap = overlap(&wanted.bag, &other.bag);
        let is_near = overlap >= if shares_clause { BOUND } else { same };
        return if is_covered && is_near {
            0.5 + overlap / 2.0
        } else {
            0.0
        };
    }
    if kind == FactKind::Effect {
        let is_same = other_kind == kind && other.fact.key == wanted.fact.key && shares_clause;
        return if is_same {
            0.5 + overlap(&wanted.bag, &other.bag) / 2.0
        } else {
            0.0
        };
    }
    // Two numbers that bound the matter of one clause bound the same thing.
    let is_bound = |seen: &Seen<'_>| seen.fact.value.is_some() && !seen.fact.kind.is_named();
    let same_clause = match (wanted.clauses.first(), other.clauses.first()) {
        (Some((our, _)), Some((their, _))) => our == their,
        _ => false,
    };
    if is_bound(wanted) && is_bound(other) && same_clause {
        let overlap = overlap(&wanted.bag, &other.bag);
        return if overlap >= BOUND { overlap } else { 0.0 };
    }
    if !comparable(kind, other_kind) {
        return 0.0;
    }
    if wanted.clauses.is_empty() {
        return f64::from(other.key == wanted.key);
    }
    let overlap = overlap(&wanted.bag, &other.bag);
    let least = match (shares_clause, kind) {
        // The name of a limit is general; what it counts is not.
        (true, FactKind::Limit) if counted(&other.fact.key) == counted(&wanted.fact.key) => BOUND,
        (_, FactKind::Limit) => return 0.0,
        (true, _) => same,
        (false, _) => FAR * same,
    };
    if overlap >= least { overlap } else { 0.0 }
}

/// Bounds of one clause need this much in common.
const BOUND: f64 = 0.15;
/// Two things of different clauses must be alike by this many times more.
const FAR: f64 = 1.5;

/// An error is the answer to a check; the rest is compared with its own kind.
fn comparable(a: FactKind, b: FactKind) -> bool {
    let branch = |kind| matches!(kind, FactKind::Error | FactKind::Check);
    a == b || (branch(a) && branch(b))
}

/// Exceptions that a wider one covers; who handles the wider one handles them.
const COVERED: &[(&str, &[&str])] = &[
    (
        "OSError",
        &[
            "FileNotFoundError",
            "PermissionError",
            "IsADirectoryError",
            "NotADirectoryError",
            "FileExistsError",
            "BrokenPipeError",
            "ConnectionError",
            "ProcessLookupError",
            "TimeoutError",
            "IOError",
        ],
    ),
    (
        "ValueError",
        &["JSONDecodeError", "UnicodeDecodeError", "UnicodeError"],
    ),
    ("LookupError", &["KeyError", "IndexError"]),
    ("TimeoutError", &["TimeoutExpired"]),
    ("TimeoutExpired", &["TimeoutError"]),
];

/// Whether a handler of `ours` handles `theirs` too.
pub fn covers(ours: &str, theirs: &str) -> bool {
    ours == theirs
        || ["Exception", "BaseException"].contains(&ours)
        || COVERED
            .iter()
            .any(|(wide, narrow)| *wide == ours && narrow.contains(&theirs))
}

/// The shared weight of two bags, 0 to 1: intersection over union.
pub fn overlap(a: &Bag, b: &Bag) -> f64 {
    let shared: f64 = a
        .iter()
        .filter_map(|(token, ours)| b.get(token).map(|theirs| ours.min(*theirs)))
        .sum();
    let union = a.values().sum::<f64>() + b.values().sum::<f64>() - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_what_both_have() {
        let bag = |tokens: &[(&str, f64)]| -> Bag {
            let owned = tokens
                .iter()
                .map(|(token, weight)| ((*token).to_owned(), *weight));
            owned.collect()
        };
        let check = |a: &[(&str, f64)], b: &[(&str, f64)], expected: f64| {
            assert_eq!(overlap(&bag(a), &bag(b)), expected);
        };
        check(&[("x", 1.0), ("y", 1.0)], &[("x", 1.0), ("z", 2.0)], 0.25);
        check(&[("x", 1.0)], &[("x", 1.0)], 1.0);
        check(&[], &[], 0.0);
    }

    #[test]
    fn a_wider_handler_covers_a_narrower_one() {
        let check = |ours: &str, theirs: &str, expected: bool| {
            assert_eq!(covers(ours, theirs), expected, "{ours} {theirs}");
        };
        check("OSError", "PermissionError", true);
        check("PermissionError", "OSError", false);
        check("ValueError", "JSONDecodeError", true);
        check("Exception", "KeyError", true);
        check("KeyError", "KeyError", true);
        check("KeyError", "ValueError", false);
    }
}
