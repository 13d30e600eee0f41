//! What can be decided on, kind by kind.

use std::path::Path;

use super::{Item, database, made, read_or_none};
use crate::domain::case::{Case, CaseId, Method};
use crate::domain::clause::ClauseId;
use crate::domain::decision::{self, Decision, Subject, SubjectKind, standing};
use crate::domain::digest;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::RankedIssue;
use crate::domain::suite::Suite;
use crate::stages::{Context, Failure, Result};
use crate::storage::database::Database;
use crate::storage::{clusters, differences, issues, ranking, suite};

/// `by` is the one reviewer whose decisions count, for who reads blind.
pub(super) fn find(context: &Context, subject: &Subject, by: Option<&str>) -> Result<Item> {
    let found = match subject.kind {
        SubjectKind::Issue => match subject.id.parse() {
            Ok(key) => issue_item(context, &key)?,
            Err(message) => return Err(Failure::user(message)),
        },
        kind => items(context, kind, by)?
            .into_iter()
            .find(|item| item.subject == *subject)
            .map_or_else(|| undecided(context, subject), |item| Ok(Some(item)))?,
    };
    found.ok_or_else(|| {
        Failure::user(format!("there is no {subject}")).hint(format!(
            "pipeline review list --all --kind {}",
            subject.kind.as_str()
        ))
    })
}

pub(super) fn items(context: &Context, kind: SubjectKind, by: Option<&str>) -> Result<Vec<Item>> {
    let found = match kind {
        SubjectKind::Issue => issue_items(context)?,
        SubjectKind::Cluster => cluster_items(context)?,
        SubjectKind::Drop => drop_items(context)?,
        SubjectKind::Pair => pair_items(context)?,
        SubjectKind::Name | SubjectKind::Representative => told_items(context, kind)?,
        SubjectKind::Difference => difference_items(context)?,
        SubjectKind::Case => case_items(context)?,
    };
    let mut decisions = made(context, kind)?;
    decisions.retain(|made| by.is_none_or(|by| made.by == by));
    let standing = standing(&decisions);
    Ok(found
        .into_iter()
        .map(|found| {
            let id = found.id.clone();
            let subject = Subject { kind, id };
            let decided = standing.get(&subject).cloned();
            item(subject, found, decided)
        })
        .collect())
}

fn item(subject: Subject, found: Found, decided: Option<Decision>) -> Item {
    Item {
        // A decision without a digest was written by hand; it stands whatever changes.
        changed: decided
            .as_ref()
            .is_some_and(|one| !one.digest.is_empty() && one.digest != found.digest),
        decided,
        subject,
        title: found.title,
        clause: found.clause,
        why: found.why,
        digest: found.digest,
    }
}

struct Found {
    id: String,
    title: String,
    clause: Option<ClauseId>,
    why: String,
    digest: String,
}

