//! Estimators over plain numbers: means, deviations, correlations, ranks, reliability, intervals.
//!
//! Each gives `None` rather than a number over nothing. What they are applied to is in [`super::analysis`].

use serde::Serialize;

/// Rates this close are a tie; real differences between pass rates are far larger.
const TIE: f64 = 1e-9;

/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation with `n` below the sum, not `n - 1`: the builds are all there are, not a sample.
pub fn population_sd(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares = values.iter().map(|value| (value - centre).powi(2));
    Some((squares.sum::<f64>() / values.len() as f64).sqrt())
}

/// Pearson's correlation of pairs. Fewer than three pairs, or a side that does not vary, correlate with nothing.
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let n = pairs.len() as f64;
    let centre_x = pairs.iter().map(|(x, _)| x).sum::<f64>() / n;
    let centre_y = pairs.iter().map(|(_, y)| y).sum::<f64>() / n;
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - centre_x, y - centre_y);
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    let varies = |squares: f64| squares > n * TIE * TIE;
    (varies(xx) && varies(yy)).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

/// The Kuder-Richardson formula 20 over persons × items, here candidates × cases; all rows are equally long.
///
/// With `k` items, `p` the share of persons who pass an item, and the population variance of the persons' totals:
/// `k / (k - 1) × (1 - Σ p (1 - p) / variance)`. `None` for fewer than two persons or items, or equal totals.
pub fn kr20(persons: &[Vec<bool>]) -> Option<f64> {
    let n = persons.len() as i128;
    let k = persons.first()?.len();
    assert!(
        persons.iter().all(|person| person.len() == k),
        "every person has met every item"
    );
    if n < 2 || k < 2 {
        return None;
    }
    // Both variances are kept as whole numbers, n² times too large, so that no order of summing matters.
    let item_variance: i128 = (0..k)
        .map(|item| {
            let passed = persons.iter().filter(|person| person[item]).count() as i128;
            passed * (n - passed)
        })
        .sum();
    let totals = persons
        .iter()
        .map(|person| person.iter().filter(|passed| **passed).count() as i128);
    let (sum, squares) = totals.fold((0, 0), |(sum, squares), total| {
        (sum + total, squares + total * total)
    });
    let total_variance = n * squares - sum * sum;
    let k = k as f64;
    (total_variance > 0)
        .then(|| k / (k - 1.0) * (1.0 - item_variance as f64 / total_variance as f64))
}

