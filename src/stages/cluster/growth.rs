//! What new issues and decisions touch of the clusters that are there. Only that is grouped anew, so that an increment
//! costs what it brings and not what is there; the result is that of grouping all.

use std::collections::{BTreeMap, BTreeSet};

use super::background::Background;
use super::likeness::{Likeness, near};
use super::{Config, Said};
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, IssueTerms, RankedIssue};
use crate::methods::issue_vectors::SparseVector;
use crate::methods::text;
use crate::methods::text::vocabulary::Vocabulary;
use crate::stages::Result;
use crate::storage::database::Database;
use crate::storage::{clusters, issues, ranking};

/// Clusters that were there before, and the issues that are to be grouped.
#[derive(Default)]
pub struct Growth {
    /// Nothing touches them: they stay as they are stored.
    pub untouched: Vec<Cluster>,
    /// They may get members, lose some or be named otherwise.
    pub touched: Vec<Cluster>,
    /// The members of the touched clusters, and all that are in no cluster.
    pub looked_at: LookedAt,
}

/// Issues with what is known of each.
#[derive(Default)]
pub struct LookedAt {
    pub issues: Vec<Issue>,
    pub terms: Vec<IssueTerms>,
    pub ranked: Vec<RankedIssue>,
}

impl Growth {
    /// When there is nothing that could be kept of earlier vectors: everything is looked at.
    pub fn anew(
        database: &Database,
        config: &Config,
        background: &Background,
        before: Vec<Cluster>,
        chosen: &BTreeSet<IssueKey>,
    ) -> Result<Self> {
        let mut growth = Self {
            touched: before,
            ..Self::default()
        };
        growth
            .looked_at
            .add(database, config, background, chosen.iter())?;
        Ok(growth)
    }

    pub fn of(
        database: &Database,
        config: &Config,
        background: &Background,
        before: Vec<Cluster>,
        chosen: &BTreeSet<IssueKey>,
        said: &Said,
    ) -> Result<Self> {
        let vectors = clusters::vectors(database)?;
        let is_same = |key: &IssueKey| {
            chosen.contains(key) && vectors.contains_key(key) && !said.spoken_of.contains(key)
        };
        let (same, mut touched): (Vec<Cluster>, Vec<Cluster>) = before
            .into_iter()
            .partition(|cluster| cluster.members.iter().all(is_same));
        // What a reviewer took out of a cluster may go anywhere, as what is new may.
        let is_whole = |cluster: &&Cluster| {
            let holds = |key| cluster.members.contains(key);
            let apart = &said.before.apart;
            !apart.iter().any(|(a, b)| holds(a) && holds(b))
        };
        let held: BTreeSet<&IssueKey> = same
            .iter()
            .chain(touched.iter().filter(is_whole))
            .flat_map(|cluster| &cluster.members)
            .collect();
        let loose: BTreeSet<&IssueKey> = chosen.iter().filter(|key| !held.contains(key)).collect();
        let mut looked_at = LookedAt::default();
        looked_at.add(database, config, background, loose.iter().copied())?;

        let near = looked_at.near(&same, &vectors, config, background);
        let (near, untouched): (Vec<_>, Vec<_>) =
            (0..).zip(same).partition(|(place, _)| near.contains(place));
        touched.extend(near.into_iter().map(|(_, cluster)| cluster));
        let members = touched.iter().flat_map(|cluster| &cluster.members);
        let members = members.filter(|key| chosen.contains(*key) && !loose.contains(key));
        looked_at.add(database, config, background, members)?;
        Ok(Self {
            untouched: untouched.into_iter().map(|(_, cluster)| cluster).collect(),
            touched,
            looked_at,
        })
    }
}

impl LookedAt {
    fn add<'a>(
        &mut self,
        database: &Database,
        config: &Config,
        background: &Background,
        keys: impl Iterator<Item = &'a IssueKey>,
    ) -> Result<()> {
        let before = self.issues.len();
        for key in keys {
            self.issues.extend(issues::get(database, key)?);
            self.ranked.extend(ranking::get(database, key)?);
        }
        let vocabulary = Vocabulary::new(&config.scoring.vocabulary);
        let added = &self.issues[before..];
        let terms = text::issues_by(added, &vocabulary, &background.templates());
        self.terms.extend(terms);
        Ok(())
    }

    /// In the order of their keys.
    pub fn in_order(&self) -> Vec<&RankedIssue> {
        let mut ranked: Vec<&RankedIssue> = self.ranked.iter().collect();
        ranked.sort_by(|a, b| a.key.cmp(&b.key));
        ranked
    }

    /// The positions of the clusters that hold an issue which one of these may be grouped with.
    fn near(
        &self,
        clusters: &[Cluster],
        vectors: &BTreeMap<IssueKey, SparseVector>,
        config: &Config,
        background: &Background,
    ) -> BTreeSet<usize> {
        let chosen = self.in_order();
        let settings = &config.settings;
        let likeness = Likeness::new(
            &self.issues,
            &self.terms,
            &background.rarity,
            &chosen,
            settings,
        );
        let own: Vec<SparseVector> = likeness.lasting_vectors().into_values().collect();
        let (places, members): (Vec<usize>, Vec<&SparseVector>) = clusters
            .iter()
            .enumerate()
            .flat_map(|(place, cluster)| cluster.members.iter().map(move |key| (place, key)))
            .map(|(place, key)| (place, &vectors[key]))
            .unzip();
        let found = near(&own, &members, settings).into_iter();
        found.map(|member| places[member]).collect()
    }
}
