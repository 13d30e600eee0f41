//! How well clusters agree with known groups: pairwise precision, recall and F1, and the adjusted Rand index.
//!
//! Each item has two labels, the found one and the true one, and a source. Where nothing can be said the answer is none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    pub n_items: usize,
    pub n_found: usize,
    pub n_true: usize,
    #[serde(flatten)]
    pub pairs: Pairs,
    /// Of pairs whose items come from different sources.
    pub across: Pairs,
    /// 1 for the same groups, about 0 for groups drawn by chance.
    pub adjusted_rand: Option<f64>,
    /// What a reviewer has to do to reach the truth: pieces to be split off found groups, and then merges of pieces.
    pub n_splits: usize,
    pub n_merges: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pairs {
    /// Those that belong together.
    pub n_pairs: u64,
    /// Of the pairs put together, the share that belongs together.
    pub precision: Option<f64>,
    /// Of the pairs that belong together, the share put together.
    pub recall: Option<f64>,
    pub f1: Option<f64>,
}

/// An item: the group it was found in, the one it belongs to, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels<F, T, S> {
    pub found: F,
    pub truth: T,
    pub source: S,
}

/// Compares found groups with true ones.
pub fn agreement<F: Ord, T: Ord, S: Ord>(items: &[Labels<F, T, S>]) -> Agreement {
    let all = Counts::of(items.iter());
    let mut sources: BTreeMap<&S, Vec<&Labels<F, T, S>>> = BTreeMap::new();
    for item in items {
        sources.entry(&item.source).or_default().push(item);
    }
    let mut across = all;
    for items in sources.into_values() {
        let within = Counts::of(items.into_iter());
        across.together -= within.together;
        across.in_found -= within.in_found;
        across.in_truth -= within.in_truth;
    }
    let found: BTreeSet<&F> = items.iter().map(|item| &item.found).collect();
    let truth: BTreeSet<&T> = items.iter().map(|item| &item.truth).collect();
    let pieces: BTreeSet<(&F, &T)> = items
        .iter()
        .map(|item| (&item.found, &item.truth))
        .collect();
    let expected = share(all.in_found * all.in_truth, pairs_of(items.len() as f64));
    Agreement {
        n_items: items.len(),
        n_found: found.len(),
        n_true: truth.len(),
        pairs: all.pairs(),
        across: across.pairs(),
        adjusted_rand: expected.and_then(|expected| {
            let most = (all.in_found + all.in_truth) / 2.0 - expected;
            (most.abs() > 1e-12).then(|| (all.together - expected) / most)
        }),
        n_splits: pieces.len() - found.len(),
        n_merges: pieces.len() - truth.len(),
    }
}

/// Pairs: in one found group and in one true one, in one found group, in one true one.
#[derive(Clone, Copy)]
struct Counts {
    together: f64,
    in_found: f64,
    in_truth: f64,
}

impl Counts {
    fn of<'a, F: Ord + 'a, T: Ord + 'a, S: 'a>(
        items: impl Iterator<Item = &'a Labels<F, T, S>>,
    ) -> Self {
        let mut both: BTreeMap<(&F, &T), f64> = BTreeMap::new();
        let mut found: BTreeMap<&F, f64> = BTreeMap::new();
        let mut truth: BTreeMap<&T, f64> = BTreeMap::new();
        for item in items {
            *both.entry((&item.found, &item.truth)).or_default() += 1.0;
            *found.entry(&item.found).or_default() += 1.0;
            *truth.entry(&item.truth).or_default() += 1.0;
        }
        Self {
            together: both.into_values().map(pairs_of).sum(),
            in_found: found.into_values().map(pairs_of).sum(),
            in_truth: truth.into_values().map(pairs_of).sum(),
        }
    }

    fn pairs(&self) -> Pairs {
        Pairs {
            n_pairs: self.in_truth as u64,
            precision: share(self.together, self.in_found),
            recall: share(self.together, self.in_truth),
            f1: share(2.0 * self.together, self.in_found + self.in_truth),
        }
    }
}

fn pairs_of(n: f64) -> f64 {
    n * (n - 1.0) / 2.0
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From pairs of labels, all of one source.
    fn items(labels: &[(u8, u8)]) -> Vec<Labels<u8, u8, ()>> {
        let item = |(found, truth): &(u8, u8)| Labels {
            found: *found,
            truth: *truth,
            source: (),
        };
        labels.iter().map(item).collect()
    }

    #[test]
    fn agreement_of_known_groupings() {
        let check =
            |labels: &[(u8, u8)], f1: Option<f64>, rand: Option<f64>, by_hand: [usize; 2]| {
                let found = agreement(&items(labels));
                let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                    (a, b) => a == b,
                };
                assert!(near(found.pairs.f1, f1), "{labels:?} {found:?}");
                assert!(near(found.adjusted_rand, rand), "{labels:?} {found:?}");
                assert_eq!([found.n_splits, found.n_merges], by_hand, "{labels:?}");
            };
        check(
            &[(0, 5), (0, 5), (1, 6), (1, 6)],
            Some(1.0),
            Some(1.0),
            [0, 0],
        );
        // Everything apart, though two belong together: no pair was found.
        check(&[(0, 0), (1, 0), (2, 1)], Some(0.0), Some(0.0), [0, 1]);
        // One of two pairs is right: scikit-learn gives 0.5714… for these.
        check(
            &[(0, 0), (0, 0), (1, 1), (2, 1)],
            Some(2.0 / 3.0),
            Some(4.0 / 7.0),
            [0, 1],
        );
        // Two groups that are crossed: each is split, and the halves merged.
        check(
            &[(0, 0), (0, 1), (1, 0), (1, 1)],
            Some(0.0),
            Some(-0.5),
            [2, 2],
        );
        check(&[(0, 0), (1, 1)], None, None, [0, 0]);
        check(&[], None, None, [0, 0]);
    }

    #[test]
    fn pairs_across_sources_are_counted_by_themselves() {
        let item = |found: u8, truth: u8, source: &'static str| Labels {
            found,
            truth,
            source,
        };
        let items = [
            item(0, 0, "a"),
            item(0, 0, "a"),
            item(0, 0, "b"),
            item(1, 0, "b"),
            item(1, 1, "a"),
        ];
        // Across: 0–2 and 1–2 are right, 3–4 is wrong, 0–3 and 1–3 are missed.
        let across = agreement(&items).across;
        assert_eq!(across.n_pairs, 4);
        assert_eq!(across.precision, Some(2.0 / 3.0));
        assert_eq!(across.recall, Some(0.5));
    }

    #[test]
    fn the_order_of_items_plays_no_part() {
        let mut labels = [(0, 1), (0, 1), (1, 1), (2, 3), (2, 4)];
        let forward = agreement(&items(&labels));
        labels.reverse();
        assert_eq!(forward, agreement(&items(&labels)));
    }
}
