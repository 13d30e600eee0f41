//! Reading simulated on a judged set: a reviewer who says what the judge said, many times with other issues left out.
//! It shows what the learned order saves, and at what recall each rule would have stopped.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::read::{Config, sort};
use crate::domain::digest;
use crate::methods::feedback::{self, SparseVector};
use crate::methods::issue_vectors::Lexicon;
use crate::methods::ranking_quality::work_saved;
use crate::methods::stopping;
use crate::stages::judged_set::JudgedSet;
use crate::stages::scoring::Scoring;
use crate::stages::{Context, Failure, Result};
use crate::storage::documents;

#[derive(Debug, Serialize)]
pub struct Simulated {
    pub n_issues: usize,
    pub n_relevant: usize,
    pub n_shuffles: usize,
    /// Work saved at a recall of .95, in the order of the ranking and in the learned one; medians.
    pub wss_95_ranking: Option<f64>,
    pub wss_95_learned: Option<f64>,
    /// Ours first.
    pub rules: Vec<Stopped>,
}

/// Where a rule stopped.
#[derive(Debug, Serialize)]
pub struct Stopped {
    pub rule: String,
    /// Simulations in which the recall was at least .95 when it stopped; one that never stops reads all.
    pub n_reached: usize,
    pub lowest_recall: f64,
    /// Share of the issues that were read, on average.
    pub mean_read: f64,
}

/// Of every ten issues one is left out, another one each time.
const LEFT_OUT: usize = 10;
/// Issues that are read before the order is renewed and the rules are asked.
const BATCH: usize = 50;
const RECALL: f64 = 0.95;

/// Issues without a judgement count as not relevant.
pub fn simulate(
    context: &Context,
    config: &Config,
    folder: &Path,
    among: &[PathBuf],
    n_shuffles: usize,
) -> Result<Simulated> {
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let set = JudgedSet::read(folder, among)?;
    let scoring = Scoring::new(&set.issues, &document, &config.clustering.scoring)?;
    let lexicon = Lexicon::of(&scoring.terms);
    let weights = &config.clustering.settings.weights;
    let vectors: Vec<SparseVector> = scoring
        .terms
        .iter()
        .map(|terms| lexicon.term_weights(terms, weights))
        .collect();
    let relevant: Vec<bool> = set
        .issues
        .iter()
        .map(|issue| {
            let judgement = set.judgements.get(&issue.key);
            judgement.is_some_and(|judgement| judgement.relevant > 0)
        })
        .collect();
    let ranked: Vec<usize> = scoring
        .ranking()
        .iter()
        .map(|ranked| {
            let place = set
                .issues
                .binary_search_by(|issue| issue.key.cmp(&ranked.key));
            place.expect("the ranking holds the issues of the set")
        })
        .collect();
    context.progress.begin("simulate", Some(n_shuffles as u64));
    let mut runs = Vec::new();
    for shuffle in 0..n_shuffles {
        let mut by_chance = ranked.clone();
        by_chance.sort_by_cached_key(|idx| {
            digest::of([shuffle.to_string(), set.issues[*idx].key.to_string()])
        });
        by_chance.truncate(ranked.len() / LEFT_OUT);
        let order: Vec<usize> = ranked
            .iter()
            .copied()
            .filter(|idx| !by_chance.contains(idx))
            .collect();
        let read = learned_order(&order, &vectors, &relevant, config);
        let labels =
            |order: &[usize]| -> Vec<bool> { order.iter().map(|idx| relevant[*idx]).collect() };
        runs.push((labels(&order), labels(&read)));
        context.progress.advance(1);
    }
    context.progress.end(&format!("{n_shuffles} times"));
    let saved = |labels: &[bool]| {
        let gains: Vec<u8> = labels.iter().map(|label| u8::from(*label)).collect();
        work_saved(&gains, RECALL)
    };
    let stop = &config.settings.stop;
    let missing = |target: f64| {
        move |labels: &[bool], n_all: usize| {
            stopping::chance_of_missing(labels, n_all, target)
                .is_some_and(|chance| chance < stop.alpha)
        }
    };
    let ours = |labels: &[bool], n_all: usize| stopping::reading(labels, n_all, None, stop).stop;
    let knee = |labels: &[bool], n_read: usize| {
        labels.len() >= n_read
            && stopping::knee(labels).is_some_and(|knee| knee.ratio >= knee.needed)
    };
    let misses = |labels: &[bool], n: usize| {
        labels.len() >= n && !labels[labels.len() - n..].contains(&true)
    };
    let read: Vec<&[bool]> = runs.iter().map(|(_, read)| read.as_slice()).collect();
    let rules = vec![
        stopped("ours", &read, ours),
        stopped("chance of missing, target .95", &read, missing(0.95)),
        stopped("chance of missing, target .90", &read, missing(0.9)),
        stopped("knee, from 1,000 read on", &read, |labels, _| {
            knee(labels, 1_000)
        }),
        stopped("knee", &read, |labels, _| knee(labels, 1)),
        stopped("50 in a row not relevant", &read, |labels, _| {
            misses(labels, 50)
        }),
        stopped("100 in a row not relevant", &read, |labels, _| {
            misses(labels, 100)
        }),
    ];
    Ok(Simulated {
        n_issues: set.issues.len(),
        n_relevant: relevant.iter().filter(|relevant| **relevant).count(),
        n_shuffles,
        wss_95_ranking: median(runs.iter().filter_map(|(order, _)| saved(order)).collect()),
        wss_95_learned: median(runs.iter().filter_map(|(_, read)| saved(read)).collect()),
        rules,
    })
}

/// Reads all issues, each batch in the order that was learned from those before it.
fn learned_order(
    order: &[usize],
    vectors: &[SparseVector],
    relevant: &[bool],
    config: &Config,
) -> Vec<usize> {
    let mut read: Vec<usize> = Vec::new();
    let mut unread = order.to_vec();
    while !unread.is_empty() {
        let labelled: Vec<(&SparseVector, bool)> = read
            .iter()
            .map(|idx| (&vectors[*idx], relevant[*idx]))
            .collect();
        if let Some(learned) = feedback::learn(&labelled, &config.settings.feedback) {
            sort(&mut unread, &learned, vectors);
        }
        let n = match read.is_empty() {
            true => config.settings.feedback.from,
            false => BATCH,
        };
        read.extend(unread.drain(..n.min(unread.len())));
        // What is left when all are met has no order that matters.
        if unread.iter().all(|idx| !relevant[*idx]) && read.len() > order.len() * 9 / 10 {
            read.append(&mut unread);
        }
    }
    read
}

fn stopped(rule: &str, runs: &[&[bool]], stops: impl Fn(&[bool], usize) -> bool) -> Stopped {
    let mut stopped = Stopped {
        rule: rule.to_owned(),
        n_reached: 0,
        lowest_recall: 1.0,
        mean_read: 0.0,
    };
    for labels in runs {
        let n_all = labels.len();
        let n_read = (BATCH..n_all)
            .step_by(BATCH)
            .find(|n| stops(&labels[..*n], n_all))
            .unwrap_or(n_all);
        let count = |labels: &[bool]| labels.iter().filter(|label| **label).count() as f64;
        let recall = count(&labels[..n_read]) / count(labels).max(1.0);
        stopped.n_reached += usize::from(recall >= RECALL - 1e-9);
        stopped.lowest_recall = stopped.lowest_recall.min(recall);
        stopped.mean_read += n_read as f64 / n_all.max(1) as f64 / runs.len() as f64;
    }
    stopped
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
