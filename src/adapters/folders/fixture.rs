//! Laying a fixture: folders first, then files, other names of files, fifos, links, and modes last.
//! Repositories are there already.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::names::named;
use super::{Folders, FoldersError, acting_as, give, lay_error};
use crate::domain::case::{Bindings, Entry, Made};

/// Repeated content is written in pieces of about this size.
const PIECE_BYTES: usize = 1 << 20;

/// Lays every entry below the folders, owned by `owner`. Repositories are there already; other entries are laid over
/// what is checked out.
pub fn lay(
    fixture: &BTreeMap<String, Entry>,
    bindings: &Bindings,
    folders: &Folders,
    owner: (u32, u32),
) -> Result<(), FoldersError> {
    let mut entries: Vec<(String, PathBuf, Made)> = Vec::new();
    let mut repositories: Vec<PathBuf> = Vec::new();
    for (path, entry) in fixture {
        let made = match entry {
            Entry::Text(text) => Made {
                text: Some(text.clone()),
                ..Made::default()
            },
            Entry::Made(made) => made.clone(),
        };
        let host = locate(folders, path, bindings);
        match made.git {
            Some(_) => repositories.push(host),
            None => entries.push((path.clone(), host, made)),
        }
    }
    entries.sort_by_key(|(path, _, made)| (order(made), path.clone()));
    for (path, host, made) in &entries {
        let parent = host.parent().expect("an entry lies below its place");
        make_folders(parent, owner).map_err(|source| lay_error(path, source))?;
        let is_laid_over = repositories.iter().any(|folder| host.starts_with(folder));
        if is_laid_over && host.symlink_metadata().is_ok_and(|there| !there.is_dir()) {
            std::fs::remove_file(host).map_err(|source| lay_error(path, source))?;
        }
        one(path, host, made, bindings, folders, owner)?;
    }
    for (path, host, made) in &entries {
        if let Some(mode) = &made.mode {
            let bits = u32::from_str_radix(mode, 8).expect("a checked case has octal modes");
            std::fs::set_permissions(host, Permissions::from_mode(bits))
                .map_err(|source| lay_error(path, source))?;
        }
    }
    Ok(())
}

fn order(made: &Made) -> u8 {
    match made {
        Made { dir: true, .. } => 0,
        Made {
            hard_link: Some(_), ..
        } => 2,
        Made { fifo: true, .. } => 3,
        Made { link: Some(_), .. } => 4,
        _ => 1,
    }
}

impl Folders {
    /// Whether something, of whatever kind, lies at a path of a fixture. Folders that are closed to the owner hide it.
    pub fn holds(&self, path: &str, bindings: &Bindings, owner: (u32, u32)) -> bool {
        let host = locate(self, path, bindings);
        acting_as(owner, || std::fs::symlink_metadata(host).is_ok())
    }
}

/// Where an entry lies on the host. Its form was checked with the case: it never leaves its place.
fn locate(folders: &Folders, path: &str, bindings: &Bindings) -> PathBuf {
    let (place, rest) = [
        ("{outside}/", folders.outside.clone()),
        ("{state}/", folders.home.join(".harness")),
        ("{home}/", folders.home.clone()),
        ("{workspace}/", folders.workspace.clone()),
    ]
    .into_iter()
    .find_map(|(prefix, place)| match path.strip_prefix(prefix) {
        None if path == prefix.trim_end_matches('/') => Some((place, "")),
        rest => Some((place, rest?)),
    })
    .unwrap_or((folders.workspace.clone(), path));
    match rest {
        "" => place,
        rest => place.join(named(&bindings.expand(rest))),
    }
}

fn make_folders(folder: &Path, owner: (u32, u32)) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folders(parent, owner)?;
    }
    std::fs::create_dir(folder)?;
    give(folder, owner)
}

fn one(
    path: &str,
    host: &Path,
    made: &Made,
    bindings: &Bindings,
    folders: &Folders,
    owner: (u32, u32),
) -> Result<(), FoldersError> {
    let wrong = |message: &str| FoldersError::Fixture {
        path: path.to_owned(),
        message: message.to_owned(),
    };
    let io = |result: std::io::Result<()>| result.map_err(|source| lay_error(path, source));
    if made.dir {
        io(make_folders(host, owner))
    } else if let Some(target) = &made.link {
        io(symlink(named(&bindings.expand(target)), host).and_then(|()| give(host, owner)))
    } else if let Some(other) = &made.hard_link {
        io(std::fs::hard_link(locate(folders, other, bindings), host))
    } else if made.fifo {
        let bits = nix::sys::stat::Mode::from_bits_truncate(0o644);
        io(nix::unistd::mkfifo(host, bits)
            .map_err(Into::into)
            .and_then(|()| give(host, owner)))
    } else if let Some(n_bytes) = made.zeros {
        io(create(host)
            .and_then(|file| file.set_len(n_bytes))
            .and_then(|()| give(host, owner)))
    } else {
        let content = match (&made.text, &made.base64) {
            (Some(text), _) => bindings.expand(text).into_bytes(),
            (None, Some(coded)) => STANDARD.decode(coded).map_err(|_| wrong("is no base64"))?,
            (None, None) => return Err(wrong("has no content")),
        };
        let write = || -> std::io::Result<()> {
            let mut file = create(host)?;
            write_times(&mut file, &content, made.times.unwrap_or(1))?;
            give(host, owner)
        };
        io(write())
    }
}

/// Writes the content over and over, in large pieces.
fn write_times(file: &mut File, content: &[u8], times: u32) -> std::io::Result<()> {
    let times = times as usize;
    let per_piece = (PIECE_BYTES / content.len().max(1)).clamp(1, times.max(1));
    let piece = content.repeat(per_piece);
    for _ in 0..times / per_piece {
        file.write_all(&piece)?;
    }
    file.write_all(&content.repeat(times % per_piece))
}

fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
}
