//! Duplicates told from other pairs by a few figures of each pair: logistic regression (linfa) and a threshold, both
//! learned from pairs that are known. What it learns is a weight a figure.

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_logistic::LogisticRegression;
use ndarray::{Array1, Array2};

/// The figures of a pair, and whether it is a duplicate.
pub type Known<const N: usize> = ([f64; N], bool);

#[derive(Debug, Clone, PartialEq)]
pub struct Classifier<const N: usize> {
    /// Of the figures in units of their spread among the pairs that were learned from.
    pub weights: [f64; N],
    means: [f64; N],
    spreads: [f64; N],
    /// From this score on a pair is a duplicate.
    threshold: f64,
}

impl<const N: usize> Classifier<N> {
    /// None when all pairs are of one kind.
    pub fn learn(pairs: &[Known<N>]) -> Option<Self> {
        let n_duplicates = pairs.iter().filter(|(_, duplicate)| *duplicate).count();
        if n_duplicates == 0 || n_duplicates == pairs.len() {
            return None;
        }
        let n = pairs.len() as f64;
        let mean = |of: &dyn Fn(&[f64; N]) -> f64| {
            pairs.iter().map(|(figures, _)| of(figures)).sum::<f64>() / n
        };
        let means: [f64; N] = std::array::from_fn(|idx| mean(&|figures| figures[idx]));
        let spreads = std::array::from_fn(|idx| {
            let variance = mean(&|figures| (figures[idx] - means[idx]).powi(2));
            variance.sqrt().max(1e-12)
        });
        let mut classifier = Self {
            weights: [0.0; N],
            means,
            spreads,
            threshold: 0.0,
        };
        let mut records = Array2::<f64>::zeros((pairs.len(), N));
        for (row, (figures, _)) in pairs.iter().enumerate() {
            for (column, value) in classifier.standard(figures).into_iter().enumerate() {
                records[[row, column]] = value;
            }
        }
        let targets: Array1<bool> = pairs.iter().map(|(_, duplicate)| *duplicate).collect();
        let model = LogisticRegression::default()
            .alpha(1.0)
            .fit(&Dataset::new(records, targets))
            .ok()?;
        // The model speaks for the kind of which there are more.
        let sign = if model.labels().pos.class { 1.0 } else { -1.0 };
        classifier.weights = std::array::from_fn(|idx| sign * model.params()[idx]);
        let scored = pairs
            .iter()
            .map(|(figures, duplicate)| (classifier.score(figures), *duplicate));
        (classifier.threshold, _) = best_threshold(scored.collect())?;
        Some(classifier)
    }

    pub fn is_duplicate(&self, figures: &[f64; N]) -> bool {
        self.score(figures) >= self.threshold
    }

    fn standard(&self, figures: &[f64; N]) -> [f64; N] {
        std::array::from_fn(|idx| (figures[idx] - self.means[idx]) / self.spreads[idx])
    }

    fn score(&self, figures: &[f64; N]) -> f64 {
        let figures = self.standard(figures);
        self.weights.iter().zip(figures).map(|(w, x)| w * x).sum()
    }
}

/// The score from which on calling pairs duplicates is right most often, and the F1 there; the highest of those that
/// are as good. None without duplicates.
fn best_threshold(mut scored: Vec<(f64, bool)>) -> Option<(f64, f64)> {
    let n_duplicates = scored.iter().filter(|(_, duplicate)| *duplicate).count();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut found = 0;
    let mut best: Option<(f64, f64)> = None;
    for (idx, (score, duplicate)) in scored.iter().enumerate() {
        found += usize::from(*duplicate);
        // Pairs of one score are called the same.
        if scored.get(idx + 1).is_some_and(|next| next.0 == *score) {
            continue;
        }
        let f1 = 2.0 * found as f64 / (idx + 1 + n_duplicates) as f64;
        if best.is_none_or(|(_, most)| f1 > most + 1e-12) {
            best = Some((*score, f1));
        }
    }
    best.filter(|_| n_duplicates > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_duplicates_is_learned_whichever_kind_is_more_common() {
        // The first figure tells them, the second does not, the third is always the same.
        for n_duplicates in [4, 16] {
            let pairs: Vec<Known<3>> = (0..20)
                .map(|n| {
                    let duplicate = n < n_duplicates;
                    let first = f64::from(n % 3) + if duplicate { 100.0 } else { 90.0 };
                    ([first, f64::from(n % 2), 7.0], duplicate)
                })
                .collect();
            let classifier = Classifier::learn(&pairs).expect("there are both kinds");
            for (figures, duplicate) in &pairs {
                assert_eq!(classifier.is_duplicate(figures), *duplicate, "{figures:?}");
            }
            let [first, second, third] = classifier.weights;
            assert!(first > 2.0 * second.abs(), "{first} {second}");
            assert!(third.abs() < 1e-6, "{third}");
        }
    }

    #[test]
    fn nothing_is_learned_from_one_kind() {
        assert_eq!(Classifier::<1>::learn(&[]), None);
        assert_eq!(Classifier::learn(&[([1.0], true), ([2.0], true)]), None);
        assert_eq!(Classifier::learn(&[([1.0], false)]), None);
    }

    #[test]
    fn the_threshold_is_where_most_is_right() {
        let check = |scored: &[(f64, bool)], expected: Option<(f64, f64)>| {
            assert_eq!(best_threshold(scored.to_vec()), expected, "{scored:?}");
        };
        check(&[], None);
        check(&[(1.0, false)], None);
        check(&[(1.0, false), (3.0, true), (2.0, true)], Some((2.0, 1.0)));
        // Two of one score cannot be told apart.
        check(&[(1.0, false), (1.0, true)], Some((1.0, 2.0 / 3.0)));
        check(
            &[(3.0, true), (2.0, false), (1.0, true)],
            Some((1.0, 4.0 / 5.0)),
        );
    }
}
