//! Reading back what lies in the folders of a cell.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Folders, FoldersError};
use crate::domain::evidence::{FileKind, FileState, KEPT_TEXT_BYTES};

/// Entries read back; what is over it is left out.
const ENTRIES: usize = 20_000;
/// Depth of folders below a place.
const DEPTH: usize = 64;
/// Larger files are noted without a digest.
const DIGESTED_BYTES: u64 = 256 << 20;
/// Bytes of texts kept of one snapshot; later texts keep only their digest.
const KEPT_TOTAL_BYTES: u64 = 32 << 20;

/// What was found; keys are paths as a fixture writes them.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub files: BTreeMap<String, FileState>,
    /// There was more than the limits allow.
    pub cut: bool,
    kept_bytes: u64,
}

/// Reads all places. Links are not followed, and only plain files are opened.
pub fn snapshot(folders: &Folders) -> Result<Snapshot, FoldersError> {
    let mut seen = Snapshot::default();
    for (prefix, place) in [
        ("", &folders.workspace),
        ("{outside}/", &folders.outside),
        ("{home}/", &folders.home),
    ] {
        walk(place, prefix, 0, &mut seen)?;
    }
    Ok(seen)
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    seen: &mut Snapshot,
) -> Result<(), FoldersError> {
    let read_error = |source| FoldersError::Read {
        path: folder.to_path_buf(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            opened_up(folder, || std::fs::read_dir(folder))
        }
        other => other,
    };
    let mut entries: Vec<std::fs::DirEntry> = entries
        .and_then(|entries| entries.collect())
        .map_err(read_error)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if seen.files.len() >= ENTRIES || depth >= DEPTH {
            seen.cut = true;
            return Ok(());
        }
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let key = match (prefix, depth, name.as_str()) {
            ("{home}/", 0, ".harness") => "{state}".to_owned(),
            _ => format!("{prefix}{name}"),
        };
        let metadata = std::fs::symlink_metadata(&path).map_err(read_error)?;
        let state = state(&path, &metadata, seen).map_err(|source| FoldersError::Read {
            path: path.clone(),
            source,
        })?;
        let is_dir = state.kind == FileKind::Dir;
        if key != "{state}" {
            seen.files.insert(key.clone(), state);
        }
        if is_dir {
            walk(&path, &format!("{key}/"), depth + 1, seen)?;
        }
    }
    Ok(())
}

fn state(path: &Path, metadata: &Metadata, seen: &mut Snapshot) -> std::io::Result<FileState> {
    let file_type = metadata.file_type();
    let mut state = FileState {
        kind: FileKind::Other,
        mode: metadata.mode() & 0o7777,
        size: metadata.size(),
        digest: None,
        text: None,
        target: None,
    };
    if file_type.is_dir() {
        state.kind = FileKind::Dir;
        // The size of a folder is the file system's business.
        state.size = 0;
    } else if file_type.is_symlink() {
        state.kind = FileKind::Link;
        state.target = Some(std::fs::read_link(path)?.to_string_lossy().into_owned());
    } else if file_type.is_fifo() {
        state.kind = FileKind::Fifo;
    } else if file_type.is_file() {
        state.kind = FileKind::File;
        if metadata.size() <= DIGESTED_BYTES {
            let mut file = match open(path) {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    opened_up(path, || open(path))?
                }
                other => other?,
            };
            read(&mut file, &mut state, seen)?;
        }
    }
    Ok(state)
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
}

/// An ordinary user owns what the candidate made unreadable, and may read it after a change of mode.
fn opened_up<T>(path: &Path, act: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
    let before = std::fs::symlink_metadata(path)?.permissions();
    std::fs::set_permissions(path, Permissions::from_mode(before.mode() | 0o700))?;
    let result = act();
    std::fs::set_permissions(path, before)?;
    result
}

fn read(file: &mut File, state: &mut FileState, seen: &mut Snapshot) -> std::io::Result<()> {
    let mut hasher = Sha256::new();
    let mut kept = Vec::new();
    let mut buffer = vec![0u8; 1 << 16];
    let keep = state.size <= KEPT_TEXT_BYTES && seen.kept_bytes + state.size <= KEPT_TOTAL_BYTES;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
        if keep {
            kept.extend_from_slice(&buffer[..n]);
        }
    }
    state.digest = Some(
        hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    );
    if keep && let Ok(text) = String::from_utf8(kept) {
        seen.kept_bytes += text.len() as u64;
        state.text = Some(text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::lay;
    use super::*;
    use crate::domain::case::{Bindings, Case, CaseId};

    #[test]
    fn what_is_laid_is_read_back() {
        let case = "title = \"t\"\npurpose = \"p\"\nclause = \"tools.read.range\"\nclass = \"channel\"\n\
            [fixture]\n\"a/b.txt\" = \"{nonce:n}\"\n\"dir-link\" = { link = \"{outside}\" }\n\
            \"{outside}/c\" = { base64 = \"AP8=\" }\n\"{state}/settings.json\" = { text = \"{}\", mode = \"600\" }\n\
            \"pipe\" = { fifo = true }\n\"again\" = { hard_link = \"a/b.txt\" }\n\"hole\" = { zeros = 100000 }\n\
            \"locked\" = { dir = true, mode = \"000\" }\n\"twice\" = { text = \"ab\", times = 3 }\n\
            [[launch]]\nroute = \"cli\"\n[[expect]]\nchannel = \"exit\"\nequals = 0\n";
        let case = Case::parse(CaseId::new("controls/x"), Path::new("x"), case).expect("a case");
        let root = tempfile::tempdir().expect("a folder");
        let me = (
            nix::unistd::geteuid().as_raw(),
            nix::unistd::getegid().as_raw(),
        );
        let folders = Folders::make(root.path(), me).expect("makes");
        let bindings = Bindings(BTreeMap::from([
            ("nonce:n".to_owned(), "n1".to_owned()),
            ("outside".to_owned(), "/outside".to_owned()),
        ]));
        lay(&case.fixture, &bindings, &folders, me).expect("lays");
        let seen = snapshot(&folders).expect("reads").files;

        let check = |path: &str, kind: FileKind, mode: Option<u32>, text: Option<&str>| {
            let state = seen
                .get(path)
                .unwrap_or_else(|| panic!("{path} in {seen:?}"));
            assert_eq!((state.kind, state.text.as_deref()), (kind, text), "{path}");
            assert!(
                mode.is_none_or(|mode| mode == state.mode),
                "{path}: {:o}",
                state.mode
            );
        };
        check("a", FileKind::Dir, None, None);
        check("a/b.txt", FileKind::File, Some(0o644), Some("n1"));
        check("again", FileKind::File, None, Some("n1"));
        check("dir-link", FileKind::Link, None, None);
        check("{outside}/c", FileKind::File, None, None);
        check(
            "{state}/settings.json",
            FileKind::File,
            Some(0o600),
            Some("{}"),
        );
        check("pipe", FileKind::Fifo, None, None);
        check("locked", FileKind::Dir, Some(0), None);
        check("twice", FileKind::File, None, Some("ababab"));
        assert_eq!(seen["dir-link"].target.as_deref(), Some("/outside"));
        assert_eq!(seen["hole"].size, 100_000);
        assert!(
            !seen.keys().any(|path| path.starts_with("dir-link/")),
            "links are not followed"
        );
        // Else the folder could not be removed by an ordinary user.
        let locked = folders.workspace.join("locked");
        std::fs::set_permissions(locked, Permissions::from_mode(0o700)).expect("sets");
    }
}
