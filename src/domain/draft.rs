//! What becomes of the draft of a case.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a draft did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The answer holds a JSON object.
    Json,
    /// It is in the case language.
    Schema,
    /// It stays within the bounds of a draft.
    Bounds,
    /// It fits the suite and the document.
    Lint,
    /// The reference passes it.
    Reference,
    /// A harness that does nothing fails it.
    Unchanged,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Schema => "schema",
            Self::Bounds => "bounds",
            Self::Lint => "lint",
            Self::Reference => "reference",
            Self::Unchanged => "unchanged",
        })
    }
}

/// Why a draft is not queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub check: Check,
    pub reason: String,
}

impl Refusal {
    pub fn new(check: Check, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { check, reason }
    }
}
