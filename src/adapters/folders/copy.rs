//! Copying what a cell left on to the host.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::FoldersError;

/// Deeper trees are refused: everything else that reads the copy may be recursive.
pub(super) const DEPTH: usize = 64;

/// Copies a cell's own folder into a new folder `to`: folders, plain files and links as they are written; of modes only
/// whether a file is executable. At most `most_bytes`, holes included. What is anything else, or too much, is the
/// candidate's fault ([`FoldersError::NotCopied`]).
pub fn copy_out(folder: &OwnedFd, to: &Path, most_bytes: u64) -> Result<(), FoldersError> {
    let from = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let mut left = most_bytes;
    copy(&from, to, Path::new(""), DEPTH, &mut left)
}

fn copy(
    from: &Path,
    to: &Path,
    below: &Path,
    depth: usize,
    left: &mut u64,
) -> Result<(), FoldersError> {
    let failed = |source: io::Error| FoldersError::Read {
        path: below.to_path_buf(),
        source,
    };
    let refused = |below: &Path, why: &'static str| FoldersError::NotCopied {
        path: below.to_path_buf(),
        why,
    };
    if depth == 0 {
        return Err(refused(below, "lies too deep"));
    }
    std::fs::create_dir(to).map_err(failed)?;
    set_mode(to, 0o755).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let (from, to, below) = (from.join(&name), to.join(&name), below.join(&name));
        let about = std::fs::symlink_metadata(&from).map_err(failed)?;
        if about.is_dir() {
            copy(&from, &to, &below, depth - 1, left)?;
        } else if about.is_symlink() {
            let target = std::fs::read_link(&from).map_err(failed)?;
            symlink(target, &to).map_err(failed)?;
        } else if about.is_file() {
            *left = left
                .checked_sub(about.len())
                .ok_or_else(|| refused(&below, "is more than fits"))?;
            plain(&from, &to, &about).map_err(failed)?;
        } else {
            return Err(refused(&below, "is neither a file, a folder nor a link"));
        }
    }
    Ok(())
}

fn plain(from: &Path, to: &Path, about: &Metadata) -> io::Result<()> {
    let mut source = super::open_plain(from)?;
    io::copy(
        &mut source.by_ref().take(about.len()),
        &mut File::create_new(to)?,
    )?;
    let executable = about.permissions().mode() & 0o111 != 0;
    set_mode(to, if executable { 0o755 } else { 0o644 })
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_holds_what_is_plain_and_refuses_the_rest() {
        let root = tempfile::tempdir().expect("a folder");
        let from = root.path().join("from");
        std::fs::create_dir_all(from.join("pkg")).expect("makes");
        std::fs::write(from.join("pkg/run"), "#!").expect("writes");
        set_mode(&from.join("pkg/run"), 0o4777).expect("sets");
        symlink("/etc/passwd", from.join("link")).expect("links");
        let folder = OwnedFd::from(File::open(&from).expect("opens"));
        let to = |name: &str| root.path().join(name);
        copy_out(&folder, &to("a"), 2).expect("copies");
        let mode = |path: &str| {
            let about = std::fs::symlink_metadata(to(path)).expect("is there");
            about.permissions().mode() & 0o7777
        };
        assert_eq!((mode("a/pkg/run"), mode("a/pkg")), (0o755, 0o755));
        assert_eq!(
            std::fs::read_link(to("a/link")).expect("a link"),
            Path::new("/etc/passwd")
        );

        let why = |name: &str, most: u64| {
            copy_out(&folder, &to(name), most)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(why("b", 1), "pkg/run is more than fits");
        nix::unistd::mkfifo(&from.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("makes");
        assert_eq!(why("c", 9), "pipe is neither a file, a folder nor a link");
    }
}
