//! The folders follow the decisions: an approved variant lies in `cases/`, another one in `data/variants/`.

use std::collections::BTreeSet;
use std::path::Path;

use super::{file_of, made, read_or_none};
use crate::domain::case::{Case, CaseId};
use crate::domain::decision::{SubjectKind, Verb, standing};
use crate::domain::suite::control_id;
use crate::stages::{Classify, Context, Kind, Result};

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
pub(super) fn settle(context: &Context) -> Result<()> {
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

pub(super) fn place_of(context: &Context, id: &str) -> Option<String> {
    [context.project.cases(), context.project.variants()]
        .into_iter()
        .map(|folder| folder.join(file_of(id)))
        .find(|path| path.exists())
        .map(|path| context.project.shown(&path))
}
