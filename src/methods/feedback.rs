//! The order of what is unread, learned from what was read: logistic regression (linfa) over the terms that tell
//! relevant issues from others, and over the place in the ranking by the document. What it learns is a weight a term, so
//! that a place can be explained; the ranking is one more column, so that it counts as much as it proves to be worth.

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

/// What is known of an issue before it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Its terms with their weights, at length 1.
    pub terms: SparseVector,
    /// Share of all issues that the ranking by the document puts behind it.
    pub ranked_before: f32,
}

/// What was learned: terms with their weights, in the order of their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    terms: SparseVector,
    ranked_before: f64,
}

impl Learned {
    /// How relevant an issue seems; comparable among issues only.
    pub fn score(&self, issue: &Features) -> f64 {
        let terms: f64 = self.parts(issue).map(|(_, part)| part).sum();
        terms + self.ranked_before * f64::from(issue.ranked_before)
    }

    /// The terms of an issue with what each adds to its score.
    pub fn parts<'a>(&'a self, issue: &'a Features) -> impl Iterator<Item = (u32, f64)> + 'a {
        issue.terms.iter().filter_map(|(dim, value)| {
            let idx = self.terms.binary_search_by_key(dim, |(dim, _)| *dim).ok()?;
            Some((*dim, f64::from(self.terms[idx].1) * f64::from(*value)))
        })
    }
}

/// Learns from issues that were read. None while there are too few, or all are of one kind.
pub fn learn(read: &[(&Features, bool)], settings: &Settings) -> Option<Learned> {
    let n_relevant = read.iter().filter(|(_, relevant)| *relevant).count();
    if read.len() < settings.from.max(2) || n_relevant == 0 || n_relevant == read.len() {
        return None;
    }
    let dims = telling(read, n_relevant, settings.n_terms);
    // The last column is the ranking's.
    let mut records = Array2::<f64>::zeros((read.len(), dims.len() + 1));
    for (row, (issue, _)) in read.iter().enumerate() {
        for (dim, value) in &issue.terms {
            if let Ok(column) = dims.binary_search(dim) {
                records[[row, column]] = f64::from(*value);
            }
        }
        records[[row, dims.len()]] = f64::from(issue.ranked_before);
    }
    let targets: Array1<bool> = read.iter().map(|(_, relevant)| *relevant).collect();
    let model = LogisticRegression::default()
        .alpha(settings.penalty)
        .max_iterations(60)
        .fit(&Dataset::new(records, targets))
        .ok()?;
    // The model speaks for the kind of which more were read.
    let sign = if model.labels().pos.class { 1.0 } else { -1.0 };
    let weights: Vec<f64> = model.params().iter().map(|weight| sign * weight).collect();
    let (ranked_before, terms) = weights.split_last()?;
    Some(Learned {
        terms: dims
            .into_iter()
            .zip(terms.iter().map(|weight| *weight as f32))
            .collect(),
        ranked_before: *ranked_before,
    })
}

/// The terms whose weight is shared most unevenly between relevant issues and others (chi squared), in the order of
/// their numbers; terms of one issue say nothing about others.
fn telling(read: &[(&Features, bool)], n_relevant: usize, n_terms: usize) -> Vec<u32> {
    let n_dims = read
        .iter()
        .filter_map(|(issue, _)| issue.terms.last())
        .map(|(dim, _)| *dim as usize + 1)
        .max()
        .unwrap_or(0);
    // Holders, weight in all issues, weight in relevant ones.
    let mut sums = vec![(0u32, 0f64, 0f64); n_dims];
    for (issue, relevant) in read {
        for (dim, value) in &issue.terms {
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

    fn issue(terms: &[(u32, f32)], ranked_before: f32) -> Features {
        Features {
            terms: terms.to_vec(),
            ranked_before,
        }
    }

    #[test]
    fn what_was_relevant_before_comes_first() {
        // 0 is common to all, 1 tells relevant ones, 2 tells others, 7 was never seen.
        let issues = [
            issue(&[(0, 0.6), (1, 0.8)], 0.5),
            issue(&[(0, 0.6), (2, 0.8)], 0.5),
            issue(&[(0, 0.8), (1, 0.6)], 0.5),
            issue(&[(0, 0.8), (2, 0.6)], 0.5),
        ];
        let read: Vec<(&Features, bool)> = issues.iter().zip([true, false, true, false]).collect();
        let learned = learn(&read, &settings()).expect("enough was read");
        let score = |terms: &[(u32, f32)]| learned.score(&issue(terms, 0.5));
        assert!(score(&[(0, 0.5), (1, 0.5)]) > score(&[(0, 0.5), (7, 0.9)]));
        assert!(score(&[(0, 0.5), (7, 0.9)]) > score(&[(0, 0.5), (2, 0.5)]));
        let unread = issue(&[(0, 0.5), (1, 0.5), (7, 0.9)], 0.5);
        let told: Vec<u32> = learned.parts(&unread).map(|(dim, _)| dim).collect();
        assert_eq!(told, [0, 1]);
        assert_eq!(
            learn(&read, &settings()),
            Some(learned),
            "the same each time"
        );
    }

    #[test]
    fn it_does_not_matter_of_which_kind_more_were_read() {
        let relevant = issue(&[(0, 0.6), (1, 0.8)], 0.5);
        let other = issue(&[(0, 0.6), (2, 0.8)], 0.5);
        for labels in [
            [true, false, false, false, true],
            [false, true, true, true, false],
            [false, false, true, false, true],
            [true, true, false, true, false],
        ] {
            let read: Vec<(&Features, bool)> = labels
                .iter()
                .map(|label| (if *label { &relevant } else { &other }, *label))
                .collect();
            let learned = learn(&read, &settings()).expect("enough was read");
            assert!(
                learned.score(&relevant) > learned.score(&other),
                "{labels:?}"
            );
        }
    }

    #[test]
    fn the_ranking_counts_as_far_as_it_was_right() {
        let check = |places: [f32; 6], expected: std::cmp::Ordering| {
            let issues = places.map(|ranked_before| issue(&[(0, 1.0)], ranked_before));
            let read: Vec<(&Features, bool)> = issues
                .iter()
                .zip([true, true, false, false, false, false])
                .collect();
            let learned = learn(&read, &settings()).expect("enough was read");
            let score = |ranked_before| learned.score(&issue(&[(7, 1.0)], ranked_before));
            assert_eq!(score(0.9).total_cmp(&score(0.1)), expected, "{places:?}");
        };
        check([0.9, 0.8, 0.3, 0.2, 0.1, 0.4], std::cmp::Ordering::Greater);
        check([0.1, 0.2, 0.7, 0.8, 0.9, 0.6], std::cmp::Ordering::Less);
    }

    #[test]
    fn nothing_is_learned_from_too_little() {
        let one = issue(&[(0, 1.0)], 0.5);
        let check = |labels: &[bool]| {
            let read: Vec<_> = labels.iter().map(|label| (&one, *label)).collect();
            assert_eq!(learn(&read, &settings()), None, "{labels:?}");
        };
        check(&[]);
        check(&[true, false]);
        check(&[true; 5]);
        check(&[false; 5]);
    }
}
