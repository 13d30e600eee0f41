//! What waits for a reviewer, and what reviewers decide. The files below `reviews/` are the truth; the database and
//! the folders follow them.

mod read;
mod simulate;
mod text;

pub use read::{
    Config as ReadConfig, Order, Summary as ReadSummary, Unread, read, reading, record,
};
pub use simulate::{Simulated, simulate};

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::case::{Case, CaseId, Method};
use crate::domain::clause::ClauseId;
use crate::domain::decision::{self, Decision, Subject, SubjectKind, Verb, standing};
use crate::domain::digest;
use crate::domain::suite::{Suite, control_id};
use crate::storage::database::Database;
use crate::storage::{clusters, differences, issues, ranking, reviews, suite};

/// Something that can be decided on.
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    pub subject: Subject,
    pub title: String,
    pub clause: Option<ClauseId>,
    /// Why it waits.
    pub why: String,
    /// Of what a reviewer sees of it.
    pub digest: String,
    /// The decision that counts.
    pub decided: Option<Decision>,
    /// It has changed since that decision.
    pub changed: bool,
}

impl Item {
    fn waits(&self) -> bool {
        self.decided.is_none() || self.changed
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    pub items: Vec<Item>,
    /// Those of all kinds that wait.
    pub n_waiting: usize,
}

/// Lists what waits, or everything; all kinds, or one. Issues come in the order of the ranking.
pub fn list(context: &Context, kind: Option<SubjectKind>, all: bool) -> Result<Listing> {
    settle(context)?;
    let kinds = SubjectKind::ALL
        .into_iter()
        .filter(|one| kind.is_none_or(|wanted| wanted == *one));
    let mut items = Vec::new();
    for kind in kinds {
        items.extend(self::items(context, kind)?);
    }
    let n_waiting = items.iter().filter(|item| item.waits()).count();
    items.retain(|item| all || item.waits());
    Ok(Listing { items, n_waiting })
}

/// How many of each kind wait.
pub fn waiting(context: &Context) -> Result<BTreeMap<SubjectKind, usize>> {
    let mut waiting = BTreeMap::new();
    for kind in SubjectKind::ALL {
        let n = items(context, kind)?
            .iter()
            .filter(|item| item.waits())
            .count();
        waiting.insert(kind, n);
    }
    Ok(waiting)
}

/// An item and everything that a reviewer needs to see of it, as lines of third-party text.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    pub item: Item,
    pub text: String,
}

pub fn show(context: &Context, subject: &Subject) -> Result<Shown> {
    Ok(Shown {
        item: find(context, subject)?,
        text: text::text(context, subject)?,
    })
}

/// What a reviewer says.
#[derive(Debug, Clone)]
pub struct Saying {
    pub subject: Subject,
    pub verb: Verb,
    pub by: String,
    pub why: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Decided {
    pub decision: Decision,
    /// Where a case lies now.
    pub moved_to: Option<String>,
}

pub fn decide(context: &Context, saying: Saying) -> Result<Decided> {
    settle(context)?;
    if saying.by.trim().is_empty() {
        return Err(Failure::user("nobody knows who decides")
            .hint("add --by NAME, or set PIPELINE_REVIEWER, or git config user.name"));
    }
    if saying.verb != Verb::Undo && saying.why.trim().is_empty() {
        return Err(Failure::user("a decision has a reason").hint("add --why TEXT"));
    }
    let item = find(context, &saying.subject)?;
    if saying.verb == Verb::Undo && n_standing(context, &saying.subject, &saying.by)? == 0 {
        return Err(Failure::user(format!(
            "{} has no decision on {} to take back",
            saying.by, saying.subject
        )));
    }
    let decision = Decision {
        at: context.timestamp(),
        by: saying.by,
        on: saying.subject,
        digest: item.digest,
        decision: saying.verb,
        why: saying.why,
    };
    if decision.on.kind == SubjectKind::Case && decision.decision == Verb::Approve {
        let place = context.project.cases().join(file_of(&decision.on.id));
        let waiting = context.project.variants().join(file_of(&decision.on.id));
        if place.exists() && waiting.exists() {
            return Err(Failure::user(format!(
                "{} is there already",
                context.project.shown(&place)
            ))
            .hint("give the variant another name"));
        }
        if let Some((what, to_do)) = text::unfinished(context, &decision.on.id)? {
            let file = context.project.shown(&waiting);
            return Err(Failure::user(what).hint(format!("{to_do} in {file}")));
        }
    }
    reviews::append(&context.project.reviews(), &decision).kind(Kind::Environment)?;
    settle(context)?;
    let moved_to = match decision.on.kind {
        SubjectKind::Case => place_of(context, &decision.on.id),
        _ => None,
    };
    Ok(Decided { decision, moved_to })
}

/// Makes the folders follow the decisions: approved variants and the controls that gate them lie in `cases/`, all
/// others in `data/variants/`.
///
/// Called before anything is listed or decided, so that a process killed between decision and move loses nothing.
fn settle(context: &Context) -> Result<()> {
    let decisions = made(context, SubjectKind::Case)?;
    let standing = standing(&decisions);
    let (suite, waiting) = (context.project.cases(), context.project.variants());
    let mut controls = BTreeSet::new();
    for on in decisions.iter().map(|decision| &decision.on) {
        let approved = standing
            .get(on)
            .is_some_and(|made| made.decision == Verb::Approve);
        let file = file_of(&on.id);
        match approved {
            true => follow(&waiting.join(&file), &suite.join(&file))?,
            false => follow(&suite.join(&file), &waiting.join(&file))?,
        }
        for place in [suite.join(&file), waiting.join(&file)] {
            if let Ok(text) = std::fs::read_to_string(&place)
                && let Ok(case) = Case::parse(CaseId::new(on.id.as_str()), &place, &text)
            {
                controls.extend(case.controls().iter().map(|name| control_id(name)));
            }
        }
    }
    let cases = read_or_none(&suite);
    for id in controls {
        let gates = cases
            .tests()
            .any(|case| case.controls().iter().any(|name| name == id.name()));
        let file = file_of(id.as_str());
        match gates {
            true => follow(&waiting.join(&file), &suite.join(&file))?,
            false => follow(&suite.join(&file), &waiting.join(&file))?,
        }
    }
    Ok(())
}

/// Moves a file that is there to a place where none is.
fn follow(from: &Path, to: &Path) -> Result<()> {
    if from.exists() && !to.exists() {
        let folder = to.parent().expect("a case lies in a folder");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::rename(from, to))
            .kind(Kind::Environment)?;
    }
    Ok(())
}

