//! Reading back what lies in the folders of a cell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::names::shown;
use super::{Folders, FoldersError, acting_as, open_plain};
use crate::domain::evidence::{FileKind, FileState, KEPT_TEXT_BYTES};

/// Entries read back. A cell's own folders hold fewer with the limits that are shipped.
const ENTRIES: usize = 32_768;
/// Bytes of all paths together: a tree may have few folders and long paths.
const PATH_BYTES: usize = 8 << 20;
/// A longer path is none for the kernel.
const LONGEST_PATH: usize = libc::PATH_MAX as usize - 1;
/// Folders in folders: each costs as many steps as it is deep.
const DEPTH: usize = 256;
/// Bytes of content read for digests, holes included: a file of holes costs its maker nothing.
const DIGESTED_BYTES: u64 = 256 << 20;
/// Bytes of texts kept of one snapshot; later texts keep only their digest.
const KEPT_TOTAL_BYTES: u64 = 32 << 20;

/// What was found; keys are paths as a fixture writes them.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub files: BTreeMap<String, FileState>,
    /// There was more than the limits allow: what is not in `files` may exist, a file without a digest have changed.
    pub cut: bool,
    path_bytes: usize,
    digested_bytes: u64,
    kept_bytes: u64,
}

/// Reads all places. Links are not followed, and only plain files are opened.
pub fn snapshot(folders: &Folders, owner: (u32, u32)) -> Result<Snapshot, FoldersError> {
    acting_as(owner, || {
        let mut seen = Snapshot::default();
        for (prefix, place) in [
            ("", &folders.workspace),
            ("{outside}/", &folders.outside),
            ("{home}/", &folders.home),
        ] {
            // What was opened up is closed again from the inside out.
            let mut opened = Vec::new();
            let walked = walk(place, prefix, &mut opened, &mut seen);
            for (folder, mode) in opened.into_iter().rev() {
                std::fs::set_permissions(&folder, Permissions::from_mode(mode))
                    .map_err(read_error(&folder))?;
            }
            walked?;
        }
        Ok(seen)
    })
}

/// Folders that their maker closed to himself, with the modes that they had.
type Opened = Vec<(PathBuf, u32)>;

/// Reads one place, from the top down. Without recursion: how deep it goes is the candidate's choice.
fn walk(
    place: &Path,
    prefix: &str,
    opened: &mut Opened,
    seen: &mut Snapshot,
) -> Result<(), FoldersError> {
    let mut pending = vec![(place.to_path_buf(), prefix.to_owned(), 0)];
    while let Some((folder, prefix, depth)) = pending.pop() {
        let mut below = Vec::new();
        for name in names(&folder, opened).map_err(read_error(&folder))? {
            let path = folder.join(&name);
            let key = key(&prefix, &shown(&name));
            seen.path_bytes += key.len();
            let fits = depth < DEPTH
                && path.as_os_str().len() <= LONGEST_PATH
                && seen.path_bytes <= PATH_BYTES
                && seen.files.len() < ENTRIES;
            if !fits {
                seen.cut = true;
                return Ok(());
            }
            let metadata = std::fs::symlink_metadata(&path).map_err(read_error(&path))?;
            let state = state(&path, &metadata, seen).map_err(read_error(&path))?;
            if state.kind == FileKind::Dir {
                below.push((path, format!("{key}/"), depth + 1));
            }
            if key != "{state}" {
                seen.files.insert(key, state);
            }
        }
        pending.extend(below.into_iter().rev());
    }
    Ok(())
}

/// The names in a folder, sorted.
fn names(folder: &Path, opened: &mut Opened) -> std::io::Result<Vec<OsString>> {
    let mode = std::fs::metadata(folder)?.mode() & 0o7777;
    if mode & 0o500 != 0o500 {
        std::fs::set_permissions(folder, Permissions::from_mode(mode | 0o700))?;
        opened.push((folder.to_path_buf(), mode));
    }
    let mut names: Vec<OsString> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    names.sort();
    Ok(names)
}

/// A path as a fixture writes it. What merely looks like one of the other places keeps the name of its own.
fn key(prefix: &str, name: &str) -> String {
    match (prefix, name) {
        ("{home}/", ".harness") => "{state}".to_owned(),
        ("", name) if name.starts_with('{') => format!("{{workspace}}/{name}"),
        _ => format!("{prefix}{name}"),
    }
}

fn read_error(path: &Path) -> impl Fn(std::io::Error) -> FoldersError + '_ {
    move |source| FoldersError::Read {
        path: path.to_path_buf(),
        source,
    }
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
        state.target = Some(shown(std::fs::read_link(path)?.as_os_str()));
    } else if file_type.is_fifo() {
        state.kind = FileKind::Fifo;
    } else if file_type.is_file() {
        state.kind = FileKind::File;
        seen.digested_bytes += metadata.size();
        if seen.digested_bytes > DIGESTED_BYTES {
            seen.cut = true;
        } else {
            let mut file = match open_plain(path) {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    opened_up(path, || open_plain(path))?
                }
                other => other?,
            };
            read(&mut file, &mut state, seen)?;
        }
    }
    Ok(state)
}

/// The owner of a file that he made unreadable may read it after a change of mode.
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
        let seen = snapshot(&folders, me).expect("reads").files;

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
