//! The order of what is unread, learned from what was read: logistic regression (linfa) over the terms that tell
//! relevant issues from others. What it learns is a weight a term, so that a place can be explained.

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_logistic::LogisticRegression;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

/// Dimensions in ascending order with their values.
pub type SparseVector = Vec<(u32, f32)>;

/// `pipeline/review.toml`, table `feedback`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Issues that are read in the order of the ranking before anything is learned.
    pub from: usize,
    /// Terms that are learned from, the most telling ones.
    pub n_terms: usize,
    /// How strongly weights are held small.
    pub penalty: f64,
}

/// What was learned: terms with their weights, in the order of their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    weights: SparseVector,
}

impl Learned {
    /// How relevant an issue seems; comparable among issues only.
    pub fn score(&self, issue: &SparseVector) -> f64 {
        self.parts(issue).map(|(_, part)| part).sum()
    }

    /// The terms of an issue with what each adds to its score.
    pub fn parts<'a>(&'a self, issue: &'a SparseVector) -> impl Iterator<Item = (u32, f64)> + 'a {
        issue.iter().filter_map(|(dim, value)| {
            let idx = self
                .weights
                .binary_search_by_key(dim, |(dim, _)| *dim)
                .ok()?;
            Some((*dim, f64::from(self.weights[idx].1) * f64::from(*value)))
        })
    }
}

/// Learns from issues that were read. None while there are too few, or all are of one kind.
pub fn learn(read: &[(&SparseVector, bool)], settings: &Settings) -> Option<Learned> {
    let n_relevant = read.iter().filter(|(_, relevant)| *relevant).count();
    if read.len() < settings.from.max(2) || n_relevant == 0 || n_relevant == read.len() {
        return None;
    }
    let dims = telling(read, n_relevant, settings.n_terms);
    let mut records = Array2::<f64>::zeros((read.len(), dims.len()));
    for (row, (issue, _)) in read.iter().enumerate() {
        for (dim, value) in *issue {
            if let Ok(column) = dims.binary_search(dim) {
                records[[row, column]] = f64::from(*value);
            }
        }
    }
    let targets: Array1<bool> = read.iter().map(|(_, relevant)| *relevant).collect();
    let model = LogisticRegression::default()
        .alpha(settings.penalty)
        .max_iterations(60)
        .fit(&Dataset::new(records, targets))
        .ok()?;
    let values = model.params().iter().map(|weight| *weight as f32);
    Some(Learned {
        weights: dims.into_iter().zip(values).collect(),
    })
}

/// The terms whose weight is shared most unevenly between relevant issues and others (chi squared), in the order of
/// their numbers; terms of one issue say nothing about others.
fn telling(read: &[(&SparseVector, bool)], n_relevant: usize, n_terms: usize) -> Vec<u32> {
    let n_dims = read
        .iter()
        .filter_map(|(issue, _)| issue.last())
        .map(|(dim, _)| *dim as usize + 1)
        .max()
        .unwrap_or(0);
    // Holders, weight in all issues, weight in relevant ones.
    let mut sums = vec![(0u32, 0f64, 0f64); n_dims];
    for (issue, relevant) in read {
        for (dim, value) in *issue {
            let sum = &mut sums[*dim as usize];
            sum.0 += 1;
            sum.1 += f64::from(*value);
            sum.2 += f64::from(*value) * f64::from(u8::from(*relevant));
        }
    }
    let share = n_relevant as f64 / read.len() as f64;
    let mut told: Vec<(f64, u32)> = sums
        .into_iter()
        .zip(0u32..)
        .filter(|((n_holders, all, _), _)| *n_holders >= 2 && *all > 0.0)
        .map(|((_, all, relevant), dim)| {
            let off = relevant - all * share;
            (off * off / (all * share * (1.0 - share)), dim)
        })
        .collect();
    told.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    told.truncate(n_terms);
    let mut dims: Vec<u32> = told.into_iter().map(|(_, dim)| dim).collect();
    dims.sort_unstable();
    dims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            from: 4,
            n_terms: 10,
            penalty: 0.2,
        }
    }

    #[test]
    fn what_was_relevant_before_comes_first() {
        // 0 is common to all, 1 tells relevant ones, 2 tells others, 7 was never seen.
        let vectors: [SparseVector; 4] = [
            vec![(0, 0.6), (1, 0.8)],
            vec![(0, 0.6), (2, 0.8)],
            vec![(0, 0.8), (1, 0.6)],
            vec![(0, 0.8), (2, 0.6)],
        ];
        let read: Vec<(&SparseVector, bool)> =
            vectors.iter().zip([true, false, true, false]).collect();
        let learned = learn(&read, &settings()).expect("enough was read");
        let score = |issue: &[(u32, f32)]| learned.score(&issue.to_vec());
        assert!(score(&[(0, 0.5), (1, 0.5)]) > score(&[(0, 0.5), (7, 0.9)]));
        assert!(score(&[(0, 0.5), (7, 0.9)]) > score(&[(0, 0.5), (2, 0.5)]));
        let issue = vec![(0, 0.5), (1, 0.5), (7, 0.9)];
        let told: Vec<u32> = learned.parts(&issue).map(|(dim, _)| dim).collect();
        assert_eq!(told, [0, 1]);
        assert_eq!(
            learn(&read, &settings()),
            Some(learned),
            "the same each time"
        );
    }

    #[test]
    fn nothing_is_learned_from_too_little() {
        let vector: SparseVector = vec![(0, 1.0)];
        let check = |labels: &[bool]| {
            let read: Vec<_> = labels.iter().map(|label| (&vector, *label)).collect();
            assert_eq!(learn(&read, &settings()), None, "{labels:?}");
        };
        check(&[]);
        check(&[true, false]);
        check(&[true; 5]);
        check(&[false; 5]);
    }
}
