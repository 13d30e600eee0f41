//! A mutant's file, and its edits made in a copy of the candidate it changes.

use std::fs;
use std::path::{Component, Path};

use super::{CandidatesError, Result, at};
use crate::domain::candidate::{Edit, MutantFile};
use crate::domain::place::Place;

/// Reads and parses a mutant's file. The error names the line.
pub fn read(file: &Path) -> Result<MutantFile> {
    let text = fs::read_to_string(file).map_err(at(file))?;
    let mutant: MutantFile = toml::from_str(&text).map_err(|error| CandidatesError::Mutant {
        place: Place::of_offset(file, &text, error.span().map_or(0, |span| span.start)),
        message: error.message().trim().to_owned(),
    })?;
    if mutant.edit.is_empty() {
        return Err(fault(file, "it makes no edit".to_owned()));
    }
    Ok(mutant)
}

pub(super) fn apply(file: &Path, idx: usize, edit: &Edit, tree: &Path) -> Result<()> {
    let at_edit = |message: String| CandidatesError::Mutant {
        place: place_of_edit(file, idx),
        message,
    };
    let inside = Path::new(&edit.file)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let path = tree.join(&edit.file);
    if !inside || !fs::symlink_metadata(&path).is_ok_and(|about| about.is_file()) {
        return Err(at_edit(format!("the candidate has no file {}", edit.file)));
    }
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let n_found = if edit.find.is_empty() {
        0
    } else {
        text.matches(&edit.find).count()
    };
    if n_found != 1 {
        return Err(at_edit(format!(
            "`find` occurs {n_found} times in {}, not once",
            edit.file
        )));
    }
    if edit.find == edit.replace {
        return Err(at_edit("`replace` is `find`".to_owned()));
    }
    fs::write(&path, text.replacen(&edit.find, &edit.replace, 1)).map_err(at(&path))
}

/// The line of the nth `[[edit]]`, counted from 0.
fn place_of_edit(file: &Path, n: usize) -> Place {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut headers = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim() == "[[edit]]");
    Place::new(file, headers.nth(n).map_or(1, |(idx, _)| idx + 1))
}

pub(super) fn fault(file: &Path, message: String) -> CandidatesError {
    CandidatesError::Mutant {
        place: Place::new(file, 1),
        message,
    }
}
