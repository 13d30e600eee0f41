//! Makes a cell without a daemon: new namespaces, a file system of its own, no way to regain rights.
//!
//! Two processes come out of [`split`]. The one outside stays what it was; it gives the new user namespace its ids,
//! puts it into control groups if it may, and waits, so that its end means that nothing of the cell is left. The one
//! inside becomes process 1. Root and ordinary users take the same way; they differ in who opens the folders to be
//! shown, and in the host user that stands behind user 1000.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid, pipe2};

use super::super::cgroup::Cgroup;
use super::super::protocol::{Confine, Failure, Step};
use super::super::spec::Limits;
use super::STEP_NAMESPACES;
use super::memory::Watch;
use super::tree::{Kind, Tree};

/// User and group id inside.
const ID: u32 = 1000;

/// Where the new root is put together. Any folder that every system has will do: what is below it is opened before.
const ROOT: &str = "/tmp";

/// Which of the two processes this is.
pub enum Side {
    Outside(Outside),
    Inside(Inside),
}

/// The process that stays outside.
pub struct Outside {
    child: Pid,
    /// Removed when process 1 is gone.
    _cgroup: Option<Cgroup>,
}

/// The process that becomes process 1.
pub struct Inside {
    trees: Option<Vec<Tree>>,
    memory_events: Option<File>,
}

/// Makes the namespaces and the process that lives in them.
pub fn split(confine: &Confine, limits: &Limits) -> Result<Side, Failure> {
    let (uid, gid) = confine.owner;
    let privileged = Uid::effective().as_raw() != uid;
    let mut cgroup = None;
    let mut trees = None;
    if privileged {
        nix::unistd::setgroups(&[]).step("leave supplementary groups")?;
        // Only root outside can open what belongs to other users.
        trees = Some(open_trees(confine)?);
        cgroup = Cgroup::create(limits);
    }
    let memory_events = cgroup.as_ref().and_then(Cgroup::open_events);
    let (gate_inside, gate) = pipe2(OFlag::O_CLOEXEC).step("open a pipe")?;
    let Some(child) = clone_into_namespaces().step(STEP_NAMESPACES)? else {
        drop(gate);
        // Does not drop what belongs to the process outside: the folders of the control group are its to remove.
        std::mem::forget(cgroup);
        let mut go = [0];
        if File::from(gate_inside).read(&mut go).unwrap_or(0) == 0 {
            // The process outside failed and has said why.
            std::process::exit(1);
        }
        return Ok(Side::Inside(Inside {
            trees,
            memory_events,
        }));
    };
    write_ids(child, uid, gid, privileged)?;
    super::put_first(child.as_raw());
    if let Some(cgroup) = &cgroup {
        cgroup.add(child).step("enter the control group")?;
    }
    File::from(gate).write_all(b"g").step("open the gate")?;
    Ok(Side::Outside(Outside {
        child,
        _cgroup: cgroup,
    }))
}

impl Outside {
    /// Returns when process 1, and so everything in its namespaces, is gone.
    pub fn wait(self) -> i32 {
        loop {
            match nix::sys::wait::waitpid(self.child, None) {
                Err(Errno::EINTR) => {}
                Ok(nix::sys::wait::WaitStatus::Exited(_, code)) => return code,
                _ => return 1,
            }
        }
    }
}

/// Like fork, with new namespaces; `None` in the child.
fn clone_into_namespaces() -> nix::Result<Option<Pid>> {
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    // SAFETY: without a stack the call returns twice, like fork; this process has one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags.bits() | libc::SIGCHLD, 0, 0, 0, 0) };
    Errno::result(pid).map(|pid| (pid != 0).then(|| Pid::from_raw(pid as i32)))
}

fn write_ids(child: Pid, uid: u32, gid: u32, privileged: bool) -> Result<(), Failure> {
    let write = |file: &str, text: String| fs::write(format!("/proc/{child}/{file}"), text);
    if !privileged {
        // The kernel's condition for letting an ordinary user map a group.
        write("setgroups", "deny".into()).step("map group ids (setgroups)")?;
    }
    write("uid_map", format!("{ID} {uid} 1")).step("map user ids")?;
    write("gid_map", format!("{ID} {gid} 1")).step("map group ids")
}

impl Inside {
    /// Makes the network, the names and the file system of the cell, and puts this process into them.
    pub fn furnish(
        self,
        confine: &Confine,
        folders: &[PathBuf],
        limits: &Limits,
    ) -> Result<Watch, Failure> {
        let (uid, gid) = (Uid::from_raw(ID), Gid::from_raw(ID));
        let trees = match self.trees {
            Some(trees) => trees,
            None => open_trees(confine)?,
        };
        nix::unistd::setresgid(gid, gid, gid).step("become the sandbox group")?;
        nix::unistd::setresuid(uid, uid, uid).step("become the sandbox user")?;
        unshare(CloneFlags::CLONE_NEWCGROUP).step("create a control group namespace")?;
        nix::unistd::setsid().step("start a session")?;
        nix::unistd::sethostname("sandbox").step("set the host name")?;
        // SAFETY: the text outlives the call.
        Errno::result(unsafe { libc::setdomainname(c"(none)".as_ptr(), 6) })
            .step("set the domain name")?;
        raise_loopback().step("bring up the loopback interface")?;
        mount_root(&trees, folders, limits)?;
        drop(trees);
        // After the last change of identity, which resets it. Should the process outside have died before this line,
        // the closed control stream says so.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).step("tie process 1 to its parent")?;
        Ok(self
            .memory_events
            .map_or_else(|| Watch::ours(limits), Watch::Kernel))
    }
}

