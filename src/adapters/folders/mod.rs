//! The folders of a cell: laying the fixture before a run, reading everything back after it.
//!
//! Nothing runs in the cell while these do. What lies there after a run is hostile: links are never followed, nothing
//! but plain files is opened, how much is read has limits, and all of it is done with the rights of the cell's user.

mod copy;
mod fixture;
mod names;
mod owner;
mod snapshot;
mod unpack;

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub use copy::copy_out;
pub use fixture::lay;
pub use names::named;
pub use owner::acting_as;
pub use snapshot::{Snapshot, snapshot};
pub use unpack::unpack;

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
    /// What a candidate left cannot be taken on to the host.
    #[error("{path} {why}")]
    NotCopied { path: PathBuf, why: &'static str },
    /// The case does not fit into the folders of a cell.
    #[error(
        "{path} of the fixture does not fit; raise folder_mib or folder_files in pipeline/evaluate.toml"
    )]
    TooLarge { path: String },
}

/// Where this program finds the places of a case. The state folder is `.harness` in the home folder.
#[derive(Debug)]
pub struct Folders {
    pub workspace: PathBuf,
    pub outside: PathBuf,
    pub home: PathBuf,
    /// The folders of a cell's own are in existence as long as these.
    _held: Vec<OwnedFd>,
}

/// Where the same places lie inside a cell.
pub const WORKSPACE: &str = "/workspace";
pub const OUTSIDE: &str = "/outside";
pub const HOME: &str = "/home/user";
pub const STATE: &str = "/home/user/.harness";

impl Folders {
    /// Where the places lie inside, in the order in which [`Folders::of_cell`] takes them.
    pub const INSIDE: [&str; 3] = [WORKSPACE, OUTSIDE, HOME];

    /// The folders that a cell handed over, for [`Folders::INSIDE`].
    ///
    /// # Panics
    /// When they are not three.
    pub fn of_cell(handed_over: Vec<OwnedFd>) -> Self {
        let mut paths = handed_over
            .iter()
            .map(|folder| PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())));
        let mut next = || paths.next().expect("a cell of three folders");
        Self {
            workspace: next(),
            outside: next(),
            home: next(),
            _held: handed_over,
        }
    }

    /// Makes empty folders below `root`, which are given to the owner (uid, gid).
    #[cfg(test)]
    fn make(root: &Path, owner: (u32, u32)) -> Result<Self, FoldersError> {
        let folders = Self {
            workspace: root.join("workspace"),
            outside: root.join("outside"),
            home: root.join("home"),
            _held: Vec::new(),
        };
        for folder in [&folders.workspace, &folders.outside, &folders.home] {
            std::fs::create_dir_all(folder)
                .and_then(|()| give(folder, owner))
                .map_err(|source| lay_error(&folder.display().to_string(), source))?;
        }
        Ok(folders)
    }
}

/// Opens what was a plain file a moment ago, and neither follows nor waits for what it may be by now.
fn open_plain(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
}

fn lay_error(path: &str, source: std::io::Error) -> FoldersError {
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            FoldersError::TooLarge {
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
