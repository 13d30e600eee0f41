//! Exact tests of paired outcomes: nothing is approximated, however few pairs differ.

/// The two-sided p value of a sum of paired differences when the sign of each could as well be the other one: the
/// share of all 2ⁿ choices of signs whose sum is at least as far from 0 (Fisher 1935). The distribution is built up
/// difference by difference, so that 2ⁿ is never counted.
///
/// `None` when no pair differs.
pub fn sign_flips(differences: &[i64]) -> Option<f64> {
    let sizes: Vec<usize> = differences
        .iter()
        .filter(|difference| **difference != 0)
        .map(|difference| usize::try_from(difference.unsigned_abs()).expect("sums of cases"))
        .collect();
    if sizes.is_empty() {
        return None;
    }
    let whole: usize = sizes.iter().sum();
    let observed = differences.iter().sum::<i64>().unsigned_abs() as usize;
    // The chance of each sum of those whose sign is plus.
    let mut chances = vec![0.0; whole + 1];
    chances[0] = 1.0;
    let mut reached = 0;
    for size in sizes {
        reached += size;
        for sum in (0..=reached).rev() {
            let with = if sum >= size {
                chances[sum - size]
            } else {
                0.0
            };
            chances[sum] = 0.5 * (chances[sum] + with);
        }
    }
    let far = |positive: usize| (2 * positive).abs_diff(whole) >= observed;
    let share: f64 = (0..=whole)
        .filter(|sum| far(*sum))
        .map(|sum| chances[sum])
        .sum();
    Some(share.min(1.0))
}

/// McNemar's exact test: of the pairs that differ, `only_first` and `only_second` are a fair coin's under the null
/// hypothesis (two-sided binomial test). `None` when no pair differs.
pub fn mcnemar(only_first: usize, only_second: usize) -> Option<f64> {
    let signs = std::iter::repeat_n(1, only_first).chain(std::iter::repeat_n(-1, only_second));
    sign_flips(&signs.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn a_fair_coin() {
        // 9 of 10 heads: (1 + 10) × 2 / 1024.
        close(mcnemar(9, 1), 22.0 / 1024.0);
        close(mcnemar(1, 9), 22.0 / 1024.0);
        close(mcnemar(3, 3), 1.0);
        close(mcnemar(5, 0), 2.0 / 32.0);
        assert_eq!(mcnemar(0, 0), None);
    }

    #[test]
    fn signs_counted_by_hand() {
        // Sums of ±3 ±1 ±1: 5, 3, 3, 1 and their mirrors; at least 3 away from 0: six of eight.
        close(sign_flips(&[3, 1, -1]), 6.0 / 8.0);
        close(sign_flips(&[3, 1, 1]), 2.0 / 8.0);
        close(sign_flips(&[0, 3, 0, 1, 1]), 2.0 / 8.0);
        assert_eq!(sign_flips(&[0, 0]), None);
        assert_eq!(sign_flips(&[]), None);
    }

    #[test]
    fn variants_that_go_together_are_one_observation() {
        let apart = sign_flips(&[1; 12]).unwrap();
        let together = sign_flips(&[4, 4, 4]).unwrap();
        assert!(apart < 0.001 && together > 0.2, "{apart} {together}");
    }
}
