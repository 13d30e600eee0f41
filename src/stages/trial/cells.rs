//! The folders of cells on the host, below one folder a process.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stages::owned_folder::{self, OwnedFolder};

const PREFIX: &str = "doc2harness-cells-";

/// All cells of this process.
#[derive(Debug)]
pub struct Cells {
    folder: OwnedFolder,
    next: AtomicU64,
}

/// One cell's folder.
#[derive(Debug)]
pub struct CellRoot {
    path: PathBuf,
}

impl Cells {
    /// Makes the folder of this process below `base`, and removes those of processes that are gone.
    ///
    /// Returns how many were removed.
    pub fn new(base: &Path) -> io::Result<(Self, usize)> {
        let n_swept = owned_folder::sweep(base, PREFIX)?;
        let cells = Self {
            folder: OwnedFolder::make(base, PREFIX)?,
            next: AtomicU64::new(0),
        };
        Ok((cells, n_swept))
    }

    /// An empty folder for a cell.
    pub fn make(&self) -> io::Result<CellRoot> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(n.to_string());
        std::fs::create_dir(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o711))?;
        Ok(CellRoot { path })
    }
}

impl CellRoot {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn remove(self) -> io::Result<()> {
        owned_folder::remove(&self.path)
    }
}

impl Drop for CellRoot {
    fn drop(&mut self) {
        if self.path.exists() {
            let _ = owned_folder::remove(&self.path);
        }
    }
}
