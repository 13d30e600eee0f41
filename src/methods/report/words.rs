//! What a report says of a case itself: what it does and why, once, however many candidates failed it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::cases::story::Story;
use crate::domain::case::CaseId;
use crate::domain::suite::control_id;
use crate::domain::verdict::{Outcome, Verdict};

/// A case or control in words, as it was when the run was made.
#[derive(Debug, Clone, Serialize)]
pub struct CaseWords {
    pub story: Story,
    /// None when nobody knows how the document worded it when the run was made.
    pub clause: Option<ClauseWords>,
}

/// Markdown, as written.
#[derive(Debug, Clone, Serialize)]
pub struct ClauseWords {
    pub syntax: String,
    pub meaning: String,
    pub behaviour: String,
}

impl CaseWords {
    /// The assertion that a verdict names, as a sentence.
    pub fn sentence(&self, expected: &str) -> Option<&str> {
        let mut expects = self.story.expects.iter();
        let named = expects.find(|expect| expect.short == expected)?;
        Some(&named.sentence)
    }
}

/// The words of cases that failed, and of controls that failed and made a case fail.
pub(super) fn of_failures(
    verdicts: &[Verdict],
    mut words: BTreeMap<CaseId, CaseWords>,
) -> BTreeMap<CaseId, CaseWords> {
    let mut told: BTreeSet<CaseId> = BTreeSet::new();
    for verdict in verdicts {
        if matches!(verdict.outcome, Outcome::Failed(_)) {
            told.insert(verdict.case.clone());
            let failed = verdict.controls.iter().filter(|control| !control.passed);
            told.extend(failed.map(|control| control_id(&control.name)));
        }
    }
    words.retain(|id, _| told.contains(id));
    words
}
