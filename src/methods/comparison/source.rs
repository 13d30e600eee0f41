//! What is read from the source of a harness, whatever its language.
//!
//! A unit is a function, a method, the body of a class without its methods, or what a file does outside them. It has
//! facts: the things that it handles, each with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bundle::{self, Module};
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
    /// For effects: what is looked at before.
    pub looks: BTreeSet<&'static str>,
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
    /// Below the root of the tree; of a bundle, the module.
    pub file: PathBuf,
    /// The bundle that the module stands in, and the lines before it there.
    pub bundle: Option<(PathBuf, usize)>,
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
    /// A function or a method: neither the body of a class nor what stands outside.
    pub is_function: bool,
    /// All lines of the file.
    pub lines: Arc<[String]>,
}

/// The unit for what a file does outside of the others; it comes first.
pub fn whole(file: &Path, text: &str) -> Unit {
    /// Characters of a line; nobody would read more.
    const N_READ: usize = 300;
    let lines = text.lines();
    let mut unit = Unit::new(file, "", 1);
    unit.lines = lines
        .map(|line| line.chars().take(N_READ).collect())
        .collect();
    unit
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
            looks: BTreeSet::new(),
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
            bundle: None,
            name: name.to_owned(),
            line,
            n_lines: 0,
            about: String::new(),
            strings: Vec::new(),
            calls: Vec::new(),
            facts: Vec::new(),
            is_function: false,
            lines: Arc::default(),
        }
    }

    /// A unit of the same file.
    pub fn within(whole: &Self, name: &str, line: usize) -> Self {
        let mut unit = Self::new(&whole.file, name, line);
        unit.lines = Arc::clone(&whole.lines);
        unit
    }

    /// The lines at most `distance` away from this one.
    pub fn near(&self, line: usize, distance: usize) -> String {
        let end = (line + distance).min(self.lines.len());
        let begin = line.saturating_sub(distance + 1).min(end);
        self.lines[begin..end].join("\n")
    }

    /// The lines of a function; nothing of a class or of the rest of a file, which have many matters.
    pub fn body(&self) -> String {
        if !self.is_function {
            return String::new();
        }
        let begin = (self.line - 1).min(self.lines.len());
        let end = (begin + self.n_lines).min(self.lines.len());
        self.lines[begin..end].join("\n")
    }

    /// `path:line` of the unit.
    pub fn place(&self) -> String {
        self.place_of(self.line)
    }

    /// `path:line` of a line of its file; where that is a module of a bundle, the place in the bundle.
    pub fn place_of(&self, line: usize) -> String {
        match &self.bundle {
            Some((bundle, n_before)) => format!("{}:{}", bundle.display(), n_before + line),
            None => format!("{}:{line}", self.file.display()),
        }
    }
}

/// Endings of the files that can be read.
pub const ENDINGS: &[&str] = &["py", "ts", "tsx", "js", "jsx", "mjs", "cjs", "mts"];

/// Cuts one file into its units, in the order of the source; none when its language is not known. A bundle is cut into
/// its modules first, without those that `skip` names.
pub fn units(file: &Path, text: &str, skip: &dyn Fn(&Path) -> bool) -> Vec<Unit> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("py") => python::units(file, text),
        Some(ending) if ENDINGS.contains(&ending) => {
            let modules = bundle::modules(text);
            if modules.is_empty() {
                return script::units(file, text);
            }
            let modules = modules.iter().filter(|module| !skip(&module.path));
            modules.flat_map(|module| of_module(file, module)).collect()
        }
        _ => Vec::new(),
    }
}

/// The units of a module, in the places that they have in the bundle.
fn of_module(file: &Path, module: &Module<'_>) -> Vec<Unit> {
    let mut units = script::units(&module.path, module.text);
    let n_before = module.line - 1;
    for unit in &mut units {
        unit.bundle = Some((file.to_path_buf(), n_before));
    }
    units
}
