//! How well the pairs that are named beside a judged set are told apart: a classifier is learned from the pairs of some
//! phenomena and judged on those of others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::judge::{OverDeals, deals};
use super::likeness::Likeness;
use crate::domain::issue::IssueKey;
use crate::methods::clustering::{SparseVector, cosine};
use crate::methods::issue_vectors::Weights;
use crate::methods::pair_classifier::{Classifier, Known};
use crate::stages::{Classify, Failure, Kind, Result};
use crate::storage::issue_files;

#[derive(Debug, Serialize)]
pub struct JudgedPairs {
    pub n_pairs: usize,
    pub n_duplicates: usize,
    /// Each pair judged by what was learned from other phenomena.
    #[serde(flatten)]
    pub over: OverDeals,
    /// Learned from all pairs and judged on the same, as figures of the literature often are.
    pub f1_in_hindsight: Option<f64>,
    /// Of the figures of a pair, in units of their spread.
    pub weights: BTreeMap<&'static str, f64>,
}

/// Cosines of the titles and of all terms; and the evidence: what the shared terms weigh, however long the reports are.
const FIGURES: [&str; 3] = ["title", "terms", "evidence"];
/// Parts when `folds` does not say.
const N_PARTS: usize = 5;

/// A line of the file of pairs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PairLine {
    a: IssueKey,
    b: IssueKey,
    duplicate: bool,
}

/// A pair with the phenomenon whose part it is judged in.
struct Pair<'a> {
    phenomenon: &'a str,
    known: Known<{ FIGURES.len() }>,
}

/// `truths` are the phenomena of the issues.
pub fn judge_pairs(
    likeness: &Likeness<'_>,
    truths: &[String],
    file: &Path,
    n_parts: Option<usize>,
) -> Result<JudgedPairs> {
    let n_parts = n_parts.unwrap_or(N_PARTS);
    let pairs = pairs(likeness, truths, &pair_lines(file)?)?;
    let phenomena: BTreeSet<&str> = truths.iter().map(String::as_str).collect();
    let mut counts = Vec::new();
    for part_of in deals(&phenomena, n_parts) {
        let mut pooled = Counts::default();
        for part in 0..n_parts {
            let (inside, others): (Vec<&Pair<'_>>, Vec<&Pair<'_>>) = pairs
                .iter()
                .partition(|pair| part_of[pair.phenomenon] == part);
            pooled.add(&others, &inside);
        }
        counts.push(pooled);
    }
    let all: Vec<&Pair<'_>> = pairs.iter().collect();
    let mut hindsight = Counts::default();
    hindsight.add(&all, &all);
    let known: Vec<_> = pairs.iter().map(|pair| pair.known).collect();
    let figures: Vec<[Option<f64>; 3]> = counts.iter().map(Counts::figures).collect();
    Ok(JudgedPairs {
        n_pairs: pairs.len(),
        n_duplicates: known.iter().filter(|(_, duplicate)| *duplicate).count(),
        over: OverDeals::of(n_parts, &figures),
        f1_in_hindsight: hindsight.f1(),
        weights: Classifier::learn(&known).map_or_else(BTreeMap::new, |classifier| {
            FIGURES.into_iter().zip(classifier.weights).collect()
        }),
    })
}

#[derive(Default)]
struct Counts {
    both: usize,
    found: usize,
    truth: usize,
}

impl Counts {
    /// Learns from some pairs and judges others; where nothing can be learned, no pair is called a duplicate.
    fn add(&mut self, learned_from: &[&Pair<'_>], judged: &[&Pair<'_>]) {
        let known: Vec<_> = learned_from.iter().map(|pair| pair.known).collect();
        let classifier = Classifier::learn(&known);
        for (figures, duplicate) in judged.iter().map(|pair| pair.known) {
            let found = classifier
                .as_ref()
                .is_some_and(|classifier| classifier.is_duplicate(&figures));
            self.both += usize::from(found && duplicate);
            self.found += usize::from(found);
            self.truth += usize::from(duplicate);
        }
    }

    /// Precision, recall and F1.
    fn figures(&self) -> [Option<f64>; 3] {
        [
            share(self.both, self.found),
            share(self.both, self.truth),
            self.f1(),
        ]
    }

    fn f1(&self) -> Option<f64> {
        share(2 * self.both, self.found + self.truth)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A pair of two phenomena is judged with the one that fewer pairs touch: a report that is in very many pairs must not
/// take all of them into one part, where nothing is left to learn from.
fn pairs<'a>(
    likeness: &Likeness<'_>,
    truths: &'a [String],
    lines: &[PairLine],
) -> Result<Vec<Pair<'a>>> {
    let places: BTreeMap<&IssueKey, usize> = likeness
        .chosen
        .iter()
        .enumerate()
        .map(|(place, chosen)| (&chosen.issue.key, place))
        .collect();
    let place = |key: &IssueKey| {
        places
            .get(key)
            .copied()
            .ok_or_else(|| Failure::user(format!("{key} is no relevant issue of the judged set")))
    };
    let mut named = Vec::new();
    let mut n_touching: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        let (a, b) = (place(&line.a)?, place(&line.b)?);
        for phenomenon in BTreeSet::from([&truths[a], &truths[b]]) {
            *n_touching.entry(phenomenon).or_default() += 1;
        }
        named.push((a, b, line.duplicate));
    }
    let figures = Figures::new(likeness);
    let pair = |(a, b, duplicate): (usize, usize, bool)| Pair {
        phenomenon: [&truths[a], &truths[b]]
            .into_iter()
            .map(String::as_str)
            .min_by_key(|phenomenon| (n_touching[phenomenon], *phenomenon))
            .expect("there are two"),
        known: (figures.of(a, b), duplicate),
    };
    Ok(named.into_iter().map(pair).collect())
}

struct Figures<'a> {
    titles: Vec<SparseVector>,
    terms: &'a [SparseVector],
    /// Not brought to length 1.
    weighted: Vec<SparseVector>,
}

impl<'a> Figures<'a> {
    fn new(likeness: &'a Likeness<'_>) -> Self {
        let only_titles = Weights {
            prose: 0.0,
            code: 0.0,
            added: 0.0,
            ..likeness.weights.clone()
        };
        let lexicon = &likeness.lexicon;
        let terms = || likeness.chosen.iter().map(|chosen| chosen.terms);
        Self {
            titles: terms()
                .map(|terms| lexicon.term_weights(terms, &only_titles))
                .collect(),
            terms: &likeness.term_weights,
            weighted: terms()
                .map(|terms| lexicon.weighted(terms, likeness.weights))
                .collect(),
        }
    }

    /// In the order of [`FIGURES`].
    fn of(&self, a: usize, b: usize) -> [f64; FIGURES.len()] {
        let of = |vectors: &[SparseVector]| f64::from(cosine(&vectors[a], &vectors[b]));
        // The root, since a few shared terms more count less where there are many.
        [of(&self.titles), of(self.terms), of(&self.weighted).sqrt()]
    }
}

fn pair_lines(file: &Path) -> Result<Vec<PairLine>> {
    let mut lines = Vec::new();
    for row in issue_files::read(file).kind(Kind::User)? {
        let (place, value) = row.map_err(|finding| Failure::findings(&[finding]))?;
        let line = serde_json::from_value(value)
            .map_err(|error| Failure::user(format!("{place}: {error}")))?;
        lines.push(line);
    }
    Ok(lines)
}
