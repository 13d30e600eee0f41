//! The proof of a suite: how the reference and every mutant fared on every case and control, by digest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::case::CaseId;

pub const CERTIFICATE_FORMAT: u32 = 2;

/// `cases/CERTIFICATE.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub format: u32,
    pub tool_version: String,
    /// SHA-256 of the tool's sources that decide outcomes (`build.rs` lists them).
    pub tool_sources: String,
    /// SHA-256 of each case's and control's file.
    pub cases: BTreeMap<CaseId, String>,
    pub reference: Subject,
    pub mutants: BTreeMap<String, Subject>,
}

/// A candidate that the suite was run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Digest of its tree.
    pub digest: String,
    /// Stands on the ladder of vacuous harnesses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vacuous: bool,
    /// Own outcomes, before gating, that were no pass: the reason of each. Everything else passed.
    pub fails: BTreeMap<CaseId, String>,
}

#[cfg(test)]
impl Subject {
    /// One that fails these cases.
    pub fn failing(fails: &[&str]) -> Self {
        let fails = fails.iter();
        Subject {
            digest: "d".into(),
            vacuous: false,
            fails: fails
                .map(|id| (CaseId::new(*id), "assertion".into()))
                .collect(),
        }
    }
}

impl Certificate {
    /// All candidates, the reference first.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, &Subject)> {
        let mutants = self
            .mutants
            .iter()
            .map(|(name, subject)| (name.as_str(), subject));
        std::iter::once((super::candidate::REFERENCE, &self.reference)).chain(mutants)
    }
}
