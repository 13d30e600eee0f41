//! Writing an archive that was made in a cell out on the host. Nothing in it is trusted: names lie below the folder,
//! files are written before any link is, names and links are such as a file system takes, and entries have a bound.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::FoldersError;

/// Entries of an archive, and files, links and folders of what is written.
const MOST_ENTRIES: usize = 50_000;
/// What a file system takes.
const NAME_BYTES: usize = 255;
/// Of a path below the folder, and of a link's target: a path may have 4096 with all that is above it.
const PATH_BYTES: usize = 1024;

enum Kept {
    File { content: Vec<u8>, executable: bool },
    Link(PathBuf),
}

/// Writes the plain files and the links of a tar archive into a new folder `to`; of modes only whether a file is
/// executable. Version control, byte code and `left_out` (at the root) are not written. What is anything else, or cannot
/// be written, is the fault of who made it ([`FoldersError::NotCopied`]). The files have no more bytes than the archive.
pub fn unpack(archive: &[u8], to: &Path, left_out: &[&str]) -> Result<(), FoldersError> {
    let entries = read(archive, left_out)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| FoldersError::Read { path, source }
    };
    std::fs::create_dir(to).map_err(failed(to))?;
    let (files, links): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|(_, kept)| matches!(kept, Kept::File { .. }));
    for (path, kept) in files.into_iter().chain(links) {
        let place = to.join(path);
        // A file where a folder has to be, or a link above a file, which would lead elsewhere.
        if path
            .ancestors()
            .skip(1)
            .any(|above| entries.contains_key(above))
        {
            return Err(refused(path, "lies below what is no folder"));
        }
        std::fs::create_dir_all(place.parent().expect("lies in a folder")).map_err(failed(path))?;
        match kept {
            Kept::Link(target) => symlink(target, &place).map_err(failed(path))?,
            Kept::File {
                content,
                executable,
            } => {
                let mode = if *executable { 0o755 } else { 0o644 };
                std::fs::write(&place, content)
                    .and_then(|()| {
                        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode))
                    })
                    .map_err(failed(path))?;
            }
        }
    }
    Ok(())
}

fn read(archive: &[u8], left_out: &[&str]) -> Result<BTreeMap<PathBuf, Kept>, FoldersError> {
    let broken = |_| refused(Path::new("."), "is no whole archive");
    let mut kept = BTreeMap::new();
    let mut folders = BTreeSet::new();
    let mut archive = tar::Archive::new(archive);
    for (idx, entry) in archive.entries().map_err(broken)?.enumerate() {
        let mut entry = entry.map_err(broken)?;
        let path = plain(&entry.path().map_err(broken)?)?;
        let names: Vec<&str> = path
            .iter()
            .map(|name| {
                name.to_str()
                    .ok_or_else(|| refused(&path, "has no name in UTF-8"))
            })
            .collect::<Result<_, _>>()?;
        if idx == MOST_ENTRIES {
            return Err(refused(&path, "is more than fits"));
        }
        let is_ours = names.len() == 1 && left_out.contains(&names[0]);
        let is_skipped = |name: &&str| [".git", "__pycache__"].contains(name);
        if is_ours || names.is_empty() || names.iter().any(is_skipped) {
            continue;
        }
        let kind = entry.header().entry_type();
        let one = if kind.is_dir() {
            continue;
        } else if kind.is_file() {
            let mut content = Vec::new();
            let executable = entry.header().mode().map_err(broken)? & 0o111 != 0;
            entry.read_to_end(&mut content).map_err(broken)?;
            Kept::File {
                content,
                executable,
            }
        } else if kind.is_symlink() {
            let target = entry.link_name().map_err(broken)?.unwrap_or_default();
            let bytes = target.as_os_str().as_bytes();
            if bytes.is_empty() || bytes.len() > PATH_BYTES || bytes.contains(&0) {
                return Err(refused(&path, "is a link to no path, or to too long a one"));
            }
            Kept::Link(target.into_owned())
        } else {
            return Err(refused(&path, "is neither a file, a folder nor a link"));
        };
        for above in path.ancestors().skip(1) {
            // What is above a known folder is known too.
            if !folders.insert(above.to_path_buf()) {
                break;
            }
        }
        if kept.len() + folders.len() > MOST_ENTRIES {
            return Err(refused(&path, "is more than fits"));
        }
        kept.insert(path, one);
    }
    Ok(kept)
}

