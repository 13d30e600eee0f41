//! A folder that outlives its process only until the next start: its name says who made it, so that it is swept exactly
//! when its maker is dead. Making it and claiming it are one step, so there is no instant at which a kill leaves one
//! that nobody may remove.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::adapters::sandbox::Maker;

/// Removed when it is dropped.
#[derive(Debug)]
pub struct OwnedFolder {
    path: PathBuf,
}

impl OwnedFolder {
    /// Makes an empty folder below `base` that everybody may pass through but nobody else may list.
    pub fn make(base: &Path, prefix: &str) -> io::Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(&format!("{prefix}{}-", Maker::this()))
            .permissions(Permissions::from_mode(0o711))
            .tempdir_in(base)?
            .keep();
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnedFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next start.
        let _ = remove(&self.path);
    }
}

/// Removes the folders with this prefix whose makers are dead. Returns how many; a `base` that is not there has none.
pub fn sweep(base: &Path, prefix: &str) -> io::Result<usize> {
    let entries = match std::fs::read_dir(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    let mut n_swept = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // The last part was drawn at random.
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix)?.rsplit_once('-'))
            .and_then(|(maker, _)| Maker::parse(maker));
        if maker.is_some_and(|maker| maker.is_dead()) && remove(&entry.path()).is_ok() {
            n_swept += 1;
        }
    }
    Ok(n_swept)
}

/// Removes a folder, also when what a candidate made in it forbids reading or writing. Links are not followed.
pub fn remove(folder: &Path) -> io::Result<()> {
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
    fn folders_of_dead_makers_are_swept_and_those_of_living_ones_are_not() {
        let base = tempfile::tempdir().expect("a folder");
        let living = OwnedFolder::make(base.path(), "x-").expect("makes");
        // The same process id, started at another time.
        let name = living.path().file_name().expect("has a name");
        let name = name.to_str().expect("is text");
        let mut parts: Vec<&str> = name.split('-').collect();
        parts[2] = "1";
        let dead = base.path().join(parts.join("-"));
        std::fs::create_dir_all(dead.join("3/locked")).expect("makes");
        std::fs::set_permissions(dead.join("3/locked"), Permissions::from_mode(0o000))
            .expect("sets");
        std::fs::create_dir(base.path().join("x-stranger")).expect("makes");

        assert_eq!(sweep(base.path(), "x-").expect("sweeps"), 1);
        assert!(!dead.exists() && living.path().exists());
        assert_eq!(sweep(base.path(), "y-").expect("sweeps"), 0);
        assert_eq!(
            sweep(&base.path().join("nowhere"), "x-").expect("sweeps"),
            0
        );
        drop(living);
        let left = std::fs::read_dir(base.path()).expect("reads").count();
        assert_eq!(left, 1, "only the stranger's");
    }
}
