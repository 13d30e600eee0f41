//! Pages as GitHub sent them, gzipped below `data/raw/github/OWNER/NAME/`, each under the digest of its content: a page
//! that comes twice is stored once, and the database can be built again from the files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::domain::digest;

#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct RawPagesError {
    path: PathBuf,
    source: std::io::Error,
}

/// Stores one page, whole or not at all. What a killed run left half written is written again when its page comes
/// again.
pub fn store(raw: &Path, repository: &str, bytes: &[u8]) -> Result<PathBuf, RawPagesError> {
    let folder = raw.join("github").join(repository);
    let path = folder.join(format!("{}.json.gz", &digest::of([bytes])[..16]));
    if path.exists() {
        return Ok(path);
    }
    let part = path.with_extension("part");
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        let file = File::create(&part)?;
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        packed.write_all(bytes)?;
        packed.finish()?.sync_data()?;
        std::fs::rename(&part, &path)
    };
    match write() {
        Ok(()) => Ok(path),
        // Another collector has finished the same page.
        Err(_) if path.exists() => Ok(path),
        Err(source) => Err(RawPagesError { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_stored_once_and_can_be_unpacked() {
        let raw = tempfile::tempdir().expect("a folder");
        let path = store(raw.path(), "o/n", b"[]").expect("writes");
        assert_eq!(store(raw.path(), "o/n", b"[]").expect("writes"), path);
        assert_ne!(store(raw.path(), "o/n", b"[1]").expect("writes"), path);
        let rows = crate::storage::issue_files::read(&path).expect("reads");
        assert!(rows.is_empty());
        let n_files = std::fs::read_dir(raw.path().join("github/o/n"))
            .expect("reads")
            .count();
        assert_eq!(n_files, 2);

        // Half a page of a run that was killed.
        let left = path.with_extension("part");
        std::fs::rename(&path, &left).expect("renames");
        std::fs::write(&left, b"half").expect("writes");
        assert_eq!(store(raw.path(), "o/n", b"[]").expect("writes"), path);
        assert!(!left.exists());
        let rows = crate::storage::issue_files::read(&path).expect("reads");
        assert!(rows.is_empty());
    }
}
