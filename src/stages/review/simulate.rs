//! Reading simulated on a judged set: a reviewer who says what the judge said, many times with other issues left out.
//! It shows what the learned order saves, and at what recall each rule would have stopped.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::read::{Config, features, sort};
use crate::domain::digest;
use crate::methods::feedback::{self, Features};
use crate::methods::issue_vectors::Lexicon;
use crate::methods::ranking_quality::work_saved;
use crate::methods::stopping::{self, Rule};
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
    /// The one of the settings first, then published ones.
    pub rules: Vec<Stopped>,
}

/// Where a rule stopped, always in the learned order.
#[derive(Debug, Serialize)]
pub struct Stopped {
    pub rule: String,
    /// Simulations in which the recall was at least .95 when it stopped; one that never stops reads all.
    pub n_reached: usize,
    pub median_recall: f64,
    pub lowest_recall: f64,
    /// Share of the issues that were read.
    pub median_read: f64,
    pub mean_read: f64,
}

/// Of every ten issues one is left out, another one each time.
const LEFT_OUT: usize = 10;
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
    let relevant: Vec<bool> = set
        .issues
        .iter()
        .map(|issue| {
            let judgement = set.judgements.get(&issue.key);
            judgement.is_some_and(|judgement| judgement.relevant > 0)
        })
        .collect();
    let mut places = vec![None; set.issues.len()];
    let mut ranked: Vec<usize> = Vec::new();
    for one in scoring.ranking() {
        let issue_idx = set
            .issues
            .binary_search_by(|issue| issue.key.cmp(&one.key))
            .expect("the ranking holds the issues of the set");
        places[issue_idx] = Some(one.place);
        ranked.push(issue_idx);
    }
    let known = features(
        &scoring.terms,
        &lexicon,
        places.into_iter(),
        &config.clustering.settings.weights,
    );
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
        let read = learned_order(&order, &known, &relevant, config);
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
            let settings = stopping::Settings {
                target,
                ..stop.clone()
            };
            Rule::Bound.stops(labels, n_all, &settings)
        }
    };
    let knee = |labels: &[bool], n_read: usize| {
        labels.len() >= n_read
            && stopping::knee(labels).is_some_and(|knee| knee.ratio >= knee.needed)
    };
    let misses = |labels: &[bool], n: usize| {
        labels.len() >= n && !labels[labels.len() - n..].contains(&true)
    };
    let batch = config.settings.batch.max(1);
    let read: Vec<&[bool]> = runs.iter().map(|(_, read)| read.as_slice()).collect();
    let stopped =
        |rule: &str, stops: &dyn Fn(&[bool], usize) -> bool| stopped(rule, &read, batch, stops);
    let rules = vec![
        stopped("ours", &|labels, n_all| stop.by.stops(labels, n_all, stop)),
        stopped("chance of missing, target .95", &missing(0.95)),
        stopped("chance of missing, target .90", &missing(0.9)),
        stopped("knee, from 1,000 read on", &|labels, _| knee(labels, 1_000)),
        stopped("knee", &|labels, _| knee(labels, 1)),
        stopped("a tenth, and 50 in a row not relevant", &|labels, n_all| {
            10 * labels.len() >= n_all && misses(labels, 50)
        }),
        stopped("100 in a row not relevant", &|labels, _| {
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

/// Reads until all that is relevant is met, each batch in the order that was learned from those before it. The order of
/// the rest does not matter.
fn learned_order(
    order: &[usize],
    known: &[Features],
    relevant: &[bool],
    config: &Config,
) -> Vec<usize> {
    let mut read: Vec<usize> = Vec::new();
    let mut unread = order.to_vec();
    while unread.iter().any(|idx| relevant[*idx]) {
        let labelled: Vec<(&Features, bool)> = read
            .iter()
            .map(|idx| (&known[*idx], relevant[*idx]))
            .collect();
        if let Some(learned) = feedback::learn(&labelled, &config.settings.feedback) {
            sort(&mut unread, &learned, known);
        }
        let n = config.settings.batch.clamp(1, unread.len());
        read.extend(unread.drain(..n));
    }
    read.append(&mut unread);
    read
}

/// Asks a rule after each batch.
fn stopped(
    rule: &str,
    runs: &[&[bool]],
    batch: usize,
    stops: &dyn Fn(&[bool], usize) -> bool,
) -> Stopped {
    let count = |labels: &[bool]| labels.iter().filter(|label| **label).count() as f64;
    let (mut recalls, mut shares) = (Vec::new(), Vec::new());
    for labels in runs {
        let n_all = labels.len();
        let n_read = (batch..n_all)
            .step_by(batch)
            .find(|n| stops(&labels[..*n], n_all))
            .unwrap_or(n_all);
        recalls.push(count(&labels[..n_read]) / count(labels).max(1.0));
        shares.push(n_read as f64 / n_all.max(1) as f64);
    }
    let n_reached = recalls.iter().filter(|recall| **recall >= RECALL - 1e-9);
    Stopped {
        rule: rule.to_owned(),
        n_reached: n_reached.count(),
        lowest_recall: recalls.iter().copied().fold(1.0, f64::min),
        mean_read: shares.iter().sum::<f64>() / shares.len().max(1) as f64,
        median_recall: median(recalls).unwrap_or(1.0),
        median_read: median(shares).unwrap_or(1.0),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