/// Ranks from 1 for the largest; ties share the better rank (1, 2, 2, 4).
pub fn ranks(values: &[f64]) -> Vec<usize> {
    values
        .iter()
        .map(|value| 1 + values.iter().filter(|other| **other > value + TIE).count())
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A 95 % interval of a pass rate when outcomes within a cluster are correlated.
///
/// Each cluster is (passed, counted). It is Wilson's interval on the effective number of independent outcomes: the
/// number counted ÷ the design effect, where the design effect is the variance of the rate between clusters ÷ the
/// variance that independent outcomes would have. The effective number lies between the number of clusters and the
/// number counted; when all passed or all failed the data do not show the correlation, and it is the number of
/// clusters. `None` for fewer than two clusters.
pub fn clustered_interval(clusters: &[(usize, usize)]) -> Option<Interval> {
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
    let n = counted as f64;
    let rate = passed as f64 / n;
    let effective = if passed == 0 || passed == counted {
        n_clusters
    } else {
        // Residuals as whole numbers, `counted` times too large.
        let squares: i128 = full
            .iter()
            .map(|(y, m)| (y * counted - passed * m).pow(2))
            .sum();
        let between = n_clusters / (n_clusters - 1.0) * (squares as f64) / n.powi(4);
        let independent = rate * (1.0 - rate) / n;
        (n * independent / between).clamp(n_clusters.min(n), n)
    };
    let z2 = Z * Z;
    let centre = (rate + z2 / (2.0 * effective)) / (1.0 + z2 / effective);
    let half = Z / (1.0 + z2 / effective)
        * (rate * (1.0 - rate) / effective + z2 / (4.0 * effective * effective)).sqrt();
    Some(Interval {
        low: (centre - half).max(0.0),
        high: (centre + half).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: Option<f64>, expected: f64) {
        let actual = actual.expect("there is an estimate");
        assert!(
            (actual - expected).abs() < 1e-9,
            "{actual} is not {expected}"
        );
    }

    #[test]
    fn rates_of_three_builds_as_printed() {
        let check = |passed: [usize; 3], expected: &str| {
            let rates = passed.map(|n| 100.0 * n as f64 / 328.0);
            let printed = format!(
                "{:.2} ± {:.2}",
                mean(&rates).unwrap(),
                population_sd(&rates).unwrap()
            );
            assert_eq!(printed, expected);
        };
        check([173, 174, 175], "53.05 ± 0.25");
        check([88, 91, 91], "27.44 ± 0.43");
        check([150, 150, 151], "45.83 ± 0.14");
    }

    #[test]
    fn nothing_over_nothing() {
        assert_eq!(mean(&[]), None);
        assert_eq!(population_sd(&[]), None);
        assert_eq!(pearson(&[(1.0, 2.0), (2.0, 1.0)]), None);
        assert_eq!(pearson(&[(1.0, 2.0), (1.0, 1.0), (1.0, 5.0)]), None);
        assert_eq!(kr20(&[]), None);
        assert_eq!(kr20(&[vec![true, false]]), None);
        assert_eq!(kr20(&[vec![true], vec![false]]), None);
        assert_eq!(kr20(&[vec![true, false], vec![false, true]]), None);
        assert_eq!(clustered_interval(&[(1, 2), (0, 0)]), None);
        close(population_sd(&[0.3]), 0.0);
    }

    #[test]
    fn pearson_of_known_pairs() {
        close(pearson(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]), 1.0);
        close(pearson(&[(1.0, 6.0), (2.0, 4.0), (3.0, 2.0)]), -1.0);
        // Means 2 and 3; products of deviations sum to 1, squares to 2 and 2.
        close(pearson(&[(1.0, 2.0), (2.0, 4.0), (3.0, 3.0)]), 0.5);
    }

    #[test]
    fn kr20_by_hand() {
        // Shares passing: 3/4, 2/4, 1/4; sum of p q = 3/16 + 4/16 + 3/16 = 5/8.
        // Totals 3, 2, 1, 0: population variance 5/4. 3/2 × (1 - 1/2) = 3/4.
        let mut persons = vec![
            vec![true, true, true],
            vec![true, true, false],
            vec![true, false, false],
            vec![false, false, false],
        ];
        close(kr20(&persons), 0.75);
        persons.rotate_left(1);
        for person in &mut persons {
            person.rotate_left(1);
        }
        assert_eq!(kr20(&persons), Some(0.75));
        // Items that exclude each other are worse than unrelated. p q: 2/9 three times, so 2/3;
        // totals 1, 1, 1 do not vary, but with a fourth person who passes all of them they do:
        // p = 2/4 each, so 3/4; totals 1, 1, 1, 3: variance 3/4. 3/2 × (1 - 1) = 0.
        close(
            kr20(&[
                vec![true, false, false],
                vec![false, true, false],
                vec![false, false, true],
                vec![true, true, true],
            ]),
            0.0,
        );
    }

    #[test]
    fn ties_share_the_better_rank() {
        assert_eq!(ranks(&[0.5, 0.9, 0.5, 0.1]), [2, 1, 2, 4]);
        assert_eq!(ranks(&[0.1 + 0.2, 0.3]), [1, 1]);
    }

    #[test]
    fn independent_outcomes_give_wilson() {
        // Clusters of one: Wilson's interval of 8 of 10.
        let clusters: Vec<_> = (0..10).map(|idx| (usize::from(idx < 8), 1)).collect();
        let interval = clustered_interval(&clusters).unwrap();
        assert!((interval.low - 0.490).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 0.943).abs() < 1e-3, "{interval:?}");
        // Ten copies of each outcome say nothing more.
        let copies: Vec<_> = clusters.iter().map(|(y, _)| (10 * y, 10)).collect();
        let copied = clustered_interval(&copies).unwrap();
        assert!((copied.low - interval.low).abs() < 1e-9, "{copied:?}");
        let mut reversed = copies.clone();
        reversed.reverse();
        assert_eq!(clustered_interval(&reversed), Some(copied));
        // All passed: three in ten clusters, not thirty outcomes.
        let all: Vec<_> = (0..10).map(|_| (3, 3)).collect();
        assert!(clustered_interval(&all).unwrap().low < 0.75);
    }

    /// A generator small enough to read: xorshift64*.
    struct Dice(u64);

    impl Dice {
        fn unit(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Families of one to six variants which, with chance `same`, all end as the seed does.
    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        for (truth, same) in [(0.5, 0.0), (0.5, 0.8), (0.8, 0.8), (0.3, 0.4)] {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
            let n_trials = 2000;
            let mut covered = 0;
            let mut covered_naive = 0;
            for _ in 0..n_trials {
                let clusters: Vec<(usize, usize)> = (0..60)
                    .map(|family| {
                        let size = 1 + family % 6;
                        let copies = dice.unit() < same;
                        let seed = dice.unit() < truth;
                        let passed = (0..size)
                            .filter(|_| if copies { seed } else { dice.unit() < truth })
                            .count();
                        (passed, size)
                    })
                    .collect();
                let holds = |interval: Interval| interval.low <= truth && truth <= interval.high;
                covered += usize::from(holds(clustered_interval(&clusters).unwrap()));
                let single: Vec<(usize, usize)> = clusters
                    .iter()
                    .flat_map(|(passed, size)| (0..*size).map(|i| (usize::from(i < *passed), 1)))
                    .collect();
                covered_naive += usize::from(holds(clustered_interval(&single).unwrap()));
            }
            let share = covered as f64 / n_trials as f64;
            assert!(
                (0.925..=0.985).contains(&share),
                "covered {share} at {truth}, {same}"
            );
            let naive = covered_naive as f64 / n_trials as f64;
            if same > 0.5 {
                assert!(
                    naive < 0.85,
                    "the clusters matter, else the test shows nothing: {naive}"
                );
            }
        }
    }
}
