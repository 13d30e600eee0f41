//! Making a decision: what is checked before its line is written, and where a case lies then.

use serde::Serialize;

use super::items::find;
use super::joining::{place_of, settle};
use super::{Item, file_of, made, text};
use crate::domain::decision::{Decision, Own, Subject, SubjectKind, Verb};
use crate::stages::{Classify, Context, Failure, Kind, Result};
use crate::storage::reviews::{self, ReviewsError};

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
    is_named(&saying.by)?;
    // Issues are read by the thousand.
    let is_reading = saying.subject.kind == SubjectKind::Issue && saying.verb != Verb::Note;
    if saying.verb != Verb::Undo && !is_reading && saying.why.trim().is_empty() {
        return Err(Failure::user("a decision has a reason").hint("add --why TEXT"));
    }
    if saying.verb == Verb::Change && !is_case {
        return Err(Failure::user("only cases are sent back for a change"));
    }
    let item = find(context, &saying.subject, None)?;
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
        act: None,
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
    if !write(context, std::slice::from_ref(&decision), is_expected)? {
        return Ok(None);
    }
    let mut moved_to = None;
    if is_case {
        settle(context)?;
        moved_to = place_of(context, &decision.on.id);
    }
    Ok(Some(Decided { decision, moved_to }))
}

/// Makes the decision again that a reviewer took back last on a subject.
pub fn redo(context: &Context, subject: &Subject, by: &str) -> Result<Decided> {
    is_named(by)?;
    let made = made(context, subject.kind)?;
    let on_it = made.iter().filter(|made| made.on == *subject);
    let Some(again) = Own::of(on_it, by).taken_back.pop() else {
        return Err(Failure::user(format!(
            "{by} has taken no decision on {subject} back, or has decided since"
        )));
    };
    let saying = Saying {
        subject: subject.clone(),
        verb: again.decision,
        by: by.to_owned(),
        why: again.why.clone(),
    };
    decide(context, saying)
}

pub(super) fn is_named(by: &str) -> Result<()> {
    match by.trim() {
        "" => Err(Failure::user("nobody knows who decides")
            .hint("add --by NAME, or set PIPELINE_REVIEWER, or git config user.name")),
        _ => Ok(()),
    }
}

/// Whether they are written: not when what was decided so far is not what is expected.
pub(super) fn write(
    context: &Context,
    decisions: &[Decision],
    is_expected: impl FnOnce(&[Decision]) -> bool,
) -> Result<bool> {
    match reviews::append_if(&context.project.reviews(), decisions, is_expected) {
        Err(ReviewsError::Meanwhile(_)) => Ok(false),
        Err(error @ ReviewsError::Line { .. }) => Err(error).kind(Kind::Settings),
        written => written.map(|()| true).kind(Kind::Environment),
    }
}

/// Whether a case joins the suite or leaves it by a decision: one that waits, or that did before it was decided on.
pub(super) fn moves(context: &Context, item: &Item) -> Result<bool> {
    let waiting = context.project.variants().join(file_of(&item.subject.id));
    let was_decided = made(context, SubjectKind::Case)?.iter().any(|made| {
        made.on == item.subject && matches!(made.decision, Verb::Approve | Verb::Reject)
    });
    Ok(waiting.exists() || was_decided)
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