fn issue_items(context: &Context) -> Result<Vec<Found>> {
    let database = database(context)?;
    let ranked = ranking::all(&database)?;
    let mut found: Vec<(u64, Found)> = issues::all(&database)?
        .into_iter()
        .map(|issue| {
            let ranked = ranked.get(&issue.key);
            let place = ranked.map_or(u64::MAX, |ranked| ranked.place);
            (place, issue_found(issue, ranked))
        })
        .collect();
    found.sort_by(|(a_place, a), (b_place, b)| (a_place, &a.id).cmp(&(b_place, &b.id)));
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

fn issue_found(issue: Issue, ranked: Option<&RankedIssue>) -> Found {
    Found {
        id: issue.key.to_string(),
        digest: issues::digest_of(&issue),
        title: issue.title,
        clause: ranked
            .and_then(|ranked| ranked.relevance.clauses.first())
            .map(|best| best.clause.clone()),
        why: match ranked {
            Some(ranked) => format!("place {} of the ranking, not read", ranked.place),
            None => "not ranked, not read".to_owned(),
        },
    }
}

/// One issue, without a look at all the others.
fn issue_item(context: &Context, key: &IssueKey) -> Result<Option<Item>> {
    let database = database(context)?;
    let Some(issue) = issues::get(&database, key)? else {
        return Ok(None);
    };
    let ranked = ranking::get(&database, key)?;
    let subject = Subject {
        kind: SubjectKind::Issue,
        id: key.to_string(),
    };
    let mut decisions = made(context, SubjectKind::Issue)?;
    decisions.retain(|decision| decision.on == subject);
    let decided = standing(&decisions).remove(&subject);
    let found = issue_found(issue, ranked.as_ref());
    Ok(Some(item(subject, found, decided)))
}

fn cluster_items(context: &Context) -> Result<Vec<Found>> {
    let kept = clusters::queue(&database(context)?)?;
    kept.into_iter()
        .map(|cluster| {
            Ok(Found {
                digest: digest::of([serde_json::to_vec(&cluster)?]),
                id: cluster.id,
                title: cluster.label,
                clause: cluster.clause,
                why: format!("kept by the filter, {} issues", cluster.members.len()),
            })
        })
        .collect()
}

/// Drops that were decided on. Nothing of them waits: `pipeline filter --list` has them all.
fn drop_items(context: &Context) -> Result<Vec<Found>> {
    let database = database(context)?;
    let decided = standing(&made(context, SubjectKind::Drop)?);
    let mut found = Vec::new();
    for subject in decided.keys() {
        found.extend(drop_found(&database, &subject.id)?);
    }
    Ok(found)
}

/// None when there is no such cluster any more.
fn drop_found(database: &Database, id: &str) -> Result<Option<Found>> {
    let mut all = clusters::all(database)?.into_iter();
    let Some(cluster) = all.find(|cluster| cluster.id == id) else {
        return Ok(None);
    };
    let mut outcomes = clusters::outcomes(database)?.into_iter();
    let why = match outcomes.find(|outcome| outcome.cluster == id) {
        Some(outcome) => match outcome.rule {
            Some(rule) => format!("dropped, {rule}: {}", outcome.reason),
            None => outcome.reason,
        },
        None => "not filtered yet".to_owned(),
    };
    Ok(Some(Found {
        digest: digest::of([serde_json::to_vec(&cluster)?]),
        id: cluster.id,
        title: cluster.label,
        clause: cluster.clause,
        why,
    }))
}

/// Pairs that were decided on. Nothing of them waits, since any two issues are one.
fn pair_items(context: &Context) -> Result<Vec<Found>> {
    let database = database(context)?;
    let decided = standing(&made(context, SubjectKind::Pair)?);
    let found = decided
        .keys()
        .map(|subject| pair_found(&database, &subject.id));
    Ok(found
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// None when one of the issues was not collected.
fn pair_found(database: &Database, id: &str) -> Result<Option<Found>> {
    let (a, b) = decision::pair(id).map_err(Failure::settings)?;
    let (Some(a), Some(b)) = (issues::get(database, &a)?, issues::get(database, &b)?) else {
        return Ok(None);
    };
    Ok(Some(Found {
        id: id.to_owned(),
        title: format!("{} = {}", a.title, b.title),
        clause: None,
        why: "two issues".to_owned(),
        digest: digest::of([issues::digest_of(&a), issues::digest_of(&b)]),
    }))
}

/// Issues by which the cluster that holds them has a name or a representative. Nothing of them waits.
fn told_items(context: &Context, kind: SubjectKind) -> Result<Vec<Found>> {
    let database = database(context)?;
    let mut found = Vec::new();
    for subject in standing(&made(context, kind)?).keys() {
        found.extend(told_found(&database, kind, &subject.id)?);
    }
    Ok(found)
}

/// None when the issue was not collected.
fn told_found(database: &Database, kind: SubjectKind, id: &str) -> Result<Option<Found>> {
    let key = id.parse::<IssueKey>().map_err(Failure::settings)?;
    let why = match kind {
        SubjectKind::Name => "the name of its cluster",
        _ => "represents its cluster",
    };
    Ok(issues::get(database, &key)?.map(|issue| Found {
        why: why.to_owned(),
        clause: None,
        ..issue_found(issue, None)
    }))
}

/// Any collected issue can name its cluster or represent it, any two can be decided on, any cluster that the filter looked at, and any case of the suite.
pub(super) fn undecided(context: &Context, subject: &Subject) -> Result<Option<Item>> {
    let found = match subject.kind {
        SubjectKind::Pair => pair_found(&database(context)?, &subject.id)?,
        SubjectKind::Drop => drop_found(&database(context)?, &subject.id)?,
        SubjectKind::Name | SubjectKind::Representative => {
            told_found(&database(context)?, subject.kind, &subject.id)?
        }
        SubjectKind::Case => read_or_none(&context.project.cases())
            .get(&CaseId::new(subject.id.as_str()))
            .filter(|case| !case.is_control())
            .map(|case| case_found(case, "a case of the suite")),
        _ => None,
    };
    Ok(found.map(|found| Item {
        subject: subject.clone(),
        title: found.title,
        clause: found.clause,
        why: found.why,
        digest: found.digest,
        decided: None,
        changed: false,
    }))
}

fn difference_items(context: &Context) -> Result<Vec<Found>> {
    let stored = differences::all(&database(context)?)?;
    stored
        .into_iter()
        .map(|stored| {
            let difference = &stored.difference;
            Ok(Found {
                digest: digest::of([serde_json::to_vec(difference)?]),
                id: difference.id.clone(),
                title: difference.title.clone(),
                clause: difference.trace.as_ref().map(|trace| trace.clause.clone()),
                why: format!("{} beside {}", stored.candidates.join(", "), stored.target),
            })
        })
        .collect()
}

/// Variants that wait, and cases that were variants once: those that somebody decided on.
fn case_items(context: &Context) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for case in variants(&context.project.variants())?.tests() {
        let why = match case.origin().map(|origin| origin.method) {
            Some(Method::Issues) => "drafted from a cluster",
            _ => "a variant, kept by the distance check",
        };
        found.push(case_found(case, why));
    }
    let decided = standing(&made(context, SubjectKind::Case)?);
    let cases = read_or_none(&context.project.cases());
    for subject in decided.keys() {
        if let Some(case) = cases.get(&CaseId::new(subject.id.as_str())) {
            found.push(case_found(case, "a case of the suite"));
        }
    }
    Ok(found)
}

fn case_found(case: &Case, why: &str) -> Found {
    Found {
        id: case.id.to_string(),
        title: case.title.clone(),
        clause: Some(case.clause.clone()),
        why: why.to_owned(),
        digest: suite::case_digest(case),
    }
}

fn variants(folder: &Path) -> Result<Suite> {
    if !folder.exists() {
        return Ok(Suite::default());
    }
    suite::read(folder).map_err(|findings| Failure::findings(&findings))
}