/// Everything of the host that is shown, opened before anything is hidden.
fn open_trees(confine: &Confine) -> Result<Vec<Tree>, Failure> {
    let mut trees = vec![Tree::open(
        Path::new("/usr"),
        Path::new("/usr"),
        Kind::ReadOnly,
    )?];
    for folder in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"] {
        let path = Path::new(folder);
        if path.is_dir() && !path.is_symlink() {
            trees.push(Tree::open(path, path, Kind::ReadOnly)?);
        }
    }
    // The loader's cache, and the links behind commands such as awk.
    for optional in ["/etc/ld.so.cache", "/etc/alternatives"] {
        let path = Path::new(optional);
        if path.exists() {
            trees.push(Tree::open(path, path, Kind::ReadOnly)?);
        }
    }
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        let path = Path::new("/dev").join(device);
        trees.push(Tree::open(&path, &path, Kind::Device)?);
    }
    let mut mounts: Vec<_> = confine.mounts.iter().collect();
    // A folder comes before what is mounted below it.
    mounts.sort_by(|a, b| a.inside.cmp(&b.inside));
    for mount in mounts {
        let kind = if mount.writable {
            Kind::Writable
        } else {
            Kind::ReadOnly
        };
        trees.push(Tree::open(&mount.host, &mount.inside, kind)?);
    }
    Ok(trees)
}

fn mount_root(trees: &[Tree], folders: &[PathBuf], limits: &Limits) -> Result<(), Failure> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .step("mount: keep mounts to ourselves")?;
    mount_fs(
        "tmpfs",
        Path::new(ROOT),
        MsFlags::empty(),
        "mode=755,size=1m",
    )?;
    for folder in ["dev", "dev/pts", "dev/shm", "etc", "proc", "tmp"] {
        let path = under_root(folder);
        fs::create_dir(&path).step(format!("make /{folder}"))?;
    }
    for tree in trees {
        tree.attach(Path::new(ROOT))?;
    }
    for folder in ["bin", "sbin", "lib", "lib32", "lib64"] {
        if let Ok(target) = fs::read_link(Path::new("/").join(folder)) {
            symlink(target, under_root(folder)).step(format!("link /{folder}"))?;
        }
    }
    for (link, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, under_root("dev").join(link)).step(format!("link /dev/{link}"))?;
    }
    for (file, text) in ETC {
        fs::write(under_root("etc").join(file), text).step(format!("write /etc/{file}"))?;
    }
    let quiet = MsFlags::MS_NOEXEC;
    let no_devices = MsFlags::MS_NODEV;
    let tmp = limits.of_tmp();
    mount_fs("tmpfs", &under_root("tmp"), no_devices, &tmp)?;
    mount_fs("tmpfs", &under_root("dev/shm"), no_devices | quiet, &tmp)?;
    for folder in folders {
        let at = under_root(folder.strip_prefix("/").unwrap_or(folder));
        fs::create_dir_all(&at).step(format!("make {}", folder.display()))?;
        let options = format!("mode=755,{}", limits.of_folder());
        mount_fs("tmpfs", &at, no_devices, &options)?;
    }
    mount_fs(
        "devpts",
        &under_root("dev/pts"),
        quiet,
        "newinstance,ptmxmode=666,mode=620",
    )?;
    // While the host's /proc is still in sight: the kernel asks for that.
    mount_fs("proc", &under_root("proc"), MsFlags::MS_NODEV | quiet, "")?;
    nix::unistd::chdir(ROOT).step("enter the new root")?;
    nix::unistd::pivot_root(".", ".").step("change the root")?;
    umount2(".", MntFlags::MNT_DETACH).step("let go of the old root")?;
    nix::unistd::chdir("/").step("enter the new root")?;
    super::tree::make_root_read_only()
}

/// Mounts a new file system. Device files in it are never ours to make, so nothing is lost by leaving them usable.
fn mount_fs(kind: &str, at: &Path, flags: MsFlags, options: &str) -> Result<(), Failure> {
    mount(
        Some(kind),
        at,
        Some(kind),
        MsFlags::MS_NOSUID | flags,
        Some(options),
    )
    .step(format!(
        "mount {kind} for {}",
        at.strip_prefix(ROOT).unwrap_or(at).display()
    ))
}

fn under_root(path: impl AsRef<Path>) -> PathBuf {
    Path::new(ROOT).join(path)
}

const ETC: &[(&str, &str)] = &[
    (
        "passwd",
        "root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n",
    ),
    ("group", "root:x:0:\nuser:x:1000:\n"),
    ("hosts", "127.0.0.1 localhost sandbox\n"),
    ("hostname", "sandbox\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    ),
    ("resolv.conf", ""),
];

fn raise_loopback() -> nix::Result<()> {
    // SAFETY: plain system calls on a structure that outlives them.
    unsafe {
        let socket = Errno::result(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        Errno::result(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &mut request,
        ))?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        Errno::result(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &request,
        ))?;
    }
    Ok(())
}
