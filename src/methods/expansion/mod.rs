//! Single-variable expansion: variants of a case that differ from it in exactly one of four variables.
//!
//! Operators ([`tools`], [`forms`] and [`ways`], [`arguments`] and [`named`], [`sites`]) edit the seed's text, [`drafts`] completes what they make
//! and maps the seed's controls; [`proof`] compares variant and seed and rejects what changed in more than one
//! variable; [`distance`] says how far a scenario is from the seed and from what is kept, and [`selection`] keeps what
//! is far enough.

pub mod api_site;
pub mod arguments;
pub mod case_text;
pub mod distance;
pub mod drafts;
pub mod follow;
pub mod forms;
pub mod named;
pub mod proof;
mod scenario;
pub mod selection;
pub mod signature;
pub mod sites;
pub mod swap;
mod toml_values;
pub mod tools;
pub mod ways;

use serde::Deserialize;

use arguments::Erroneous;
use distance::Weights;
use follow::Follow;
use forms::{Form, Relative};
use named::Named;
use sites::Site;
use tools::Equivalent;
use ways::Way;

use crate::domain::case::{Case, CaseId, Variable};

/// `pipeline/expand.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operators {
    /// A variant nearer than this to the seed, or to a variant kept before, is dropped (0 to 1).
    pub least_distance: f64,
    pub weights: Weights,
    pub relative: Relative,
    pub tool: Vec<Equivalent>,
    pub form: Vec<Form>,
    pub way: Vec<Way>,
    pub erroneous: Vec<Erroneous>,
    pub named: Vec<Named>,
    pub site: Vec<Site>,
}

/// A case with the controls that gate it.
#[derive(Debug, Clone)]
pub struct Seed<'s> {
    pub case: &'s Case,
    pub controls: Vec<&'s Case>,
}

/// What an operator made of the seed.
#[derive(Debug, Clone)]
pub struct Draft {
    pub id: CaseId,
    pub variable: Variable,
    /// `by-grep`, `link-chain`, `limit-negative`, `stream-json`.
    pub operator: String,
    pub text: String,
    pub case: Case,
    pub follow: Follow,
    /// Controls that were mapped like the seed, with their texts; those that fit as they are stay named only.
    pub controls: Vec<(CaseId, String)>,
    /// Why a control of the seed could not be mapped; a person has to make one.
    pub to_make: Vec<String>,
}

/// An operator that does not fit the seed, or whose variant was rejected.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rejected {
    pub variable: Variable,
    pub operator: String,
    pub why: String,
}

/// The comment that marks a variant as ungated until somebody makes the control.
pub const TO_MAKE: &str = "A control has to be made: ";
