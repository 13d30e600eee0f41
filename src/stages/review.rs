//! What waits for a reviewer, and what reviewers decide. The files below `reviews/` are the truth; the database and
//! the folders follow them.

mod cases;
mod desk;
mod double;
mod known;
mod mending;
mod read;
mod simulate;
mod text;

pub use cases::{Changed, Dossier, Proof, Tried, dossier, try_out};
pub use desk::{Alike, Beside, Desk, Filter, Progress, Reader, Sheet, Standing, State};
pub use double::{Double, double};
pub use mending::{Material, Mended, Mending, all_clusters, material, mend};

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
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::RankedIssue;
use crate::domain::suite::{Suite, control_id};
use crate::storage::database::Database;
use crate::storage::reviews::ReviewsError;
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
    pub fn waits(&self) -> bool {
        let is_open = |made: &Decision| made.decision == Verb::Unsure;
        self.decided.as_ref().is_none_or(is_open) || self.changed
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
    Ok(decide_if(context, saying, |_| true)?.expect("anything is expected"))
}

/// The same, unless what was decided so far on subjects of this kind is not what is expected: then nothing is written,
/// and the answer is none.
pub fn decide_if(
    context: &Context,
    saying: Saying,
    is_expected: impl FnOnce(&[Decision]) -> bool,
) -> Result<Option<Decided>> {
    let is_case = saying.subject.kind == SubjectKind::Case;
    if is_case {
        settle(context)?;
    }
    if saying.by.trim().is_empty() {
        return Err(Failure::user("nobody knows who decides")
            .hint("add --by NAME, or set PIPELINE_REVIEWER, or git config user.name"));
    }
    // Issues are read by the thousand.
    let is_reading = saying.subject.kind == SubjectKind::Issue && saying.verb != Verb::Note;
    if saying.verb != Verb::Undo && !is_reading && saying.why.trim().is_empty() {
        return Err(Failure::user("a decision has a reason").hint("add --why TEXT"));
    }
    if saying.verb == Verb::Change && !is_case {
        return Err(Failure::user("only cases are sent back for a change"));
    }
    let item = find(context, &saying.subject)?;
    if saying.verb == Verb::Undo && n_standing(context, &saying.subject, &saying.by)? == 0 {
        return Err(Failure::user(format!(
            "{} has no decision on {} to take back",
            saying.by, saying.subject
        )));
    }
    if is_case && matches!(saying.verb, Verb::Approve | Verb::Reject) && !moves(context, &item)? {
        return Err(Failure::user(format!(
            "{} is in the suite and was no variant",
            saying.subject
        ))
        .hint(format!(
            "pipeline review change {} --why TEXT",
            saying.subject
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
    match reviews::append_if(&context.project.reviews(), &decision, is_expected) {
        Err(ReviewsError::Meanwhile(_)) => return Ok(None),
        Err(error @ ReviewsError::Line { .. }) => return Err(error).kind(Kind::Settings),
        written => written.kind(Kind::Environment)?,
    }
    let mut moved_to = None;
    if is_case {
        settle(context)?;
        moved_to = place_of(context, &decision.on.id);
    }
    Ok(Some(Decided { decision, moved_to }))
}

/// Whether a case joins the suite or leaves it by a decision: one that waits, or that did before it was decided on.
fn moves(context: &Context, item: &Item) -> Result<bool> {
    let waiting = context.project.variants().join(file_of(&item.subject.id));
    let was_decided = made(context, SubjectKind::Case)?.iter().any(|made| {
        made.on == item.subject && matches!(made.decision, Verb::Approve | Verb::Reject)
    });
    Ok(waiting.exists() || was_decided)
}

/// Cases of the suite that nobody has decided on, with their titles.
pub fn undecided_cases(context: &Context) -> Result<Vec<(String, String)>> {
    let decided = standing(&made(context, SubjectKind::Case)?);
    let cases = read_or_none(&context.project.cases());
    let is_decided = |case: &&Case| decided.keys().any(|subject| subject.id == case.id.as_str());
    Ok(cases
        .tests()
        .filter(|case| !is_decided(case))
        .map(|case| (case.id.to_string(), case.title.clone()))
        .collect())
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
    // A remark moves nothing, nor does a case that is only sent back.
    let moving = decisions
        .iter()
        .filter(|made| matches!(made.decision, Verb::Approve | Verb::Reject));
    for on in moving.map(|decision| &decision.on) {
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
                Verb::Note => n,
                _ => n + 1,
            };
        }
    }
    Ok(n)
}

fn made(context: &Context, kind: SubjectKind) -> Result<Vec<Decision>> {
    reviews::read(&context.project.reviews(), kind).kind(Kind::Settings)
}

fn find(context: &Context, subject: &Subject) -> Result<Item> {
    let found = match subject.kind {
        SubjectKind::Issue => match subject.id.parse() {
            Ok(key) => issue_item(context, &key)?,
            Err(message) => return Err(Failure::user(message)),
        },
        kind => items(context, kind)?
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

/// Any two collected issues can be decided on, any cluster that the filter looked at, and any case of the suite.
fn undecided(context: &Context, subject: &Subject) -> Result<Option<Item>> {
    let found = match subject.kind {
        SubjectKind::Pair => pair_found(&database(context)?, &subject.id)?,
        SubjectKind::Drop => drop_found(&database(context)?, &subject.id)?,
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
