//! Which functions of two trees to read beside each other: what has no condition, message or number of its own is found
//! by reading only.

use super::attribution::Scored;
use super::differences::{Measure, Tree};
use super::source::Unit;

/// A function of the target, and the one of the candidate to read beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading<'u> {
    pub target: &'u Unit,
    /// The clauses that the function serves, the best first.
    pub clauses: Vec<Scored>,
    /// The function of the candidate that serves the first of them best.
    pub candidate: Option<&'u Unit>,
}

/// The functions of the target that serve a clause, the surest first.
pub fn readings<'u>(
    candidate: Tree<'u>,
    target: Tree<'u>,
    measure: &Measure<'_>,
) -> Vec<Reading<'u>> {
    let serving = candidate.serving(measure);
    let mut readings: Vec<Reading<'u>> = Vec::new();
    for (idx, unit) in target.units.iter().enumerate() {
        let clauses = target.served_by(idx, measure);
        if let Some((clause, _)) = clauses.first().filter(|_| unit.is_function) {
            let candidate = serving.get(clause).map(|(_, unit)| *unit);
            readings.push(Reading {
                target: unit,
                clauses,
                candidate,
            });
        }
    }
    let score = |reading: &Reading<'_>| reading.clauses[0].1;
    readings.sort_by(|a, b| {
        let by_place = || (&a.target.file, a.target.line).cmp(&(&b.target.file, b.target.line));
        score(b).total_cmp(&score(a)).then_with(by_place)
    });
    readings
}
