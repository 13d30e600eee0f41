//! Pages as GitHub sent them, gzipped below `data/raw/github/OWNER/NAME/`, each under the digest of its content: a page
//! that comes twice is stored once, and the database can be built again from the files.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::domain::digest;

#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct RawPagesError {
    path: PathBuf,
    source: std::io::Error,
}

/// Stores one page, whole or not at all.
pub fn store(raw: &Path, repository: &str, bytes: &[u8]) -> Result<PathBuf, RawPagesError> {
    let folder = raw.join("github").join(repository);
    let path = folder.join(format!("{}.json.gz", &digest::of([bytes])[..16]));
    if path.exists() {
        return Ok(path);
    }
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        let mut packed =
            flate2::write::GzEncoder::new(file.as_file_mut(), flate2::Compression::default());
        packed.write_all(bytes)?;
        packed.finish()?;
        file.as_file().sync_data()?;
        file.persist(&path)?;
        Ok(())
    };
    match write() {
        Ok(()) => Ok(path),
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
    }
}
