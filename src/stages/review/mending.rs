//! Clusters as a reviewer mends them: put together, parted, a member moved. Each act is decisions on pairs of issues, as
//! `pipeline review approve pair:…` writes them; then clustering is run again, which they bind.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Item, Saying, database, decide, find};
use crate::domain::decision::{Subject, SubjectKind, Verb};
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, Outcome};
use crate::stages::{Context, Failure, Result, cluster};
use crate::storage::{clusters, issues};

/// A cluster with its material.
#[derive(Debug)]
pub struct Material {
    pub cluster: Cluster,
    /// What the filter said; none before it ran.
    pub outcome: Option<Outcome>,
    /// None when the filter did not keep it: then there is nothing to decide.
    pub item: Option<Item>,
    /// The members, the representative first.
    pub issues: Vec<Issue>,
}

/// All clusters in their order, with what the filter said.
pub fn all_clusters(context: &Context) -> Result<Vec<(Cluster, Option<Outcome>)>> {
    let database = database(context)?;
    let outcomes = clusters::outcomes(&database)?;
    Ok(clusters::all(&database)?
        .into_iter()
        .map(|cluster| {
            let outcome = outcomes.iter().find(|one| one.cluster == cluster.id);
            (cluster, outcome.cloned())
        })
        .collect())
}

pub fn material(context: &Context, id: &str) -> Result<Material> {
    let (cluster, outcome) = all_clusters(context)?
        .into_iter()
        .find(|(cluster, _)| cluster.id == id)
        .ok_or_else(|| {
            Failure::user(format!("there is no cluster {id}")).hint("pipeline cluster")
        })?;
    let database = database(context)?;
    let mut members = Vec::new();
    for key in &cluster.members {
        members.extend(issues::get(&database, key)?);
    }
    members.sort_by_key(|issue| issue.key != cluster.representative);
    let subject = Subject {
        kind: SubjectKind::Cluster,
        id: id.to_owned(),
    };
    let is_kept = outcome.as_ref().is_some_and(|outcome| outcome.kept);
    Ok(Material {
        item: is_kept.then(|| find(context, &subject)).transpose()?,
        outcome,
        issues: members,
        cluster,
    })
}

/// What a reviewer does to clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mending {
    /// The clusters of these two ids report one phenomenon.
    Merge(String, String),
    /// These members report something else than the others of their cluster, and among themselves the same.
    Part(String, Vec<IssueKey>),
    /// These members belong to the other cluster.
    Move(String, Vec<IssueKey>, String),
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Mended {
    pub n_decisions: usize,
    pub n_clusters: usize,
    /// The clusters that now hold the issues it was about.
    pub clusters: Vec<String>,
}

/// Writes the decisions and clusters again.
pub fn mend(context: &Context, mending: &Mending, by: &str, why: &str) -> Result<Mended> {
    let (apart, together, about) = pairs(context, mending)?;
    let verbs = [(Verb::Reject, apart), (Verb::Approve, together)];
    let mut n_decisions = 0;
    for (verb, pairs) in verbs {
        for (a, b) in pairs {
            let subject = format!("pair:{a}={b}").parse().map_err(Failure::user)?;
            let saying = Saying {
                subject,
                verb,
                by: by.to_owned(),
                why: why.to_owned(),
            };
            decide(context, saying)?;
            n_decisions += 1;
        }
    }
    let summary = cluster::run(context, &cluster::Config::read(&context.project)?)?;
    let holds = |cluster: &&Cluster| cluster.members.iter().any(|key| about.contains(key));
    Ok(Mended {
        n_decisions,
        n_clusters: summary.n_clusters,
        clusters: summary
            .clusters
            .iter()
            .filter(holds)
            .map(|cluster| cluster.id.clone())
            .collect(),
    })
}

type Pairs = Vec<(IssueKey, IssueKey)>;

/// The pairs that are apart, those that are together, and the issues it is about.
fn pairs(context: &Context, mending: &Mending) -> Result<(Pairs, Pairs, BTreeSet<IssueKey>)> {
    let all = all_clusters(context)?;
    let cluster = |id: &str| {
        all.iter()
            .map(|(cluster, _)| cluster)
            .find(|cluster| cluster.id == id)
            .ok_or_else(|| Failure::user(format!("there is no cluster {id}")))
    };
    let chain = |keys: &[IssueKey]| -> Pairs {
        let pairs = keys.windows(2);
        pairs.map(|two| (two[0].clone(), two[1].clone())).collect()
    };
    let (mut apart, mut together) = (Pairs::new(), Pairs::new());
    let mut leave = |from: &Cluster, parted: &[IssueKey]| -> Result<()> {
        let stay: Vec<IssueKey> = from
            .members
            .iter()
            .filter(|key| !parted.contains(key))
            .cloned()
            .collect();
        if parted.is_empty()
            || stay.is_empty()
            || parted.iter().any(|key| !from.members.contains(key))
        {
            return Err(Failure::user(
                "tick some of the members of the cluster, and not all",
            ));
        }
        for key in parted {
            apart.extend(stay.iter().map(|other| (key.clone(), other.clone())));
        }
        together.extend(chain(&stay));
        together.extend(chain(parted));
        Ok(())
    };
    let mut about = BTreeSet::new();
    match mending {
        Mending::Merge(a, b) if a == b => {
            return Err(Failure::user("a cluster is merged with another one"));
        }
        Mending::Merge(a, b) => {
            let (a, b) = (cluster(a)?, cluster(b)?);
            together.push((a.representative.clone(), b.representative.clone()));
            about.extend(a.members.iter().chain(&b.members).cloned());
        }
        Mending::Part(id, parted) => {
            leave(cluster(id)?, parted)?;
            about.extend(cluster(id)?.members.iter().cloned());
        }
        Mending::Move(id, moved, to) => {
            leave(cluster(id)?, moved)?;
            let to = cluster(to)?;
            together.push((moved[0].clone(), to.representative.clone()));
            about.extend(moved.iter().chain(&to.members).cloned());
        }
    }
    Ok((apart, together, about))
}
