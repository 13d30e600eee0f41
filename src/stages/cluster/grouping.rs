//! From issues and their terms to named clusters.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Settings;
use super::likeness::{Chosen, Likeness};
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, IssueTerms, RankedIssue};
use crate::methods::cluster_effect::effect;
use crate::methods::cluster_naming::{self, Item};
use crate::methods::clustering::Known;
use crate::methods::issue_vectors::{Rarity, SparseVector};
use crate::methods::text::markdown::Templates;
use crate::methods::text::words;

pub struct Grouping {
    pub clusters: Vec<Cluster>,
    pub n_split: usize,
    pub n_contradicted: usize,
    /// Of the grouped issues, with dimensions that all issues share.
    pub vectors: BTreeMap<IssueKey, SparseVector>,
}

/// What is known before issues are grouped.
#[derive(Debug, Default)]
pub struct Before {
    /// Clusters that stay: new issues join them or open others.
    pub clusters: Vec<Cluster>,
    /// The ids of clusters that no issue at hand can join.
    pub other_ids: BTreeSet<String>,
    /// Ids of the clusters that issues were in, of those too that do not stay.
    pub ids: HashMap<IssueKey, String>,
    /// Pairs of issues that reviewers put together, and that they took apart.
    pub together: Vec<(IssueKey, IssueKey)>,
    pub apart: Vec<(IssueKey, IssueKey)>,
    /// Names that reviewers gave to the cluster of an issue, and issues by which one is represented; the last one of a
    /// cluster counts.
    pub names: Vec<(IssueKey, String)>,
    pub representatives: Vec<IssueKey>,
}

/// Members of a cluster whose sentences are looked at for its effect, the representative first.
const N_HEARD: usize = 8;

/// Groups the chosen ones of some issues, in the order of their keys.
pub fn group(
    all: &[Issue],
    terms: &[IssueTerms],
    rarity: &Rarity,
    chosen: &[&RankedIssue],
    before: &Before,
    settings: &Settings,
) -> Grouping {
    let likeness = Likeness::new(all, terms, rarity, chosen, settings);
    let found = likeness.cluster(&known(&likeness.chosen, before), settings);
    let items: Vec<Item<'_>> = likeness
        .chosen
        .iter()
        .zip(&likeness.term_weights)
        .map(|(chosen, terms)| Item {
            issue: chosen.issue,
            terms,
            clauses: &chosen.ranked.relevance.clauses,
        })
        .collect();
    let mut clusters = cluster_naming::name(
        &items,
        &found.clusters,
        before.other_ids.clone(),
        |item| before.ids.get(&items[item].issue.key).map(String::as_str),
        |a, b| likeness.of(a, b),
        |dim| likeness.lexicon.term(dim),
    );
    say_what_reviewers_said(&mut clusters, &likeness.chosen, before);
    say_effects(&mut clusters, &likeness.chosen);
    say_words(&mut clusters, &likeness.chosen);
    Grouping {
        clusters,
        n_split: found.n_split,
        n_contradicted: found.n_contradicted,
        vectors: likeness.lasting_vectors(),
    }
}

/// A representative brings its title, unless there is a name.
fn say_what_reviewers_said(clusters: &mut [Cluster], chosen: &[Chosen<'_>], before: &Before) {
    for key in &before.representatives {
        let cluster = clusters.iter_mut().find(|one| one.members.contains(key));
        let issue = chosen.iter().find(|chosen| chosen.issue.key == *key);
        if let (Some(cluster), Some(chosen)) = (cluster, issue) {
            cluster.representative = key.clone();
            cluster.label = chosen.issue.title.clone();
            cluster.effect = chosen.issue.untagged_title().to_owned();
        }
    }
    for (key, name) in &before.names {
        if let Some(cluster) = clusters.iter_mut().find(|one| one.members.contains(key)) {
            cluster.label = name.clone();
        }
    }
}

/// Of clusters of several issues; one issue says its effect in its title.
fn say_effects(clusters: &mut [Cluster], chosen: &[Chosen<'_>]) {
    let issues = by_key(chosen);
    for cluster in clusters {
        let is_alone = cluster.members.len() == 1;
        if is_alone && !cluster.effect.is_empty() {
            continue;
        }
        let mut members: Vec<&Issue> = cluster.members.iter().map(|key| issues[key]).collect();
        members.sort_by_key(|issue| issue.key != cluster.representative);
        members.truncate(N_HEARD);
        let mut texts: Vec<String> = Vec::new();
        for issue in members {
            // The forms of repositories say nothing that tells a cluster.
            let parts = Templates::default().parts(&issue.key.repository, &issue.body);
            texts.extend([issue.untagged_title().to_owned(), parts.prose]);
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let telling: Vec<&str> = cluster
            .terms
            .iter()
            .map(|term| term.term.as_str())
            .collect();
        if let Some(effect) = effect(&texts, &telling, words::terms) {
            cluster.effect = effect;
        }
    }
}

/// For each telling term the word that the cluster's own issues write for it: what else is looked at plays no part.
fn say_words(clusters: &mut [Cluster], chosen: &[Chosen<'_>]) {
    let issues = by_key(chosen);
    for cluster in clusters {
        let told: HashSet<&str> = cluster
            .terms
            .iter()
            .map(|term| term.term.as_str())
            .collect();
        let members = cluster.members.iter().map(|key| issues[key]);
        let texts = members.flat_map(|issue| [issue.title.as_str(), issue.body.as_str()]);
        let mut readable = words::readable(texts, |term| told.contains(term));
        for term in &mut cluster.terms {
            if let Some(word) = readable.remove(&term.term) {
                term.word = word;
            }
        }
    }
}

fn by_key<'a>(chosen: &[Chosen<'a>]) -> HashMap<&'a IssueKey, &'a Issue> {
    let issues = chosen.iter().map(|chosen| chosen.issue);
    issues.map(|issue| (&issue.key, issue)).collect()
}

/// What is known, by position; issues that are not among the chosen ones play no part.
fn known(chosen: &[Chosen<'_>], before: &Before) -> Known {
    let places: HashMap<&IssueKey, usize> = chosen
        .iter()
        .enumerate()
        .map(|(place, chosen)| (&chosen.issue.key, place))
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
