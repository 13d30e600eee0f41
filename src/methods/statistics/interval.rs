//! Intervals of 95 %: Wilson's on an effective number of outcomes, and percentiles of resampled estimates.

use serde::Serialize;

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Of the draws that many must have an estimate, else it is too often undefined for an interval to mean anything.
const DEFINED_SHARE: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// Wilson's score interval (1927) of a rate over `n` outcomes; `n` can be an effective number, so it need not be whole.
pub fn wilson(rate: f64, n: f64) -> Interval {
    let z2 = Z * Z;
    let centre = (rate + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    Interval {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
    }
}

/// The variance of a rate when outcomes within a cluster are correlated; each cluster is (passed, counted).
///
/// With `g` clusters, `n` counted and `e` a cluster's sum of deviations from the rate: `g / (g - 1) × Σ e² / n²`, the
/// cluster-robust variance of a mean (Liang and Zeger 1986). `None` for fewer than two clusters.
pub fn clustered_variance(clusters: &[(usize, usize)]) -> Option<f64> {
    let full: Vec<(i128, i128)> = clusters
        .iter()
        .filter(|(_, counted)| *counted > 0)
        .map(|(passed, counted)| (*passed as i128, *counted as i128))
        .collect();
    if full.len() < 2 {
        return None;
    }
    let n_clusters = full.len() as f64;
    let passed: i128 = full.iter().map(|(passed, _)| passed).sum();
    let counted: i128 = full.iter().map(|(_, counted)| counted).sum();
    // Deviations as whole numbers, `counted` times too large, so that no order of summing matters.
    let squares: i128 = full
        .iter()
        .map(|(y, m)| (y * counted - passed * m).pow(2))
        .sum();
    Some(n_clusters / (n_clusters - 1.0) * (squares as f64) / (counted as f64).powi(4))
}

/// From the 2.5th to the 97.5th percentile of an estimate's draws. `None` when fewer than two draws or less than 95 % of
/// them have the estimate.
pub fn percentiles(draws: &[Option<f64>]) -> Option<Interval> {
    let sorted = defined(draws)?;
    Some(Interval {
        low: percentile(&sorted, 0.025),
        high: percentile(&sorted, 0.975),
    })
}

/// Percentiles of the draws, at shares that undo a bias: where the estimate itself is not the median of its draws, as
/// that of a gap between best and worst is not, the shares are moved by twice its distance in standard deviations
/// (Efron 1987, without acceleration). `None` as [`percentiles`], and when the estimate is outside of all draws.
pub fn bias_corrected(draws: &[Option<f64>], estimate: f64) -> Option<Interval> {
    let sorted = defined(draws)?;
    let below = sorted.iter().filter(|draw| **draw < estimate).count();
    let same = sorted.iter().filter(|draw| **draw == estimate).count();
    let share = (below as f64 + same as f64 / 2.0) / sorted.len() as f64;
    if share <= 0.0 || share >= 1.0 {
        return None;
    }
    let shift = 2.0 * normal_quantile(share);
    Some(Interval {
        low: percentile(&sorted, normal(shift - Z)),
        high: percentile(&sorted, normal(shift + Z)),
    })
}

/// Percentiles of the draws moved so that the estimate is their median: for an estimate that is not biased although its
/// draws are. `None` as [`percentiles`].
pub fn centred(draws: &[Option<f64>], estimate: f64) -> Option<Interval> {
    let sorted = defined(draws)?;
    let shift = estimate - percentile(&sorted, 0.5);
    let Interval { low, high } = percentiles(draws)?;
    Some(Interval {
        low: low + shift,
        high: high + shift,
    })
}

/// The draws that have the estimate, sorted; None when too few have it.
fn defined(draws: &[Option<f64>]) -> Option<Vec<f64>> {
    let mut defined: Vec<f64> = draws.iter().copied().flatten().collect();
    defined.sort_by(f64::total_cmp);
    let enough = defined.len() >= 2 && defined.len() as f64 >= DEFINED_SHARE * draws.len() as f64;
    enough.then_some(defined)
}

/// Between two values by a straight line (definition 7 of Hyndman and Fan 1996).
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let low = sorted[place.floor() as usize];
    let high = sorted[place.ceil() as usize];
    low + place.fract() * (high - low)
}

/// The normal distribution function, to 7.5e-8 (Abramowitz and Stegun 26.2.17): far closer than a few thousand draws.
fn normal(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal(-z);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let terms = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let tail = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    1.0 - tail * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// By bisection.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn wilson_as_printed() {
        // Newcombe 1998, table 1: 81 of 263, and 0 of 20.
        let check = |rate: f64, n: f64, low: f64, high: f64| {
            let interval = wilson(rate, n);
            assert!((interval.low - low).abs() < 5e-5, "{interval:?}");
            assert!((interval.high - high).abs() < 5e-5, "{interval:?}");
        };
        check(81.0 / 263.0, 263.0, 0.2553, 0.3662);
        check(0.0, 20.0, 0.0, 0.1611);
    }

    #[test]
    fn independent_outcomes_have_the_binomial_variance() {
        let single: Vec<_> = (0..10).map(|idx| (usize::from(idx < 8), 1)).collect();
        close(clustered_variance(&single), 0.8 * 0.2 / 9.0);
        // Ten copies of each outcome say nothing more.
        let copies: Vec<_> = single.iter().rev().map(|(y, _)| (10 * y, 10)).collect();
        close(clustered_variance(&copies), 0.8 * 0.2 / 9.0);
        assert_eq!(clustered_variance(&[(1, 2), (0, 0)]), None);
    }

    #[test]
    fn percentiles_by_hand() {
        let draws: Vec<Option<f64>> = (0..=40).rev().map(|n| Some(f64::from(n))).collect();
        let interval = percentiles(&draws).unwrap();
        close(Some(interval.low), 1.0);
        close(Some(interval.high), 39.0);
        assert_eq!(percentiles(&[Some(1.0)]), None);
        let corrected = bias_corrected(&draws, 20.0).unwrap();
        assert!(
            (corrected.low - 1.0).abs() < 1e-3,
            "no bias, no correction: {corrected:?}"
        );
        let corrected = bias_corrected(&draws, 15.0).unwrap();
        assert!(
            corrected.low < 0.5 && corrected.high < 37.0,
            "{corrected:?}"
        );
        assert_eq!(bias_corrected(&draws, 41.0), None);
        let moved = centred(&draws, 15.0).unwrap();
        close(Some(moved.low), -4.0);
        close(Some(moved.high), 34.0);
        let mut holes = draws;
        holes.extend([None; 3]);
        assert_eq!(percentiles(&holes), None, "3 of 44 draws lack it");
    }
}
