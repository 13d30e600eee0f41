//! A candidate by its name below `candidates/`, or by a path.

use std::path::{Component, Path, PathBuf};

use super::{CandidatesError, Result, at, mutant, sorted};
use crate::domain::candidate::{Candidate, Source};

/// Finds a candidate by its name below `candidates` (`reference`, `mutants/read-offset`), or by a path.
///
/// A folder is a candidate as it stands; a file `NAME.toml` is a mutant of another candidate, which must be a folder
/// below `candidates`. Elsewhere the name is the last part of the path.
pub fn find(candidates: &Path, name_or_path: &str) -> Result<Candidate> {
    let missing = || CandidatesError::NotFound {
        name: name_or_path.to_owned(),
        folder: candidates.to_path_buf(),
    };
    let name = name_or_path.trim_end_matches('/');
    if name.is_empty() {
        return Err(missing());
    }
    let plain = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if plain {
        let tree = candidates.join(name);
        if tree.is_dir() {
            return candidate(candidates, tree);
        }
        let file = candidates.join(format!("{name}.toml"));
        if file.is_file() {
            return candidate(candidates, file);
        }
    }
    let path = Path::new(name_or_path);
    let mutant = path.is_file() && path.extension().is_some_and(|ext| ext == "toml");
    if path.is_dir() || mutant {
        return candidate(candidates, path.to_path_buf());
    }
    Err(missing())
}

/// The names of all mutants below `candidates/mutants`, sorted.
pub fn mutants(candidates: &Path) -> Result<Vec<String>> {
    let folder = candidates.join("mutants");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for path in sorted(&folder)? {
        if path.extension().is_some_and(|ext| ext == "toml") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            names.push(format!("mutants/{stem}"));
        }
    }
    Ok(names)
}

fn candidate(candidates: &Path, path: PathBuf) -> Result<Candidate> {
    let whole = path.canonicalize().map_err(at(&path))?;
    let stem = if whole.is_file() {
        whole.with_extension("")
    } else {
        whole.clone()
    };
    let below = candidates
        .canonicalize()
        .ok()
        .and_then(|root| stem.strip_prefix(root).ok().map(Path::to_path_buf))
        .filter(|rest| !rest.as_os_str().is_empty());
    let last = || PathBuf::from(stem.file_name().unwrap_or_default());
    let name = below.unwrap_or_else(last).display().to_string();
    let source = if whole.is_file() {
        let mutant = mutant::read(&whole)?;
        let of = candidates.join(&mutant.of);
        if !of.is_dir() {
            return Err(mutant::fault(
                &whole,
                format!(
                    "`of` names {:?}, which is no folder below {}",
                    mutant.of,
                    candidates.display()
                ),
            ));
        }
        Source::Mutant { of, file: whole }
    } else {
        Source::Tree(whole)
    };
    Ok(Candidate { name, source })
}
