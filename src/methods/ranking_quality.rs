//! How good a ranking is, given judgements: average precision, nDCG and work saved over sampling.
//!
//! Gains are listed in the order of the ranking: 0 not relevant, 1 in part, 2 fully. Where nothing can be said the
//! answer is none, never 0.

/// The mean, over the relevant items, of the precision at their places. Relevant is a gain above 0.
pub fn average_precision(gains: &[u8]) -> Option<f64> {
    let mut n_relevant = 0u32;
    let mut sum = 0.0;
    for (idx, gain) in gains.iter().enumerate() {
        if *gain > 0 {
            n_relevant += 1;
            sum += f64::from(n_relevant) / (idx + 1) as f64;
        }
    }
    (n_relevant > 0).then(|| sum / f64::from(n_relevant))
}

/// Normalised discounted cumulative gain over the first `n` places, with gain 2^g − 1.
pub fn ndcg(gains: &[u8], n: usize) -> Option<f64> {
    let dcg = |gains: &[u8]| -> f64 {
        gains
            .iter()
            .take(n)
            .enumerate()
            .map(|(idx, gain)| (f64::from(*gain).exp2() - 1.0) / (idx as f64 + 2.0).log2())
            .sum()
    };
    let mut ideal = gains.to_vec();
    ideal.sort_by(|a, b| b.cmp(a));
    let best = dcg(&ideal);
    (best > 0.0).then(|| dcg(gains) / best)
}

/// Work saved over sampling: the share that need not be read once `recall` of the relevant were met, less what
/// reading in random order would save.
pub fn work_saved(gains: &[u8], recall: f64) -> Option<f64> {
    let n_relevant = gains.iter().filter(|gain| **gain > 0).count();
    if n_relevant == 0 {
        return None;
    }
    // A little less, so that 0.95 × 20 is met by 19 whatever the rounding.
    let needed = recall * n_relevant as f64 - 1e-9;
    let mut n_met = 0usize;
    let mut n_read = 0usize;
    for gain in gains {
        if n_met as f64 >= needed {
            break;
        }
        n_read += 1;
        n_met += usize::from(*gain > 0);
    }
    let n = gains.len();
    Some((n - n_read) as f64 / n as f64 - (1.0 - recall))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: Option<f64>, expected: Option<f64>) {
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
            }
            _ => assert_eq!(found, expected),
        }
    }

    #[test]
    fn average_precision_of_known_rankings() {
        check(average_precision(&[2, 1, 0, 0]), Some(1.0));
        check(
            average_precision(&[0, 2, 0, 1]),
            Some((1.0 / 2.0 + 2.0 / 4.0) / 2.0),
        );
        check(average_precision(&[0, 0]), None);
        check(average_precision(&[]), None);
    }

    #[test]
    fn ndcg_of_known_rankings() {
        check(ndcg(&[2, 1, 0], 50), Some(1.0));
        let ideal = 3.0 + 1.0 / 3f64.log2();
        check(ndcg(&[1, 2], 50), Some((1.0 + 3.0 / 3f64.log2()) / ideal));
        check(ndcg(&[0, 2], 1), Some(0.0));
        check(ndcg(&[0], 50), None);
    }

    #[test]
    fn work_saved_of_known_rankings() {
        let mut gains = vec![2; 20];
        gains.extend(vec![0; 80]);
        check(work_saved(&gains, 0.95), Some(0.81 - 0.05));
        gains.reverse();
        check(work_saved(&gains, 0.95), Some(0.01 - 0.05));
        check(work_saved(&[0, 0], 0.95), None);
    }
}
