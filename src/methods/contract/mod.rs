//! The contract check's part that needs no running: the tree and the three contracts are in place, and no placeholder
//! is left. It judges form, never behaviour; compiling, installing and calling commands is in
//! [`crate::stages::check`].

mod interfaces;
mod python;
mod stubs;
#[cfg(test)]
mod tests;
mod tree;

use crate::domain::candidate::TreeFile;
use crate::domain::place::Finding;

pub use tree::{ENTRY, INSTALL};

/// All findings, sorted by place; the files of places are paths below the candidate's root.
///
/// Both trees are sorted by path. The skeleton says what the contracts are.
pub fn check(skeleton: &[TreeFile], candidate: &[TreeFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    tree::check(skeleton, candidate, &mut findings);
    interfaces::check(skeleton, candidate, &mut findings);
    stubs::check(skeleton, candidate, &mut findings);
    findings.sort();
    findings.dedup();
    findings
}

/// The file of a tree at a path.
fn file<'a>(tree: &'a [TreeFile], path: &str) -> Option<&'a TreeFile> {
    tree.iter().find(|file| file.path == path)
}
