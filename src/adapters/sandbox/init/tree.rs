//! Host files and folders as detached mounts: opened where they can be seen, attached where they are to appear.
//!
//! The descriptor holds the mount itself, so what hides the path in between (a new root, a stranger's closed parent
//! folder) does not matter.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::super::protocol::{Failure, Step};

/// How a tree may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ReadOnly,
    Writable,
    Device,
}

/// A detached mount and the place where it is to appear.
#[derive(Debug)]
pub struct Tree {
    mount: OwnedFd,
    is_folder: bool,
    inside: PathBuf,
}

impl Tree {
    /// Copies the mount of `host`, with what is mounted below it.
    pub fn open(host: &Path, inside: &Path, kind: Kind) -> Result<Self, Failure> {
        let step = || format!("show {}", host.display());
        let path = CString::new(host.as_os_str().as_bytes()).map_err(|_| Failure {
            step: step(),
            errno: libc::EINVAL,
        })?;
        let flags =
            libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
        // SAFETY: the path outlives the call; the result is a new descriptor of ours.
        let mount = unsafe {
            let fd = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags);
            OwnedFd::from_raw_fd(Errno::result(fd).step(step())? as i32)
        };
        let attributes = libc::MOUNT_ATTR_NOSUID
            | match kind {
                Kind::ReadOnly => libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
                Kind::Writable => libc::MOUNT_ATTR_NODEV,
                Kind::Device => libc::MOUNT_ATTR_NOEXEC,
            };
        let at = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
        set_attributes(mount.as_raw_fd(), c"", at, attributes, libc::MS_PRIVATE).step(step())?;
        let is_folder =
            nix::sys::stat::fstat(&mount).step(step())?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        Ok(Tree {
            mount,
            is_folder,
            inside: inside.to_path_buf(),
        })
    }

    /// Puts the tree at its place below `root`, making what is missing of the way there.
    pub fn attach(&self, root: &Path) -> Result<(), Failure> {
        let step = || format!("show as {}", self.inside.display());
        let target = root.join(self.inside.strip_prefix("/").unwrap_or(&self.inside));
        if self.is_folder {
            fs::create_dir_all(&target).step(step())?;
        } else {
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).step(step())?;
            }
            File::options()
                .create(true)
                .append(true)
                .open(&target)
                .step(step())?;
        }
        let path = CString::new(target.as_os_str().as_bytes())
            .expect("checked when the message was read as JSON text");
        // SAFETY: both paths outlive the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                self.mount.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                path.as_ptr(),
                libc::MOVE_MOUNT_F_EMPTY_PATH,
            )
        };
        Errno::result(done).map(drop).step(step())
    }
}

/// Forbids writing to the root itself; what is mounted below keeps its own rules.
pub fn make_root_read_only() -> Result<(), Failure> {
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV;
    set_attributes(libc::AT_FDCWD, c"/", 0, attributes, 0).step("mount: make the root read-only")
}

fn set_attributes(
    fd: i32,
    path: &std::ffi::CStr,
    flags: libc::c_int,
    attributes: u64,
    propagation: libc::c_ulong,
) -> nix::Result<()> {
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation,
        userns_fd: 0,
    };
    // SAFETY: path and structure outlive the call, and the size is that of the structure.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            &change,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(done).map(drop)
}
