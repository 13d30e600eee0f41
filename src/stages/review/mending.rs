//! Clusters as a reviewer mends them: put together, parted, a member moved, renamed, represented by another member, kept
//! or rejected. Each act is decisions as the command line writes them, on pairs of issues, on the name of an issue's
//! cluster, on what represents it; then clustering is run again, which they bind.

use super::acts::{Acts, Mended};
use super::deciding::is_named;
use super::items::{find, undecided};
use super::{Item, Reader, database, made};
use crate::domain::decision::{Decision, Subject, SubjectKind, Verb};
use crate::domain::digest;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, Outcome};
use crate::stages::{Context, Failure, Result};
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
    /// Of what a reviewer sees of the cluster itself: another one when it has changed, or was decided on.
    pub seen: String,
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

/// For a blind reader only their own decision counts.
pub fn material(context: &Context, id: &str, reader: &Reader) -> Result<Material> {
    let all = all_clusters(context)?;
    let found = all.into_iter().find(|(cluster, _)| cluster.id == id);
    let (cluster, outcome) = found.ok_or_else(|| no_cluster(id))?;
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
        item: is_kept
            .then(|| find(context, &subject, reader.alone()))
            .transpose()?,
        outcome,
        issues: members,
        seen: seen(context, &cluster)?,
        cluster,
    })
}

fn no_cluster(id: &str) -> Failure {
    Failure::user(format!("there is no cluster {id}")).hint("pipeline cluster")
}

fn seen(context: &Context, cluster: &Cluster) -> Result<String> {
    let decisions = made(context, SubjectKind::Cluster)?;
    let on_it = decisions.iter().filter(|made| made.on.id == cluster.id);
    Ok(digest::of([serde_json::to_vec(&(cluster, on_it.count()))?]))
}

/// What a reviewer does to a cluster, by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It and the other one report one phenomenon.
    Merge(String),
    /// These members report something else than the others, and among themselves the same.
    Part(Vec<IssueKey>),
    /// These members belong to the other cluster.
    Move(Vec<IssueKey>, String),
    Rename(String),
    /// This member stands for the others.
    Represent(IssueKey),
    /// It becomes a case or does not.
    Decide(Verb),
}

#[derive(Debug, Clone)]
pub struct Mending {
    pub cluster: String,
    pub act: Act,
    pub by: String,
    /// A name needs none.
    pub why: String,
    /// What the reviewer saw of the cluster; anything when it is none.
    pub seen: Option<String>,
}

/// Writes the decisions and clusters again. None when the cluster is not what the reviewer saw: then nothing is written.
pub fn mend(context: &Context, mending: Mending) -> Result<Option<Mended>> {
    is_named(&mending.by)?;
    let own = Acts::read(context, &mending.by)?;
    let all: Vec<Cluster> = clusters::all(&database(context)?)?;
    let cluster = named(&all, &mending.cluster)?;
    if let Some(expected) = &mending.seen
        && *expected != seen(context, cluster)?
    {
        return Ok(None);
    }
    let why = match &mending.act {
        Act::Rename(name) => name.trim(),
        _ => mending.why.trim(),
    };
    if why.is_empty() {
        return Err(match mending.act {
            Act::Rename(_) => Failure::user("a name has letters"),
            _ => Failure::user("a decision has a reason").hint("add --why TEXT"),
        });
    }
    let number = own.next();
    let mut lines = Vec::new();
    for (subject, verb) in says(&all, cluster, &mending.act)? {
        let item = match subject.kind {
            SubjectKind::Cluster => None,
            _ => undecided(context, &subject)?,
        };
        lines.push(Decision {
            at: context.timestamp(),
            by: mending.by.clone(),
            digest: item
                .map_or_else(|| find(context, &subject, None), Ok)?
                .digest,
            on: subject,
            decision: verb,
            why: why.to_owned(),
            act: Some(number),
        });
    }
    own.finish(context, lines)
}

fn named<'a>(all: &'a [Cluster], id: &str) -> Result<&'a Cluster> {
    all.iter()
        .find(|cluster| cluster.id == id)
        .ok_or_else(|| no_cluster(id))
}

/// The decisions of an act.
fn says(all: &[Cluster], cluster: &Cluster, act: &Act) -> Result<Vec<(Subject, Verb)>> {
    let of_issue = |kind, key: &IssueKey| Subject {
        kind,
        id: key.to_string(),
    };
    let together = |a: &IssueKey, b: &IssueKey| (pair(a, b), Verb::Approve);
    Ok(match act {
        Act::Merge(other) if *other == cluster.id => {
            return Err(Failure::user("a cluster is merged with another one"));
        }
        Act::Merge(other) => {
            let other = named(all, other)?;
            vec![together(&cluster.representative, &other.representative)]
        }
        Act::Part(members) => leave(cluster, members)?,
        Act::Move(_, to) if *to == cluster.id => {
            return Err(Failure::user("members move to another cluster"));
        }
        Act::Move(members, to) => {
            let to = named(all, to)?;
            let mut says = leave(cluster, members)?;
            says.push(together(&members[0], &to.representative));
            says
        }
        Act::Rename(_) => vec![(
            of_issue(SubjectKind::Name, &cluster.representative),
            Verb::Approve,
        )],
        Act::Represent(member) if !cluster.members.contains(member) => {
            return Err(Failure::user(format!(
                "{member} is no member of {}",
                cluster.id
            )));
        }
        Act::Represent(member) => {
            vec![(of_issue(SubjectKind::Representative, member), Verb::Approve)]
        }
        Act::Decide(verb) => vec![(
            Subject {
                kind: SubjectKind::Cluster,
                id: cluster.id.clone(),
            },
            *verb,
        )],
    })
}

fn pair(a: &IssueKey, b: &IssueKey) -> Subject {
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    Subject {
        kind: SubjectKind::Pair,
        id: format!("{a}={b}"),
    }
}

/// The parted members are apart from those that stay, and together among themselves.
fn leave(from: &Cluster, parted: &[IssueKey]) -> Result<Vec<(Subject, Verb)>> {
    let stay: Vec<IssueKey> = from
        .members
        .iter()
        .filter(|key| !parted.contains(key))
        .cloned()
        .collect();
    let are_members = parted.iter().all(|key| from.members.contains(key));
    if parted.is_empty() || stay.is_empty() || !are_members {
        return Err(Failure::user(
            "name some of the members of the cluster, and not all",
        ));
    }
    let mut says = Vec::new();
    for key in parted {
        says.extend(stay.iter().map(|other| (pair(key, other), Verb::Reject)));
    }
    for group in [stay.as_slice(), parted] {
        let next = group.windows(2);
        says.extend(next.map(|two| (pair(&two[0], &two[1]), Verb::Approve)));
    }
    Ok(says)
}
