//! Double review: how far two reviewers agree, and on what they do not.

use serde::Serialize;

use super::made;
use crate::domain::decision::SubjectKind;
use crate::methods::agreement::{Agreement, Conflict, agreements, conflicts, first_votes};
use crate::stages::{Context, Result};

/// Of one kind of subjects.
#[derive(Debug, Serialize)]
pub struct Double {
    pub kind: &'static str,
    /// Subjects that one reviewer voted on, and that at least two did.
    pub n_once: usize,
    pub n_twice: usize,
    pub agreements: Vec<Agreement>,
    pub conflicts: Vec<Conflict>,
}

pub fn double(context: &Context, kind: SubjectKind) -> Result<Double> {
    let decisions = made(context, kind)?;
    let votes = first_votes(&decisions);
    Ok(Double {
        kind: kind.as_str(),
        n_once: votes.values().filter(|by| by.len() == 1).count(),
        n_twice: votes.values().filter(|by| by.len() > 1).count(),
        agreements: agreements(&decisions),
        conflicts: conflicts(&decisions),
    })
}
