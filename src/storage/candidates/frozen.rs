//! Candidates that passed the contract check: their records, and their installed copies, which nobody can write.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CandidatesError, Result, at, set_mode, sorted};

/// That a candidate passed the contract check, and in which state: `data/frozen/records/NAME.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeRecord {
    pub candidate: String,
    pub digest: String,
    /// RFC 3339.
    pub checked_at: String,
    /// The version of this program that checked it.
    pub version: String,
}

/// Keeps the record of a candidate, in place of an older one.
pub fn write_record(frozen: &Path, record: &FreezeRecord) -> Result<()> {
    let path = record_file(frozen, &record.candidate);
    let folder = path.parent().expect("a record lies in a folder");
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    let draft = path.with_extension("json.new");
    fs::write(&draft, text).map_err(at(&draft))?;
    fs::rename(&draft, &path).map_err(at(&path))
}

/// The record of a candidate; none when it has not passed the contract check.
pub fn read_record(frozen: &Path, name: &str) -> Result<Option<FreezeRecord>> {
    let path = record_file(frozen, name);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let record = serde_json::from_str(&text).map_err(|error| CandidatesError::Record {
                path,
                message: error.to_string(),
            })?;
            Ok(Some(record))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CandidatesError::File { path, source }),
    }
}

/// The digest with which a candidate was frozen; none when it was not.
pub fn frozen_digest(frozen: &Path, name: &str) -> Result<Option<String>> {
    Ok(read_record(frozen, name)?.map(|record| record.digest))
}

/// Where the installed copy of a tree with this digest lies, whether or not it is there yet.
pub fn installed(frozen: &Path, digest: &str) -> PathBuf {
    frozen.join(digest)
}

/// Gives an installed tree its place as `installed(frozen, digest)`: nothing in it can be written any more, and it
/// appears there at once or not at all. When somebody else was faster, theirs stays and `tree` is removed.
pub fn seal(tree: &Path, frozen: &Path, digest: &str) -> Result<PathBuf> {
    let place = installed(frozen, digest);
    fs::create_dir_all(frozen).map_err(at(frozen))?;
    if !place.exists() {
        // The folder itself is closed after the move: moving a folder writes its `..` entry.
        for path in sorted(tree)? {
            close(&path)?;
        }
        match fs::rename(tree, &place) {
            Ok(()) => return set_mode(&place, 0o555).map(|()| place),
            Err(_) if place.exists() => {}
            Err(source) => {
                return Err(CandidatesError::File {
                    path: place,
                    source,
                });
            }
        }
    }
    remove(tree)?;
    Ok(place)
}

/// Removes a tree, also when it is sealed.
pub fn remove(tree: &Path) -> Result<()> {
    open(tree)?;
    fs::remove_dir_all(tree).map_err(at(tree))
}

fn record_file(frozen: &Path, name: &str) -> PathBuf {
    frozen.join("records").join(format!("{name}.json"))
}

/// Takes the right to write away from a file or folder and all below it.
fn close(path: &Path) -> Result<()> {
    let about = fs::symlink_metadata(path).map_err(at(path))?;
    if about.is_symlink() {
        return Ok(());
    }
    if about.is_dir() {
        for path in sorted(path)? {
            close(&path)?;
        }
    }
    let executable = about.permissions().mode() & 0o111 != 0;
    set_mode(path, if executable { 0o555 } else { 0o444 })
}

fn open(folder: &Path) -> Result<()> {
    set_mode(folder, 0o755)?;
    for path in sorted(folder)? {
        if fs::symlink_metadata(&path).map_err(at(&path))?.is_dir() {
            open(&path)?;
        }
    }
    Ok(())
}
