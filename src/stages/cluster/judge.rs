//! The quality of the clusters on a judged set: its relevant issues are clustered, nothing is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::judge_pairs::{JudgedPairs, judge_pairs};
use super::likeness::Likeness;
use super::{Before, Config, Settings, group};
use crate::domain::digest;
use crate::domain::issue::IssueKey;
use crate::domain::mining::{Cluster, RankedIssue};
use crate::methods::cluster_quality::{Agreement, Labels, agreement};
use crate::methods::clustering::Known;
use crate::methods::cut_choice::{Crossed, Pair, crossed};
use crate::methods::issue_vectors::Rarity;
use crate::stages::judged_set::JudgedSet;
use crate::stages::scoring::Scoring;
use crate::stages::{Context, Failure, Result};
use crate::storage::documents;

/// What is judged.
#[derive(Debug, Clone)]
pub struct JudgeConfig {
    pub folder: PathBuf,
    /// Files and folders of issues among which those of the set are hidden.
    pub among: Vec<PathBuf>,
    /// Choose the cut on all but one of so many parts of the phenomena, and judge it on that one.
    pub folds: Option<usize>,
    /// Pairs of the set's issues that are duplicates or not, one JSON object a line.
    pub pairs: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub struct Judged {
    /// Over the issues that are relevant, in part or fully.
    #[serde(flatten)]
    pub agreement: Agreement,
    pub cut: f32,
    /// With cuts that were chosen on other phenomena.
    pub crossed: Option<CrossedOver>,
    /// The pairs that were named.
    pub pairs: Option<JudgedPairs>,
    pub clusters: Vec<Cluster>,
}

/// Figures over several deals of the phenomena into parts.
#[derive(Debug, Serialize)]
pub struct OverDeals {
    pub n_parts: usize,
    pub n_deals: usize,
    /// Means over the deals.
    pub precision: Option<f64>,
    pub recall: Option<f64>,
    pub f1: Option<f64>,
    /// Of the deals.
    pub lowest_f1: Option<f64>,
    pub highest_f1: Option<f64>,
}

/// Several deals, with the cuts that were chosen in them.
#[derive(Debug, Serialize)]
pub struct CrossedOver {
    pub n_pairs: usize,
    #[serde(flatten)]
    pub over: OverDeals,
    /// Thresholds that were chosen.
    pub lowest_cut: f32,
    pub highest_cut: f32,
}

impl OverDeals {
    /// Of precision, recall and F1 of each deal.
    pub(super) fn of(n_parts: usize, deals: &[[Option<f64>; 3]]) -> Self {
        let of = |figure: usize| deals.iter().filter_map(move |deal| deal[figure]);
        let mean = |figure: usize| {
            let n = of(figure).count();
            (n > 0).then(|| of(figure).sum::<f64>() / n as f64)
        };
        Self {
            n_parts,
            n_deals: deals.len(),
            precision: mean(0),
            recall: mean(1),
            f1: mean(2),
            lowest_f1: of(2).min_by(f64::total_cmp),
            highest_f1: of(2).max_by(f64::total_cmp),
        }
    }
}

/// How often the phenomena are dealt.
const N_DEALS: usize = 20;

pub fn judge(context: &Context, config: &Config, judging: &JudgeConfig) -> Result<Judged> {
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let set = JudgedSet::read(&judging.folder, &judging.among)?;
    let scoring = Scoring::new(&set.issues, &document, &config.scoring)?;
    let ranking = scoring.ranking();
    let clauses = ranking
        .iter()
        .map(|ranked| ranked.relevance.clauses.as_slice());
    let rarity = Rarity::of(&scoring.terms, clauses);
    let mut chosen: Vec<&RankedIssue> = ranking
        .iter()
        .filter(|ranked| {
            let judgement = set.judgements.get(&ranked.key);
            judgement.is_some_and(|judgement| judgement.relevant > 0)
        })
        .collect();
    chosen.sort_by(|a, b| a.key.cmp(&b.key));
    let clusters = group(
        &set.issues,
        &scoring.terms,
        &rarity,
        &chosen,
        &Before::default(),
        &config.settings,
    )
    .clusters;
    let truth = |key: &IssueKey| match &set.judgements[key].phenomenon {
        Some(phenomenon) => phenomenon.clone(),
        None => format!("alone: {key}"),
    };
    let labels: Vec<Labels<&str, String, &str>> = clusters
        .iter()
        .flat_map(|cluster| cluster.members.iter().map(|key| (cluster.id.as_str(), key)))
        .map(|(found, key)| Labels {
            found,
            truth: truth(key),
            source: key.repository.as_str(),
        })
        .collect();
    let likeness = Likeness::new(
        &set.issues,
        &scoring.terms,
        &rarity,
        &chosen,
        &config.settings,
    );
    let truths: Vec<String> = likeness
        .chosen
        .iter()
        .map(|chosen| truth(&chosen.issue.key))
        .collect();
    Ok(Judged {
        agreement: agreement(&labels),
        cut: config.settings.cut,
        crossed: judging
            .folds
            .map(|n_parts| crossed_clusters(&likeness, &truths, n_parts, &config.settings)),
        pairs: judging
            .pairs
            .as_ref()
            .map(|file| judge_pairs(&likeness, &truths, file, judging.folds))
            .transpose()?,
        clusters,
    })
}

/// Every pair of issues, together where they are in one cluster.
fn crossed_clusters(
    likeness: &Likeness<'_>,
    truths: &[String],
    n_parts: usize,
    settings: &Settings,
) -> CrossedOver {
    let cuts: Vec<f32> = (20..=45).map(|cut| cut as f32 / 100.0).collect();
    let n = truths.len();
    let groups: Vec<Vec<usize>> = cuts
        .iter()
        .map(|cut| {
            let settings = Settings {
                cut: *cut,
                ..settings.clone()
            };
            let mut group_of = vec![0; n];
            let found = likeness.cluster(&Known::default(), &settings);
            for (group, items) in found.clusters.iter().enumerate() {
                items.iter().for_each(|item| group_of[*item] = group);
            }
            group_of
        })
        .collect();
    let pairs: Vec<([usize; 2], bool, Vec<bool>)> = (0..n)
        .flat_map(|b| (0..b).map(move |a| [a, b]))
        .map(|[a, b]| {
            let found = groups.iter().map(|group_of| group_of[a] == group_of[b]);
            ([a, b], truths[a] == truths[b], found.collect())
        })
        .collect();
    crossed_over(truths, &pairs, n_parts, &cuts)
}

/// Items by position, whether they belong together, and at which cuts they come together.
fn crossed_over(
    truths: &[String],
    pairs: &[([usize; 2], bool, Vec<bool>)],
    n_parts: usize,
    cuts: &[f32],
) -> CrossedOver {
    let phenomena: BTreeSet<&str> = truths.iter().map(String::as_str).collect();
    let deals: Vec<Crossed> = deals(&phenomena, n_parts)
        .map(|part_of| {
            let pairs: Vec<Pair> = pairs
                .iter()
                .map(|(items, together, found)| Pair {
                    parts: items.map(|item| part_of[truths[item].as_str()]),
                    together: *together,
                    found: found.clone(),
                })
                .collect();
            crossed(&pairs, n_parts, cuts.len())
        })
        .collect();
    let figures: Vec<[Option<f64>; 3]> = deals
        .iter()
        .map(|deal| [deal.precision, deal.recall, deal.f1])
        .collect();
    let chosen = || deals.iter().flat_map(|deal| deal.chosen.iter().copied());
    CrossedOver {
        n_pairs: pairs.len(),
        over: OverDeals::of(n_parts, &figures),
        lowest_cut: cuts[chosen().min().unwrap_or(0)],
        highest_cut: cuts[chosen().max().unwrap_or(0)],
    }
}

/// The part of each phenomenon, dealt many times; the same each time that it is asked for.
pub fn deals<'a>(
    phenomena: &'a BTreeSet<&'a str>,
    n_parts: usize,
) -> impl Iterator<Item = BTreeMap<&'a str, usize>> {
    (0..N_DEALS).map(move |deal| {
        let mut order: Vec<(String, &str)> = phenomena
            .iter()
            .map(|name| (digest::of([deal.to_string().as_str(), name]), *name))
            .collect();
        order.sort();
        order
            .into_iter()
            .enumerate()
            .map(|(idx, (_, name))| (name, idx % n_parts))
            .collect()
    })
}
