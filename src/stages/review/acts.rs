//! Acts on clusters as they are kept: the lines of one have its number and are written in one piece, so that it can be
//! taken back and made again as a whole.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::deciding::{is_named, write};
use super::made;
use super::mending::all_clusters;
use crate::domain::decision::{self, Decision, SubjectKind, Verb};
use crate::domain::issue::IssueKey;
use crate::domain::mining::Cluster;
use crate::stages::{Context, Failure, Result, cluster};

/// What came of an act.
#[derive(Debug, Serialize)]
pub struct Mended {
    pub n_decisions: usize,
    pub n_clusters: usize,
    /// The clusters that now hold the issues it was about.
    pub clusters: Vec<String>,
}

/// Takes a reviewer's own last act on clusters back that stands.
pub fn undo_act(context: &Context, by: &str) -> Result<Mended> {
    is_named(by)?;
    let mut own = Acts::read(context, by)?;
    let last = own.acts.iter().rfind(|(_, act)| act.stands);
    let Some(number) = last.map(|(number, _)| *number) else {
        return Err(Failure::user(format!(
            "{by} has no act on clusters to take back"
        )));
    };
    let mut lines = own.acts.remove(&number).unwrap_or_default().lines;
    for line in &mut lines {
        line.decision = Verb::Undo;
        line.why.clear();
    }
    let mended = own.finish(context, lines)?;
    mended.ok_or_else(meanwhile)
}

/// Makes the act again that the reviewer took back before, unless another one was made since.
pub fn redo_act(context: &Context, by: &str) -> Result<Mended> {
    is_named(by)?;
    let mut own = Acts::read(context, by)?;
    let Some(number) = own.taken_back() else {
        return Err(Failure::user(format!(
            "{by} has taken no act on clusters back, or has made another one since"
        )));
    };
    let lines = own.acts.remove(&number).unwrap_or_default().lines;
    let mended = own.finish(context, lines)?;
    mended.ok_or_else(meanwhile)
}

/// Somebody wrote between the look and the act.
pub fn meanwhile() -> Failure {
    Failure::user("something was decided on clusters meanwhile; nothing was changed")
        .hint("the same again")
}

/// What one reviewer did to clusters so far.
pub(super) struct Acts {
    acts: BTreeMap<u32, Written>,
    /// Lines of each kind, those of others too: when there are more, somebody has decided meanwhile.
    n_lines: BTreeMap<SubjectKind, usize>,
}

#[derive(Default)]
struct Written {
    lines: Vec<Decision>,
    stands: bool,
}

const KINDS: [SubjectKind; 4] = [
    SubjectKind::Cluster,
    SubjectKind::Pair,
    SubjectKind::Name,
    SubjectKind::Representative,
];

impl Acts {
    pub(super) fn read(context: &Context, by: &str) -> Result<Self> {
        let mut acts: BTreeMap<u32, Written> = BTreeMap::new();
        let mut n_lines = BTreeMap::new();
        for kind in KINDS {
            let lines = made(context, kind)?;
            n_lines.insert(kind, lines.len());
            for line in lines.into_iter().filter(|line| line.by == by) {
                let Some(number) = line.act else { continue };
                let act = acts.entry(number).or_default();
                match (line.decision, act.stands) {
                    (Verb::Undo, _) => act.stands = false,
                    (_, true) => act.lines.push(line),
                    (_, false) => {
                        act.lines = vec![line];
                        act.stands = true;
                    }
                }
            }
        }
        Ok(Self { acts, n_lines })
    }

    /// Of the next act. It leaves a number out when there is something to make again: that is then over.
    pub(super) fn next(&self) -> u32 {
        let last = self.acts.keys().last().copied().unwrap_or(0);
        last + 1 + u32::from(self.taken_back().is_some())
    }

    /// The act to make again: the first of the last ones, up to a number that was left out.
    fn taken_back(&self) -> Option<u32> {
        let (last, _) = self.acts.last_key_value()?;
        let is_taken_back = |number: &u32| self.acts.get(number).is_some_and(|act| !act.stands);
        (1..=*last).rev().take_while(is_taken_back).last()
    }

    /// Writes the lines, which are of one kind, and clusters again. None when somebody wrote meanwhile: then nothing is
    /// written.
    pub(super) fn finish(
        &self,
        context: &Context,
        mut lines: Vec<Decision>,
    ) -> Result<Option<Mended>> {
        for line in &mut lines {
            line.at = context.timestamp();
        }
        let kind = lines.first().expect("an act has lines").on.kind;
        if !write(context, &lines, |made| made.len() == self.n_lines[&kind])? {
            return Ok(None);
        }
        let about = |cluster: &Cluster| {
            lines.iter().any(|line| match kind {
                SubjectKind::Cluster => line.on.id == cluster.id,
                _ => issues(line).iter().any(|key| cluster.members.contains(key)),
            })
        };
        // Whether the filter's clusters become cases moves no issue.
        if kind != SubjectKind::Cluster {
            let config = cluster::Config::read(&context.project)?;
            // They may be of the top of the ranking.
            cluster::run(
                context,
                &cluster::Config {
                    all: true,
                    ..config
                },
            )?;
        }
        let clusters = all_clusters(context)?;
        Ok(Some(Mended {
            n_decisions: lines.len(),
            n_clusters: clusters.len(),
            clusters: clusters
                .iter()
                .map(|(cluster, _)| cluster)
                .filter(|cluster| about(cluster))
                .map(|cluster| cluster.id.clone())
                .collect(),
        }))
    }
}

/// Those that a line is about.
fn issues(line: &Decision) -> BTreeSet<IssueKey> {
    match line.on.kind {
        SubjectKind::Pair => {
            let pair = decision::pair(&line.on.id);
            pair.into_iter().flat_map(|(a, b)| [a, b]).collect()
        }
        _ => line.on.id.parse().into_iter().collect(),
    }
}
