//! What is read from the source of a harness, whatever its language.
//!
//! A unit is a function, a method, the body of a class without its methods, or what a file does outside them. It has
//! facts: the things that it handles, each with its line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{python, script};
use crate::domain::difference::FactKind;

/// A thing that a unit handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub kind: FactKind,
    /// What it is compared by: a name, a message, an exception, a condition, the name of a constant.
    pub key: String,
    /// As the source says it.
    pub shown: String,
    /// For limits and exit codes the number; for checks what they compare with, such as `> 2000`.
    pub value: Option<String>,
    /// For parameters and flags: `type`, `default`, `minimum`, `maximum`, `required`, as far as the source tells.
    pub bounds: BTreeMap<String, String>,
    /// For checks and handlers: how the branch ends.
    pub reaction: Option<Reaction>,
    /// What is said beside it: conditions and handlers around it, what is called where it is caught, comments.
    pub around: String,
    /// Evidence that the thing is handled, too weak to be a difference by itself: a name in a table, a general handler.
    pub is_weak: bool,
    pub line: usize,
}

/// How a branch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// By an error: raised, returned, or as the code of the process.
    Refuses,
    /// By leaving the function or the round of a loop without an error.
    Leaves,
    /// Not at all: what follows is done too.
    GoesOn,
}

impl Reaction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refuses => "an error",
            Self::Leaves => "left without an error",
            Self::GoesOn => "goes on",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Below the root of the tree.
    pub file: PathBuf,
    /// `Class.method`, `function`, `Class`; empty for what stands outside.
    pub name: String,
    pub line: usize,
    pub n_lines: usize,
    /// What it says about itself: its docstring or the comment above it.
    pub about: String,
    pub strings: Vec<String>,
    /// Names of what it calls and imports.
    pub calls: Vec<String>,
    pub facts: Vec<Fact>,
}

/// The units of a file whose first stands for what is outside of the others: it has the lines that they leave.
pub fn with_rest(mut units: Vec<Unit>, text: &str) -> Vec<Unit> {
    let n_inside: usize = units[1..].iter().map(|unit| unit.n_lines).sum();
    units[0].n_lines = text.lines().count().saturating_sub(n_inside);
    units
}

impl Fact {
    pub fn new(
        kind: FactKind,
        key: impl Into<String>,
        shown: impl Into<String>,
        line: usize,
    ) -> Self {
        Self {
            kind,
            key: key.into(),
            shown: shown.into(),
            value: None,
            bounds: BTreeMap::new(),
            reaction: None,
            around: String::new(),
            is_weak: false,
            line,
        }
    }
}

impl Unit {
    pub fn new(file: &Path, name: &str, line: usize) -> Self {
        Self {
            file: file.to_path_buf(),
            name: name.to_owned(),
            line,
            n_lines: 0,
            about: String::new(),
            strings: Vec::new(),
            calls: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// `path:line`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

/// Endings of the files that can be read.
pub const ENDINGS: &[&str] = &["py", "ts", "tsx", "js", "jsx", "mjs", "cjs", "mts"];

/// Cuts one file into its units, in the order of the source; none when its language is not known.
pub fn units(file: &Path, text: &str) -> Vec<Unit> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("py") => python::units(file, text),
        Some(ending) if ENDINGS.contains(&ending) => script::units(file, text),
        _ => Vec::new(),
    }
}
