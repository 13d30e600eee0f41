//! The runner's end of the process that forks for each cell (`init/forks`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use tokio::io::unix::AsyncFd;

use super::INIT_ARGUMENT;

/// How long a fork may take. It needs less than a millisecond; this is for a machine that is nearly at a standstill.
const FORK_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take to end when it was told to.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A process that forks when it is asked to. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Forker {
    process: Child,
    requests: UnixStream,
}

/// A process that was forked.
#[derive(Debug)]
pub(super) struct Forked {
    pub(super) pid: u32,
    descriptor: OwnedFd,
}

impl Forker {
    /// Starts `program` to fork for cells. The stream is its standard input, so that nothing has to run between fork and
    /// exec. A process group of its own keeps Ctrl-C at the runner's terminal from the cells; the runner decides what to
    /// do about it.
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        let (requests, theirs) = UnixStream::pair()?;
        requests.set_read_timeout(Some(FORK_LIMIT))?;
        let process = Command::new(program)
            .arg(INIT_ARGUMENT)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { process, requests })
    }

    /// Has a process forked that obeys the other end of `control`. After an error this one is of no more use.
    pub(super) fn fork(&mut self, control: &OwnedFd) -> io::Result<Forked> {
        sendmsg::<()>(
            self.requests.as_raw_fd(),
            &[IoSlice::new(b"c")],
            &[ControlMessage::ScmRights(&[control.as_raw_fd()])],
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        let mut number = [0; 4];
        let mut space = nix::cmsg_space!([RawFd; 1]);
        let mut buffers = [IoSliceMut::new(&mut number)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let fd = self.requests.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut buffers, Some(&mut space), flags)?;
        if message.bytes != 4 {
            return Err(io::Error::from_raw_os_error(libc::ECONNRESET));
        }
        let mut descriptor = None;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(fds) = control
                && let [fd] = fds.as_slice()
            {
                // SAFETY: the kernel has just made this descriptor for us.
                descriptor = Some(unsafe { OwnedFd::from_raw_fd(*fd) });
            }
        }
        let number = i32::from_le_bytes(number);
        match (u32::try_from(number), descriptor) {
            (Ok(pid), Some(descriptor)) => Ok(Forked { pid, descriptor }),
            _ => Err(io::Error::from_raw_os_error(-number)),
        }
    }
}

impl Drop for Forker {
    fn drop(&mut self) {
        let _ = self.requests.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + END_LIMIT;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Forked {
    /// Returns when the process has ended.
    pub(super) async fn ended(&self) -> io::Result<()> {
        // SAFETY: the descriptor stays open while this is borrowed.
        let descriptor = unsafe { AsyncFd::register(self.descriptor.as_raw_fd())? };
        descriptor.readable().await.map(drop)
    }

    pub(super) fn kill(&self) {
        let fd = self.descriptor.as_raw_fd();
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a plain system call. It fails when the process has ended, which is what is wanted.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, nothing, 0) };
    }
}
