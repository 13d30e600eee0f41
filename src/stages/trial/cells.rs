//! The folders of cells on the host: made below one folder a process, which the next start removes when the process
//! was killed.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = "doc2harness-cells-";
const LOCK: &str = "lock";

/// All cells of this process.
#[derive(Debug)]
pub struct Cells {
    folder: PathBuf,
    next: AtomicU64,
    /// Held while we live: a folder whose lock is free belongs to a process that was killed.
    _lock: File,
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
        let n_swept = sweep(base)?;
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o711))
            .tempdir_in(base)?
            .keep();
        let lock = File::create(folder.join(LOCK))?;
        lock.lock()?;
        let cells = Self {
            folder,
            next: AtomicU64::new(0),
            _lock: lock,
        };
        Ok((cells, n_swept))
    }

    /// An empty folder for a cell.
    pub fn make(&self) -> io::Result<CellRoot> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(n.to_string());
        std::fs::create_dir(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o711))?;
        Ok(CellRoot { path })
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next start.
        let _ = remove(&self.folder);
    }
}

impl CellRoot {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn remove(self) -> io::Result<()> {
        remove(&self.path)
    }
}

impl Drop for CellRoot {
    fn drop(&mut self) {
        if self.path.exists() {
            let _ = remove(&self.path);
        }
    }
}

fn sweep(base: &Path) -> io::Result<usize> {
    let mut n_swept = 0;
    for entry in std::fs::read_dir(base)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) || !entry.file_type()?.is_dir()
        {
            continue;
        }
        // Somebody else's folder, or one that is just being made or removed, is not ours to judge.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_ok() && remove(&entry.path()).is_ok() {
            n_swept += 1;
        }
    }
    Ok(n_swept)
}

/// Removes a folder, also when what a candidate made in it forbids reading or writing. Links are not followed.
fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open(folder)?;
            std::fs::remove_dir_all(folder)
        }
        other => other,
    }
}

fn open(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_processes_are_swept_and_those_of_living_ones_are_not() {
        let base = tempfile::tempdir().expect("a folder");
        let dead = base.path().join(format!("{PREFIX}dead"));
        std::fs::create_dir_all(dead.join("3/locked")).expect("makes");
        std::fs::write(dead.join(LOCK), "").expect("writes");
        std::fs::set_permissions(dead.join("3/locked"), Permissions::from_mode(0o000))
            .expect("sets");
        let (cells, n_swept) = Cells::new(base.path()).expect("makes");
        assert_eq!((n_swept, dead.exists()), (1, false));
        let cell = cells.make().expect("makes");
        let (_others, n_swept) = Cells::new(base.path()).expect("makes");
        assert_eq!((n_swept, cell.path().exists()), (0, true));
        let path = cell.path().to_path_buf();
        cell.remove().expect("removes");
        assert!(!path.exists());
        drop(cells);
        assert_eq!(std::fs::read_dir(base.path()).expect("reads").count(), 1);
    }
}
