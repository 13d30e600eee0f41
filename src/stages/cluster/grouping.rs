//! From issues and their terms to named clusters.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Settings;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, IssueTerms, RankedIssue};
use crate::methods::cluster_naming::{self, Item};
use crate::methods::clustering::{self, Items, Known};
use crate::methods::issue_vectors::{Lexicon, SparseVector};
use crate::methods::text::words;

pub struct Grouping {
    pub clusters: Vec<Cluster>,
    pub n_split: usize,
    pub n_contradicted: usize,
}

/// What is known before issues are grouped.
#[derive(Debug, Default)]
pub struct Before {
    /// Clusters that stay: new issues join them or open others.
    pub clusters: Vec<Cluster>,
    /// Pairs of issues that reviewers put together, and that they took apart.
    pub together: Vec<(IssueKey, IssueKey)>,
    pub apart: Vec<(IssueKey, IssueKey)>,
}

/// Groups the chosen issues, which are in the order of their keys. How rare a term is counts over all issues.
pub fn group(
    all: &[Issue],
    terms: &[IssueTerms],
    chosen: &[&RankedIssue],
    before: &Before,
    settings: &Settings,
) -> Grouping {
    let wanted: HashSet<&IssueKey> = chosen.iter().map(|ranked| &ranked.key).collect();
    let places: HashMap<&IssueKey, usize> = all
        .iter()
        .enumerate()
        .filter(|(_, issue)| wanted.contains(&issue.key))
        .map(|(place, issue)| (&issue.key, place))
        .collect();
    let chosen: Vec<(usize, &RankedIssue)> = chosen
        .iter()
        .filter_map(|ranked| Some((*places.get(&ranked.key)?, *ranked)))
        .collect();
    let lexicon = Lexicon::of(terms);
    let weights = &settings.weights;
    let term_weights: Vec<SparseVector> = chosen
        .iter()
        .map(|(place, _)| lexicon.term_weights(&terms[*place], weights))
        .collect();
    let part_terms: BTreeSet<String> = settings
        .parts
        .iter()
        .map(|part| words::term(part))
        .collect();
    let parts: Vec<SparseVector> = term_weights
        .iter()
        .map(|terms| lexicon.parts(terms, &part_terms))
        .collect();
    let clauses: Vec<_> = chosen
        .iter()
        .map(|(_, ranked)| ranked.relevance.clauses.as_slice())
        .collect();
    let vectors = lexicon.vectors(&term_weights, &clauses, weights);
    let bonus = |a: usize, b: usize| match parts[a].is_empty() || parts[b].is_empty() {
        true => 0.0,
        false => weights.part * (clustering::cosine(&parts[a], &parts[b]) - weights.part_expected),
    };
    let similar = Items {
        vectors: &vectors,
        bonus: &bonus,
        most_bonus: weights.part * (1.0 - weights.part_expected),
    };
    let known = known(&chosen, before);
    let found = clustering::cluster(&similar, &known, settings.cut, settings.max_part);
    let items: Vec<Item<'_>> = chosen
        .iter()
        .zip(&term_weights)
        .map(|((place, ranked), terms)| Item {
            issue: &all[*place],
            terms,
            clauses: &ranked.relevance.clauses,
        })
        .collect();
    let ids: HashMap<&IssueKey, &str> = before
        .clusters
        .iter()
        .flat_map(|cluster| cluster.members.iter().map(|key| (key, cluster.id.as_str())))
        .collect();
    let mut clusters = cluster_naming::name(
        &items,
        &found.clusters,
        |item| ids.get(&items[item].issue.key).copied(),
        |a, b| similar.similarity(a, b),
        |dim| lexicon.term(dim),
    );
    let told: HashSet<String> = clusters
        .iter()
        .flat_map(|cluster| cluster.terms.iter().map(|term| term.term.clone()))
        .collect();
    let texts = chosen.iter().flat_map(|(place, _)| {
        let issue = &all[*place];
        [issue.title.as_str(), issue.body.as_str()]
    });
    let readable = words::readable(texts, |term| told.contains(term));
    for term in clusters.iter_mut().flat_map(|cluster| &mut cluster.terms) {
        if let Some(word) = readable.get(&term.term) {
            term.word.clone_from(word);
        }
    }
    Grouping {
        clusters,
        n_split: found.n_split,
        n_contradicted: found.n_contradicted,
    }
}

/// What is known, by position; issues that are not among the chosen ones play no part.
fn known(chosen: &[(usize, &RankedIssue)], before: &Before) -> Known {
    let places: HashMap<&IssueKey, usize> = chosen
        .iter()
        .enumerate()
        .map(|(place, (_, ranked))| (&ranked.key, place))
        .collect();
    let pairs = |pairs: &[(IssueKey, IssueKey)]| -> Vec<(usize, usize)> {
        pairs
            .iter()
            .filter_map(|(a, b)| Some((*places.get(a)?, *places.get(b)?)))
            .collect()
    };
    Known {
        before: before
            .clusters
            .iter()
            .map(|cluster| {
                let members = cluster.members.iter();
                members.filter_map(|key| places.get(key).copied()).collect()
            })
            .filter(|members: &Vec<usize>| !members.is_empty())
            .collect(),
        together: pairs(&before.together),
        apart: pairs(&before.apart),
    }
}
