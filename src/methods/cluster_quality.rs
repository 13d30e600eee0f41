//! How well clusters agree with known groups: pairwise precision, recall and F1, and the adjusted Rand index.
//!
//! Items come as two labels each, the found one and the true one. Where nothing can be said the answer is none.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    pub n_items: usize,
    pub n_found: usize,
    pub n_true: usize,
    /// Of the pairs put together, the share that belongs together.
    pub precision: Option<f64>,
    /// Of the pairs that belong together, the share put together.
    pub recall: Option<f64>,
    pub f1: Option<f64>,
    /// 1 for the same groups, about 0 for groups drawn by chance.
    pub adjusted_rand: Option<f64>,
}

/// Compares found labels with true ones.
pub fn agreement<F: Ord, T: Ord>(labels: &[(F, T)]) -> Agreement {
    let mut both: BTreeMap<(&F, &T), f64> = BTreeMap::new();
    let mut found: BTreeMap<&F, f64> = BTreeMap::new();
    let mut truth: BTreeMap<&T, f64> = BTreeMap::new();
    for (f, t) in labels {
        *both.entry((f, t)).or_default() += 1.0;
        *found.entry(f).or_default() += 1.0;
        *truth.entry(t).or_default() += 1.0;
    }
    let pairs = |n: f64| n * (n - 1.0) / 2.0;
    let together: f64 = both.values().map(|n| pairs(*n)).sum();
    let in_found: f64 = found.values().map(|n| pairs(*n)).sum();
    let in_truth: f64 = truth.values().map(|n| pairs(*n)).sum();
    let all = pairs(labels.len() as f64);
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    let expected = share(in_found * in_truth, all);
    Agreement {
        n_items: labels.len(),
        n_found: found.len(),
        n_true: truth.len(),
        precision: share(together, in_found),
        recall: share(together, in_truth),
        f1: share(2.0 * together, in_found + in_truth),
        adjusted_rand: expected.and_then(|expected| {
            let most = (in_found + in_truth) / 2.0 - expected;
            (most.abs() > 1e-12).then(|| (together - expected) / most)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_of_known_groupings() {
        let check = |labels: &[(u8, u8)], f1: Option<f64>, rand: Option<f64>| {
            let found = agreement(labels);
            let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                (a, b) => a == b,
            };
            assert!(near(found.f1, f1), "{labels:?} {found:?}");
            assert!(near(found.adjusted_rand, rand), "{labels:?} {found:?}");
        };
        check(&[(0, 5), (0, 5), (1, 6), (1, 6)], Some(1.0), Some(1.0));
        // Everything apart, though two belong together: no pair was found.
        check(&[(0, 0), (1, 0), (2, 1)], Some(0.0), Some(0.0));
        // One of two pairs is right: scikit-learn gives 0.5714… for these.
        check(
            &[(0, 0), (0, 0), (1, 1), (2, 1)],
            Some(2.0 / 3.0),
            Some(4.0 / 7.0),
        );
        check(&[(0, 0), (1, 1)], None, None);
        check(&[], None, None);
    }

    #[test]
    fn the_order_of_items_plays_no_part() {
        let labels = [(0, 1), (0, 1), (1, 1), (2, 3), (2, 4)];
        let mut reversed = labels;
        reversed.reverse();
        assert_eq!(agreement(&labels), agreement(&reversed));
    }
}
