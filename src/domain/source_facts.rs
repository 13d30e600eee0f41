//! What is counted in the source of a candidate.

use std::collections::BTreeSet;

use serde::Serialize;

use super::case::Category;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SourceFacts {
    /// Lines that are not blank, of all modules.
    pub code_lines: usize,
    /// Python source files below the candidate's root.
    pub modules: usize,
    /// Functions and methods.
    pub functions: usize,
    /// Code lines of the largest module.
    pub largest_module: usize,
    /// Categories of which a module's file name holds a keyword; None where nobody looked.
    pub dedicated: Option<BTreeSet<Category>>,
}
