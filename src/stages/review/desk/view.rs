//! What was decided on issues, as one reader sees it, by issue. Kept until the file changes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::super::read::Labels;
use super::Reader;
use crate::domain::decision::{Decision, Own, SubjectKind, Verb, standing};
use crate::domain::issue::IssueKey;
use crate::stages::{Classify, Kind, Result};
use crate::storage::reviews;

/// What an issue is to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Unread,
    Unsure,
    Relevant,
    NotRelevant,
}

/// What a reader sees of the decisions on one issue.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// The one that counts.
    pub decision: Option<Decision>,
    pub notes: Vec<Decision>,
    /// Lines on the issue, those that no longer count too.
    pub n_lines: usize,
}

#[derive(Default)]
pub struct View {
    pub labels: Labels,
    /// The reader's own last decision that stands.
    pub last_own: Option<Decision>,
    /// The reader's own decision that a redo makes again.
    pub last_taken_back: Option<Decision>,
    by_issue: HashMap<usize, Standing>,
}

impl View {
    pub fn state(&self, issue_idx: usize) -> State {
        let decision = self
            .by_issue
            .get(&issue_idx)
            .and_then(|standing| standing.decision.as_ref());
        match decision.map(|made| made.decision) {
            None => State::Unread,
            Some(Verb::Approve) => State::Relevant,
            Some(Verb::Unsure) => State::Unsure,
            Some(_) => State::NotRelevant,
        }
    }

    pub fn standing(&self, issue_idx: usize) -> Standing {
        self.by_issue.get(&issue_idx).cloned().unwrap_or_default()
    }
}

/// The views of all readers.
pub struct Views {
    reviews: PathBuf,
    by_key: HashMap<IssueKey, usize>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    stamp: Option<Stamp>,
    views: HashMap<Reader, Arc<View>>,
}

/// Of the file: another one after each change.
type Stamp = (u64, SystemTime);

impl Views {
    pub fn new(reviews: PathBuf, by_key: HashMap<IssueKey, usize>) -> Self {
        Self {
            reviews,
            by_key,
            kept: Mutex::default(),
        }
    }

    /// The same view as long as nobody has written.
    pub fn of(&self, reader: &Reader) -> Result<Arc<View>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the file is read: what is written meanwhile shows the next time.
        let stamp = std::fs::metadata(reviews::file(&self.reviews, SubjectKind::Issue))
            .ok()
            .and_then(|file| Some((file.len(), file.modified().ok()?)));
        if kept.stamp != stamp {
            *kept = Kept {
                stamp,
                views: HashMap::new(),
            };
        }
        if let Some(view) = kept.views.get(reader) {
            return Ok(view.clone());
        }
        let mut decisions =
            reviews::read(&self.reviews, SubjectKind::Issue).kind(Kind::Settings)?;
        if reader.blind {
            decisions.retain(|made| made.by == reader.name);
        }
        let view = Arc::new(self.view(&decisions, reader)?);
        kept.views.insert(reader.clone(), view.clone());
        Ok(view)
    }

    fn view(&self, decisions: &[Decision], reader: &Reader) -> Result<View> {
        let mut view = View {
            labels: Labels::of(decisions, |key| self.by_key.contains_key(key))?,
            ..View::default()
        };
        for made in decisions {
            let idx = made
                .on
                .id
                .parse()
                .ok()
                .and_then(|key: IssueKey| self.by_key.get(&key));
            if let Some(idx) = idx {
                let standing = view.by_issue.entry(*idx).or_default();
                standing.n_lines += 1;
                if made.decision == Verb::Note {
                    standing.notes.push(made.clone());
                }
            }
        }
        let mut own = Own::of(decisions, &reader.name);
        view.last_own = own.made.pop().cloned();
        view.last_taken_back = own.taken_back.pop().cloned();
        for (subject, made) in standing(decisions) {
            let idx = subject
                .id
                .parse()
                .ok()
                .and_then(|key: IssueKey| self.by_key.get(&key));
            if let Some(idx) = idx {
                view.by_issue.entry(*idx).or_default().decision = Some(made);
            }
        }
        Ok(view)
    }
}