/// What can be read of a suite; its faults are told where it is evaluated.
fn read_or_none(folder: &Path) -> Suite {
    suite::read(folder).unwrap_or_default()
}

fn file_of(id: &str) -> String {
    format!("{id}.toml")
}

fn place_of(context: &Context, id: &str) -> Option<String> {
    [context.project.cases(), context.project.variants()]
        .into_iter()
        .map(|folder| folder.join(file_of(id)))
        .find(|path| path.exists())
        .map(|path| context.project.shown(&path))
}

/// Decisions of one reviewer on a subject that were not taken back.
fn n_standing(context: &Context, subject: &Subject, by: &str) -> Result<usize> {
    let mut n: usize = 0;
    for one in made(context, subject.kind)? {
        if one.on == *subject && one.by == by {
            n = match one.decision {
                Verb::Undo => n.saturating_sub(1),
                Verb::Approve | Verb::Reject => n + 1,
            };
        }
    }
    Ok(n)
}

fn made(context: &Context, kind: SubjectKind) -> Result<Vec<Decision>> {
    reviews::read(&context.project.reviews(), kind).kind(Kind::Settings)
}

fn find(context: &Context, subject: &Subject) -> Result<Item> {
    items(context, subject.kind)?
        .into_iter()
        .find(|item| item.subject == *subject)
        .map_or_else(|| undecided(context, subject), |item| Ok(Some(item)))?
        .ok_or_else(|| {
            Failure::user(format!("there is no {subject}")).hint(format!(
                "pipeline review list --all --kind {}",
                subject.kind.as_str()
            ))
        })
}

fn items(context: &Context, kind: SubjectKind) -> Result<Vec<Item>> {
    let found = match kind {
        SubjectKind::Issue => issue_items(context)?,
        SubjectKind::Cluster => cluster_items(context)?,
        SubjectKind::Drop => drop_items(context)?,
        SubjectKind::Pair => pair_items(context)?,
        SubjectKind::Difference => difference_items(context)?,
        SubjectKind::Case => case_items(context)?,
    };
    let standing = standing(&made(context, kind)?);
    Ok(found
        .into_iter()
        .map(|found| {
            let subject = Subject { kind, id: found.id };
            let decided = standing.get(&subject).cloned();
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
        })
        .collect())
}

struct Found {
    id: String,
    title: String,
    clause: Option<ClauseId>,
    why: String,
    digest: String,
}

fn database(context: &Context) -> Result<Database> {
    Database::open_to_read(&context.project.database()).kind(Kind::Environment)
}

fn issue_items(context: &Context) -> Result<Vec<Found>> {
    let database = database(context)?;
    let ranked = ranking::all(&database)?;
    let mut found: Vec<(u64, Found)> = issues::all(&database)?
        .into_iter()
        .map(|issue| {
            let ranked = ranked.get(&issue.key);
            let place = ranked.map_or(u64::MAX, |ranked| ranked.place);
            let one = Found {
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
            };
            (place, one)
        })
        .collect();
    found.sort_by(|(a_place, a), (b_place, b)| (a_place, &a.id).cmp(&(b_place, &b.id)));
    Ok(found.into_iter().map(|(_, found)| found).collect())
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

/// Any two collected issues can be decided on, and any cluster that the filter looked at.
fn undecided(context: &Context, subject: &Subject) -> Result<Option<Item>> {
    let found = match subject.kind {
        SubjectKind::Pair => pair_found(&database(context)?, &subject.id)?,
        SubjectKind::Drop => drop_found(&database(context)?, &subject.id)?,
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
