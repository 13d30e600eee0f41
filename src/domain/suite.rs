//! The suite: all cases and controls, in the order of their ids.

use std::collections::BTreeMap;

use super::case::{Case, CaseId};

/// The folder below `cases/` that holds the controls.
pub const CONTROLS: &str = "controls";

#[derive(Debug, Clone, Default)]
pub struct Suite {
    cases: BTreeMap<CaseId, Case>,
}

impl Suite {
    pub fn new(cases: impl IntoIterator<Item = Case>) -> Self {
        Self {
            cases: cases
                .into_iter()
                .map(|case| (case.id.clone(), case))
                .collect(),
        }
    }

    /// Test cases and controls.
    pub fn all(&self) -> impl Iterator<Item = &Case> {
        self.cases.values()
    }

    pub fn tests(&self) -> impl Iterator<Item = &Case> {
        self.all().filter(|case| !case.is_control())
    }

    pub fn controls(&self) -> impl Iterator<Item = &Case> {
        self.all().filter(|case| case.is_control())
    }

    pub fn get(&self, id: &CaseId) -> Option<&Case> {
        self.cases.get(id)
    }

    /// The control that cases name so.
    pub fn control(&self, name: &str) -> Option<&Case> {
        self.get(&control_id(name))
    }

    /// The controls that gate a case; those that are not there are a finding of the check, not of this.
    pub fn gating<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a Case> {
        case.controls().iter().filter_map(|name| self.control(name))
    }
}

/// The id of the control that cases name so.
pub fn control_id(name: &str) -> CaseId {
    CaseId::new(format!("{CONTROLS}/{name}"))
}
