//! The folders of a cell on the host: laying the fixture before a run, reading everything back after it.
//!
//! Nothing runs in the cell while these do. What lies there after a run is hostile: links are never followed, nothing
//! but plain files is opened, and how much is read has limits.

mod fixture;
mod snapshot;

use std::path::{Path, PathBuf};

pub use fixture::lay;
pub use snapshot::{Snapshot, snapshot};

#[derive(Debug, thiserror::Error)]
pub enum FoldersError {
    #[error("cannot lay {path} of the fixture")]
    Lay {
        path: String,
        source: std::io::Error,
    },
    /// The case is wrong, for example two entries need the same place.
    #[error("the fixture's {path} {message}")]
    Fixture { path: String, message: String },
    #[error("cannot read {path} back")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the disk is full: {path} could not be written")]
    DiskFull { path: String },
}

/// Where the places of a case lie on the host. The state folder is `.harness` in the home folder.
#[derive(Debug, Clone)]
pub struct Folders {
    pub workspace: PathBuf,
    pub outside: PathBuf,
    pub home: PathBuf,
}

/// Where the same places lie inside a cell.
pub const WORKSPACE: &str = "/workspace";
pub const OUTSIDE: &str = "/outside";
pub const HOME: &str = "/home/user";
pub const STATE: &str = "/home/user/.harness";

impl Folders {
    /// Makes empty folders below `root`, which are given to the owner (uid, gid).
    pub fn make(root: &Path, owner: (u32, u32)) -> Result<Self, FoldersError> {
        let folders = Self {
            workspace: root.join("workspace"),
            outside: root.join("outside"),
            home: root.join("home"),
        };
        for folder in [&folders.workspace, &folders.outside, &folders.home] {
            std::fs::create_dir_all(folder)
                .and_then(|()| give(folder, owner))
                .map_err(|source| lay_error(&folder.display().to_string(), source))?;
        }
        Ok(folders)
    }
}

fn lay_error(path: &str, source: std::io::Error) -> FoldersError {
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            FoldersError::DiskFull {
                path: path.to_owned(),
            }
        }
        _ => FoldersError::Lay {
            path: path.to_owned(),
            source,
        },
    }
}

/// Only root can give things away; anybody else owns them already.
fn give(path: &Path, (uid, gid): (u32, u32)) -> std::io::Result<()> {
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(uid), Some(gid))?;
    }
    Ok(())
}
