//! Estimators over plain numbers. What they are applied to is in [`super::analysis`].
//!
//! Each gives `None` rather than a number over nothing, says in its comment where its formula comes from, and does not
//! depend on the order of what it is given. Their answers are held against SciPy, statsmodels and pingouin by
//! `tests/oracles`.

mod correlation;
mod exact;
mod interval;
mod item_response;
mod line;
mod moments;
mod random;
mod reliability;
mod student;

pub use correlation::{partial, pearson};
pub use exact::{mcnemar, sign_flips};
pub use interval::{Interval, bias_corrected, centred, clustered_variance, percentiles, wilson};
pub use item_response::{Ability, ItemCurve, ItemResponse, item_response};
pub use line::Line;
pub use moments::{between_share, coefficient_of_variation, mean, median, population_sd};
pub use random::Random;
pub use reliability::{Reliabilities, kr20, lengthening};
pub use student::t_quantile;

/// Rates this close are a tie; real differences between pass rates are far larger.
const TIE: f64 = 1e-9;

/// Ranks from 1 for the largest; ties share the better rank (1, 2, 2, 4).
pub fn ranks(values: &[f64]) -> Vec<usize> {
    values
        .iter()
        .map(|value| 1 + values.iter().filter(|other| **other > value + TIE).count())
        .collect()
}

/// What the tests of the estimators share.
#[cfg(test)]
pub(super) fn close(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("there is an estimate");
    assert!(
        (actual - expected).abs() < 1e-9,
        "{actual} is not {expected}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_the_better_rank() {
        assert_eq!(ranks(&[0.5, 0.9, 0.5, 0.1]), [2, 1, 2, 4]);
        assert_eq!(ranks(&[0.1 + 0.2, 0.3]), [1, 1]);
    }
}
