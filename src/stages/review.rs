//! What waits for a reviewer, and what reviewers decide. The files below `reviews/` are the truth; the database and
//! the folders follow them.

mod acts;
mod cases;
mod deciding;
mod desk;
mod double;
mod items;
mod joining;
mod known;
mod mending;
mod read;
mod simulate;
mod text;

pub use acts::{Mended, meanwhile, redo_act, undo_act};
pub use cases::{Changed, Dossier, Proof, Tried, cases, dossier, try_out};
pub use deciding::{Decided, Saying, decide, decide_if, redo};
pub use desk::{Alike, Beside, Desk, Filter, Progress, Reader, Sheet, Standing, State};
pub use double::{Double, double};
pub use joining::undecided_cases;
pub use mending::{Act, Material, Mending, all_clusters, material, mend};

pub use read::{
    Config as ReadConfig, Order, Summary as ReadSummary, Unread, read, reading, record,
};
pub use simulate::{Simulated, simulate};

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use self::items::{find, items};
use self::joining::settle;
use super::{Classify, Context, Kind, Result};
use crate::domain::clause::ClauseId;
use crate::domain::decision::{Decision, Subject, SubjectKind, Verb};
use crate::domain::suite::Suite;
use crate::storage::database::Database;
use crate::storage::{reviews, suite};

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
        items.extend(self::items::items(context, kind, None)?);
    }
    let n_waiting = items.iter().filter(|item| item.waits()).count();
    items.retain(|item| all || item.waits());
    Ok(Listing { items, n_waiting })
}

/// How many of each kind wait.
pub fn waiting(context: &Context) -> Result<BTreeMap<SubjectKind, usize>> {
    let mut waiting = BTreeMap::new();
    for kind in SubjectKind::ALL {
        let n = items(context, kind, None)?
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
        item: find(context, subject, None)?,
        text: text::text(context, subject)?,
    })
}

fn made(context: &Context, kind: SubjectKind) -> Result<Vec<Decision>> {
    reviews::read(&context.project.reviews(), kind).kind(Kind::Settings)
}

fn database(context: &Context) -> Result<Database> {
    Database::open_to_read(&context.project.database()).kind(Kind::Environment)
}

/// What can be read of a suite; its faults are told where it is evaluated.
fn read_or_none(folder: &Path) -> Suite {
    suite::read(folder).unwrap_or_default()
}

fn file_of(id: &str) -> String {
    format!("{id}.toml")
}
