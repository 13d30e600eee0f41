//! Which outcome of a unit counts when several machines ran it. The order in which they are given decides only between
//! outcomes that say the same, so whoever ran first, last, or better makes no difference.

use crate::domain::verdict::Outcome;

/// What becomes of the outcomes of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// All that are valid ended alike; this one stands for them. Of none that is valid, the first.
    Agreed(usize),
    /// Two that are valid ended differently; nobody knows which of them counts.
    Unstable(usize, usize),
}

/// Chooses among the outcomes of one unit; none of no outcomes.
pub fn choose(outcomes: &[&Outcome]) -> Option<Choice> {
    let valid = || (0..outcomes.len()).filter(|idx| outcomes[*idx].is_valid());
    let Some(first) = valid().next() else {
        return (!outcomes.is_empty()).then_some(Choice::Agreed(0));
    };
    let other = valid().find(|idx| outcomes[*idx].reason() != outcomes[first].reason());
    Some(match other {
        Some(other) => Choice::Unstable(first, other),
        None => Choice::Agreed(first),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::verdict::{Fault, FaultKind, Reason};

    #[test]
    fn valid_beats_invalid_and_contradictions_beat_nobody() {
        let pass = &Outcome::Passed;
        let fail = &Outcome::failed(Reason::Assertion);
        let late = &Outcome::failed(Reason::Timeout);
        let broken = &Outcome::Invalid(Fault {
            kind: FaultKind::Sandbox,
            message: "gone".into(),
        });
        let check = |outcomes: &[&Outcome], expected| assert_eq!(choose(outcomes), expected);
        check(&[], None);
        check(&[broken, broken], Some(Choice::Agreed(0)));
        check(&[broken, pass], Some(Choice::Agreed(1)));
        check(&[fail, broken, fail], Some(Choice::Agreed(0)));
        check(&[pass, fail, pass], Some(Choice::Unstable(0, 1)));
        check(&[fail, pass, pass], Some(Choice::Unstable(0, 1)));
        check(&[broken, fail, late], Some(Choice::Unstable(1, 2)));
    }
}