/// A path below the folder, without `.`.
fn plain(path: &Path) -> Result<PathBuf, FoldersError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > PATH_BYTES || bytes.contains(&0) {
        return Err(refused(path, "is too long a path, or none at all"));
    }
    let mut below = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => below.push(name),
            _ => return Err(refused(path, "does not lie below the folder")),
        }
    }
    if below.iter().count() > super::copy::DEPTH || below.iter().any(|name| name.len() > NAME_BYTES)
    {
        return Err(refused(path, "lies too deep, or has too long a name"));
    }
    Ok(below)
}

fn refused(path: &Path, why: &'static str) -> FoldersError {
    FoldersError::NotCopied {
        path: path.to_path_buf(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries as a hostile archiver writes them: name, type, content or target. Names and targets are those of GNU's
    /// long records, which take any bytes.
    fn archive(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |name: &str, kind: tar::EntryType, data: &str| {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(kind);
            header.set_mode(0o755);
            header.set_size(data.len() as u64);
            header.set_cksum();
            builder.append(&header, data.as_bytes()).expect("appends");
        };
        for (name, kind, content) in entries {
            add("long", tar::EntryType::GNULongName, &format!("{name}\0"));
            if kind.is_symlink() {
                add("long", tar::EntryType::GNULongLink, &format!("{content}\0"));
            }
            add("short", *kind, if kind.is_file() { *content } else { "" });
        }
        builder.into_inner().expect("ends")
    }

    #[test]
    fn folders_count_as_entries() {
        let root = tempfile::tempdir().expect("a folder");
        let names: Vec<String> = (0..1100)
            .map(|idx| format!("{}{idx}", format!("{idx}/").repeat(50)))
            .collect();
        let entries: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), tar::EntryType::Regular, ""))
            .collect();
        let of = |n: usize, to: &str| unpack(&archive(&entries[..n]), &root.path().join(to), &[]);
        assert!(of(20, "few").is_ok());
        let error = of(1100, "many").expect_err("are too many");
        assert!(error.to_string().ends_with(" is more than fits"), "{error}");
        assert!(!root.path().join("many").exists());
    }

    #[test]
    fn nothing_is_written_outside_and_what_is_odd_is_told() {
        use tar::EntryType::{Fifo, Regular, Symlink};
        let root = tempfile::tempdir().expect("a folder");
        let mut n = 0;
        let mut unpacked = |entries: &[(&str, tar::EntryType, &str)]| {
            n += 1;
            let to = root.path().join(n.to_string());
            unpack(&archive(entries), &to, &["OURS"])
                .map(|()| to)
                .map_err(|error| error.to_string())
        };
        let good = [
            ("./a/run", Regular, "#!"),
            ("./OURS", Regular, "not theirs"),
            ("./a/OURS", Regular, "theirs"),
            ("./.git/config", Regular, "x"),
            ("./link", Symlink, "/etc/passwd"),
        ];
        let to = unpacked(&good).expect("unpacks");
        let about = std::fs::metadata(to.join("a/run")).expect("is there");
        assert_eq!(about.permissions().mode() & 0o777, 0o755);
        assert!(to.join("a/OURS").exists() && !to.join("OURS").exists());
        assert!(!to.join(".git").exists());
        let target = std::fs::read_link(to.join("link")).expect("a link");
        assert_eq!(target, Path::new("/etc/passwd"));

        let outside = root.path().display().to_string();
        let mut check = |entries: &[(&str, tar::EntryType, &str)], expected: &str| {
            assert_eq!(unpacked(entries).err().as_deref(), Some(expected));
        };
        check(
            &[("../x", Regular, "a")],
            "../x does not lie below the folder",
        );
        check(&[("/x", Regular, "a")], "/x does not lie below the folder");
        check(
            &[("l", Symlink, &outside), ("l/x", Regular, "a")],
            "l/x lies below what is no folder",
        );
        let no_path = "l is a link to no path, or to too long a one";
        check(&[("l", Symlink, "")], no_path);
        check(&[("l", Symlink, &"t/".repeat(513))], no_path);
        let long = "d/".repeat(512) + "x";
        check(
            &[(&long, Regular, "a")],
            &format!("{long} is too long a path, or none at all"),
        );
        check(
            &[("a\0b", Regular, "a")],
            "a\0b is too long a path, or none at all",
        );
        check(
            &[("p", Fifo, "")],
            "p is neither a file, a folder nor a link",
        );
        assert!(!root.path().join("x").exists());
        let to = root.path().join("none");
        let error = unpack(b"no archive at all", &to, &[]).expect_err("is none");
        assert_eq!(error.to_string(), ". is no whole archive");
    }
}
