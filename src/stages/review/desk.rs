//! The reviewer's desk: all issues at hand, so that the next one is there at once. Decisions are read again whenever
//! their file has changed, whoever wrote it. What takes longer than a person waits, learning the order and whether
//! reading may stop, is done beside, after each decision.

mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use self::view::{View, Views};
use super::known::Known;
use super::read::{Config, Order, telling};
use crate::domain::clause::ClauseId;
use crate::domain::decision::Decision;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::RankedIssue;
use crate::methods::feedback::Learned;
use crate::methods::stopping::Reading;
use crate::methods::text::markdown::Stretch;
use crate::paths::Project;
use crate::stages::rank::MatchedTerms;
use crate::stages::{Classify, Failure, Kind, Result};
use crate::storage::database::Database;
use crate::storage::{documents, issues, ranking, samples};

pub use view::{Standing, State};

/// Who reads. A blind reader sees and is shown nothing of what others decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reader {
    pub name: String,
    pub blind: bool,
}

impl Reader {
    /// The one reviewer whose decisions a blind reader sees.
    pub(super) fn alone(&self) -> Option<&str> {
        self.blind.then_some(self.name.as_str())
    }
}

/// Which issues are in the queue; what is empty does not count.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub state: Option<State>,
    /// Words that an issue holds.
    pub text: String,
    /// The beginning of the id of its best clause.
    pub clause: String,
    pub repository: String,
}

/// Issues are named by their position in the order of their keys.
pub struct Desk {
    project: Project,
    config: Config,
    heads: Vec<issues::Head>,
    places: Vec<(u64, Option<ClauseId>)>,
    by_key: HashMap<IssueKey, usize>,
    views: Views,
    known: OnceLock<Known>,
    trouble: OnceLock<String>,
    learnt: RwLock<BTreeMap<Reader, Arc<Learnt>>>,
    wake: Mutex<Sender<()>>,
}

/// What follows from the decisions and takes a while.
#[derive(Default)]
struct Learnt {
    /// Nobody has changed anything since as long as these are the same.
    view: Option<Arc<View>>,
    sampled: BTreeSet<usize>,
    /// All issues, the next to read first.
    order: Vec<usize>,
    /// Where each issue is in that order.
    places: Vec<usize>,
    kind: Option<Order>,
    learned: Option<Learned>,
    reading: Option<Reading>,
}

/// How far reading is.
#[derive(Debug, Clone)]
pub struct Progress {
    pub n_issues: usize,
    pub n_read: usize,
    pub n_relevant: usize,
    pub n_unsure: usize,
    /// Whether each issue that was read was relevant, in the order of reading.
    pub curve: Vec<bool>,
    /// Calculated beside: it can be some decisions behind.
    pub reading: Option<Reading>,
    /// None while all issues are being read in.
    pub order: Option<Order>,
    /// Why all issues cannot be read in.
    pub trouble: Option<String>,
}

/// An issue with all that a reviewer wants to see of it.
pub struct Sheet {
    pub issue: Issue,
    pub stretches: Vec<(Stretch, String)>,
    pub ranked: Option<RankedIssue>,
    /// The best clauses with the words that matched; empty while all issues are being read in.
    pub matched: Vec<MatchedTerms>,
    /// Words that speak for it, by what was read so far.
    pub words: Vec<String>,
    pub alike: Vec<Alike>,
    pub standing: Standing,
}

pub struct Alike {
    pub key: IssueKey,
    pub title: String,
    pub cosine: f32,
    pub state: State,
}

/// Where an issue is in its queue.
#[derive(Debug, Default)]
pub struct Beside {
    /// From 1; 0 when it is not in the queue.
    pub at: usize,
    pub n: usize,
    pub previous: Option<IssueKey>,
    pub next: Option<IssueKey>,
}

