//! Candidates on the disk: found by name, written out into a folder (with the edits of a mutant's file made),
//! digested, and sealed below `data/frozen/`. Running anything of a candidate is elsewhere.

mod adapter;
mod find;
mod frozen;
mod mutant;
#[cfg(test)]
mod tests;
mod tree;

pub use adapter::{adapter, packages_place};
pub use find::{find, mutants};
pub use frozen::{FreezeRecord, frozen_digest, installed, read_record, remove, seal, write_record};
pub use mutant::read as read_mutant;
pub use tree::{candidate_digest, digest, files, materialise, write};

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::domain::place::Place;

#[derive(Debug, thiserror::Error)]
pub enum CandidatesError {
    #[error("there is no candidate {name}, neither below {folder} nor as a path")]
    NotFound { name: String, folder: PathBuf },
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A mutant's file is wrong.
    #[error("{place}: {message}")]
    Mutant { place: Place, message: String },
    /// An adapter's file is wrong.
    #[error("{place}: {message}")]
    Adapter { place: Place, message: String },
    /// Something that cannot be copied or digested: a device, a socket, a pipe, a name that is not UTF-8.
    #[error("{path} is neither a file, a folder nor a link with a name in UTF-8")]
    Odd { path: PathBuf },
    #[error("{path}: {message}")]
    Record { path: PathBuf, message: String },
}

type Result<T> = std::result::Result<T, CandidatesError>;

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(at(path))
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        paths.push(entry.map_err(at(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> CandidatesError + '_ {
    move |source| CandidatesError::File {
        path: path.to_path_buf(),
        source,
    }
}
