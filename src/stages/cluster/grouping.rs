//! From issues and their terms to named clusters.

use std::collections::{BTreeMap, HashMap};

use super::Settings;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, IssueTerms, RankedIssue};
use crate::methods::cluster_naming::{self, Item};
use crate::methods::clustering;
use crate::methods::issue_vectors::{self, Frequencies};
use crate::methods::text::words;

pub struct Grouping {
    pub clusters: Vec<Cluster>,
    pub n_split: usize,
}

/// Groups the chosen issues, which are in the order of their keys. How rare a term is counts over all issues.
pub fn group(
    all: &[Issue],
    terms: &[IssueTerms],
    chosen: &[&RankedIssue],
    settings: &Settings,
) -> Grouping {
    let places: HashMap<&IssueKey, usize> = all
        .iter()
        .enumerate()
        .map(|(place, issue)| (&issue.key, place))
        .collect();
    let frequencies = Frequencies::of(terms);
    let chosen: Vec<(usize, &RankedIssue)> = chosen
        .iter()
        .filter_map(|ranked| Some((*places.get(&ranked.key)?, *ranked)))
        .collect();
    let term_weights: Vec<BTreeMap<String, f64>> = chosen
        .iter()
        .map(|(place, _)| {
            issue_vectors::term_weights(&terms[*place], &frequencies, &settings.weights)
        })
        .collect();
    let clauses: Vec<_> = chosen
        .iter()
        .map(|(_, ranked)| ranked.relevance.clauses.as_slice())
        .collect();
    let vectors = issue_vectors::vectors(&term_weights, &clauses, &settings.weights);
    let found = clustering::cluster(&vectors, settings.cut, settings.max_part);
    let items: Vec<Item<'_>> = chosen
        .iter()
        .zip(&term_weights)
        .map(|((place, ranked), terms)| Item {
            issue: &all[*place],
            terms,
            clauses: &ranked.relevance.clauses,
        })
        .collect();
    let readable = words::readable(chosen.iter().flat_map(|(place, _)| {
        let issue = &all[*place];
        [issue.title.as_str(), issue.body.as_str()]
    }));
    let similarity = |a: usize, b: usize| clustering::cosine(&vectors[a], &vectors[b]);
    Grouping {
        clusters: cluster_naming::name(&items, &found.clusters, similarity, &readable),
        n_split: found.n_split,
    }
}