/// Clauses that are shown with an issue.
const N_CLAUSES: usize = 4;
/// How long it takes until decisions that others wrote are learned from.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl Desk {
    /// Opens at once; all issues are read in beside.
    pub fn open(project: &Project, readers: Vec<Reader>) -> Result<Arc<Self>> {
        let database = Database::open_to_read(&project.database()).kind(Kind::Environment)?;
        let heads = issues::heads(&database)?;
        let mut ranked = ranking::places(&database)?;
        if ranked.is_empty() && !heads.is_empty() {
            return Err(Failure::user("there is no ranking yet").hint("pipeline rank"));
        }
        let unranked = (u64::MAX, None);
        let by_key: HashMap<IssueKey, usize> =
            heads.iter().map(|head| head.key.clone()).zip(0..).collect();
        let (wake, woken) = channel();
        let desk = Arc::new(Self {
            project: project.clone(),
            config: Config::read(project)?,
            places: heads
                .iter()
                .map(|head| ranked.remove(&head.key).unwrap_or(unranked.clone()))
                .collect(),
            heads,
            views: Views::new(project.reviews(), by_key.clone()),
            by_key,
            known: OnceLock::new(),
            trouble: OnceLock::new(),
            learnt: RwLock::default(),
            wake: Mutex::new(wake),
        });
        for reader in &readers {
            desk.learn(reader)?;
        }
        let beside = desk.clone();
        std::thread::Builder::new()
            .name("desk".to_owned())
            .spawn(move || beside.work(&readers, &woken))?;
        Ok(desk)
    }

    /// The queue of a reader: the next to read first.
    pub fn queue(&self, reader: &Reader, filter: &Filter) -> Result<Vec<usize>> {
        let view = self.views.of(reader)?;
        let found = match (self.known.get(), filter.text.trim()) {
            (_, "") => None,
            (Some(known), text) => known.search(text)?,
            (None, _) => return Err(Failure::user("the search index is being made; try again")),
        };
        let wanted = |idx: &usize| {
            let (_, clause) = &self.places[*idx];
            let clause = clause.as_ref().map_or("", ClauseId::as_str);
            filter.state.is_none_or(|state| state == view.state(*idx))
                && clause.starts_with(&filter.clause)
                && (filter.repository.is_empty()
                    || self.heads[*idx].key.repository == filter.repository)
                && found.as_ref().is_none_or(|found| found.contains(idx))
        };
        let learnt = self.learnt(reader);
        Ok(learnt.order.iter().copied().filter(wanted).collect())
    }

    /// Where an issue is in a queue. One that is not in it, since it was just decided on, has the place at which it was.
    pub fn beside(&self, reader: &Reader, queue: &[usize], key: &IssueKey) -> Beside {
        let Some(idx) = self.by_key.get(key) else {
            return Beside::default();
        };
        let places = &self.learnt(reader).places;
        let n_before = queue.partition_point(|other| places[*other] < places[*idx]);
        let is_here = queue.get(n_before) == Some(idx);
        let key = |place: Option<usize>| Some(self.heads[*queue.get(place?)?].key.clone());
        Beside {
            at: if is_here { n_before + 1 } else { 0 },
            n: queue.len(),
            previous: key(n_before.checked_sub(1)),
            next: key(Some(n_before + usize::from(is_here))),
        }
    }

    pub fn key(&self, idx: usize) -> &IssueKey {
        &self.heads[idx].key
    }

    pub fn title(&self, idx: usize) -> &str {
        &self.heads[idx].title
    }

    pub fn state(&self, reader: &Reader, idx: usize) -> Result<State> {
        Ok(self.views.of(reader)?.state(idx))
    }

    pub fn clause(&self, idx: usize) -> Option<&ClauseId> {
        self.places[idx].1.as_ref()
    }

    pub fn repositories(&self) -> BTreeSet<&str> {
        self.heads
            .iter()
            .map(|head| head.key.repository.as_str())
            .collect()
    }

    /// None when there is no such issue.
    pub fn sheet(&self, reader: &Reader, key: &IssueKey) -> Result<Option<Sheet>> {
        let Some(idx) = self.by_key.get(key).copied() else {
            return Ok(None);
        };
        let database = Database::open_to_read(&self.project.database()).kind(Kind::Environment)?;
        let Some(issue) = issues::get(&database, key)? else {
            return Ok(None);
        };
        let mut ranked = ranking::get(&database, key)?;
        if let Some(ranked) = &mut ranked {
            ranked.relevance.clauses.truncate(N_CLAUSES);
        }
        let view = self.views.of(reader)?;
        let learnt = self.learnt(reader);
        let mut sheet = Sheet {
            stretches: vec![(Stretch::Prose, issue.body.clone())],
            matched: Vec::new(),
            words: Vec::new(),
            alike: Vec::new(),
            standing: view.standing(idx),
            ranked,
            issue,
        };
        if let Some(known) = self.known.get() {
            sheet.stretches = known.stretches(&sheet.issue);
            if let Some(ranked) = &sheet.ranked {
                sheet.matched = known.matched(&sheet.issue, &ranked.relevance.clauses)?;
            }
            if let Some(learned) = &learnt.learned {
                let features = &known.features[idx];
                sheet.words = telling(learned, features, |dim| known.term(dim), &sheet.issue);
            }
            let alike = known.alike(idx).into_iter();
            sheet.alike = alike
                .map(|(other, cosine)| Alike {
                    key: self.heads[other].key.clone(),
                    title: self.heads[other].title.clone(),
                    cosine,
                    state: view.state(other),
                })
                .collect();
        }
        Ok(Some(sheet))
    }

    pub fn progress(&self, reader: &Reader) -> Result<Progress> {
        let view = self.views.of(reader)?;
        let learnt = self.learnt(reader);
        Ok(Progress {
            n_issues: self.heads.len(),
            n_read: view.labels.in_order.len(),
            n_relevant: view.labels.in_order.iter().filter(|label| **label).count(),
            n_unsure: view.labels.unsure.len(),
            curve: view.labels.in_order.clone(),
            reading: learnt.reading.clone(),
            order: learnt.kind.filter(|_| self.known.get().is_some()),
            trouble: self.trouble.get().cloned(),
        })
    }

    /// The reader's own last decision on an issue that stands: what an undo takes back.
    pub fn last_own(&self, reader: &Reader) -> Result<Option<Decision>> {
        Ok(self.views.of(reader)?.last_own.clone())
    }

    /// The reader's own decision on an issue that was taken back last, unless the reader decided since: what a redo makes
    /// again.
    pub fn last_taken_back(&self, reader: &Reader) -> Result<Option<Decision>> {
        Ok(self.views.of(reader)?.last_taken_back.clone())
    }

    /// Says that something was decided.
    pub fn decided(&self) {
        // Who does not listen any more has nothing to learn.
        let _ = self
            .wake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(());
    }

    fn learnt(&self, reader: &Reader) -> Arc<Learnt> {
        let learnt = self.learnt.read().unwrap_or_else(PoisonError::into_inner);
        learnt.get(reader).cloned().unwrap_or_default()
    }

    fn work(&self, readers: &[Reader], woken: &Receiver<()>) {
        let mut outcome = self.know();
        loop {
            for reader in readers {
                outcome = outcome.and_then(|()| self.learn(reader));
            }
            // A file that cannot be read is told by each page; here it may be whole again the next time.
            if let Err(failure) = std::mem::replace(&mut outcome, Ok(()))
                && self.known.get().is_none()
            {
                let _ = self.trouble.set(failure.to_string());
                return;
            }
            if woken.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            while woken.try_recv().is_ok() {}
        }
    }

    fn know(&self) -> Result<()> {
        let database = Database::open_to_read(&self.project.database()).kind(Kind::Environment)?;
        let issues = issues::all(&database)?;
        let is_same = issues
            .iter()
            .map(|issue| &issue.key)
            .eq(self.heads.iter().map(|head| &head.key));
        if !is_same {
            return Err(Failure::user(
                "issues were collected meanwhile; start again",
            ));
        }
        let document = documents::read(&self.project.document())
            .map_err(|findings| Failure::findings(&findings))?;
        let places = self
            .places
            .iter()
            .map(|(place, _)| Some(*place).filter(|place| *place != u64::MAX));
        let known = Known::new(&issues, places, document, &self.config)?;
        // The first one: nobody else sets it.
        let _ = self.known.set(known);
        Ok(())
    }

    /// Learns from what was decided, unless nothing was decided since.
    fn learn(&self, reader: &Reader) -> Result<()> {
        let view = self.views.of(reader)?;
        let before = self.learnt(reader);
        let settings = &self.config.settings;
        let sample = samples::read(&self.project.reviews())
            .kind(Kind::Settings)?
            .pop();
        let sampled: BTreeSet<usize> = sample
            .iter()
            .flat_map(|sample| &sample.issues)
            .filter_map(|key| self.by_key.get(key).copied())
            .collect();
        let is_same = before
            .view
            .as_ref()
            .is_some_and(|seen| Arc::ptr_eq(seen, &view));
        let is_known = self.known.get().is_some();
        if is_same && before.kind.is_some() == is_known && before.sampled == sampled {
            return Ok(());
        }
        let mut order: Vec<usize> = (0..self.heads.len()).collect();
        order.sort_by_key(|idx| self.places[*idx].0);
        let mut learnt = Learnt {
            reading: Some(
                view.labels
                    .reading(self.heads.len(), sample.as_ref(), &settings.stop),
            ),
            ..Learnt::default()
        };
        if let Some(known) = self.known.get() {
            let keys = self.heads.iter().map(|head| &head.key);
            learnt.learned = view.labels.learn(keys, &known.features, &settings.feedback);
            if let Some(learned) = &learnt.learned {
                super::read::sort(&mut order, learned, &known.features);
            }
            let waits = |idx: &usize| view.state(*idx) == State::Unread;
            learnt.kind = Some(match &learnt.learned {
                _ if sampled.iter().any(waits) => Order::Sample,
                Some(_) => Order::Learned,
                None => Order::Ranking,
            });
        }
        // The closing sample is read first.
        order.sort_by_key(|idx| !sampled.contains(idx));
        learnt.places = vec![0; order.len()];
        for (place, idx) in order.iter().enumerate() {
            learnt.places[*idx] = place;
        }
        learnt.order = order;
        learnt.sampled = sampled;
        learnt.view = Some(view);
        self.learnt
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(reader.clone(), Arc::new(learnt));
        Ok(())
    }
}
