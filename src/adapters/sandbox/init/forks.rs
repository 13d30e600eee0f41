//! One process for many cells: started once, it forks for each, so that no cell pays for the start of a program.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// Obeys the runner at the other end of standard input: each of its messages is one byte and the control stream of a
/// cell, and is answered with the id of the process that was forked, or the kernel's error number as a negative one, in
/// four bytes, and a descriptor of the process.
///
/// Returns the control stream in each forked process. The one that forks ends when the runner is gone, and all that it
/// forked with it.
pub fn next_cell() -> io::Result<UnixStream> {
    // SAFETY: the runner made standard input a stream socket, and nothing else in this process refers to it.
    let requests = unsafe { OwnedFd::from_raw_fd(0) };
    while let Some(control) = receive(&requests)? {
        // Whoever has ended is known to the runner by its descriptor.
        while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
        {
        }
        // SAFETY: this process has one thread.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => {
                // In place of the stream to the runner, which is not the cell's.
                nix::unistd::dup2_stdin(&control)?;
                std::mem::forget(requests);
                // SAFETY: the descriptor was made a line above.
                return Ok(unsafe { UnixStream::from_raw_fd(0) });
            }
            Ok(ForkResult::Parent { child }) => match process_descriptor(child) {
                Ok(process) => answer(&requests, child.as_raw(), Some(process.as_fd()))?,
                Err(errno) => answer(&requests, -(errno as i32), None)?,
            },
            Err(errno) => answer(&requests, -(errno as i32), None)?,
        }
    }
    while waitpid(None, None).is_ok() {}
    std::process::exit(0)
}

/// A child that was not waited for keeps its id, so the descriptor is surely its.
fn process_descriptor(child: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: a plain system call; the result is a new descriptor of ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0);
        Ok(OwnedFd::from_raw_fd(Errno::result(fd)? as RawFd))
    }
}

/// The control stream of the next cell; none when the runner is gone.
fn receive(requests: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = nix::cmsg_space!([RawFd; 1]);
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(requests.as_raw_fd(), &mut buffers, Some(&mut space), flags)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control
            && let [fd] = fds.as_slice()
        {
            // SAFETY: the kernel has just made this descriptor for us.
            return Ok(Some(unsafe { OwnedFd::from_raw_fd(*fd) }));
        }
    }
    Ok(None)
}

fn answer(requests: &OwnedFd, number: i32, process: Option<BorrowedFd<'_>>) -> nix::Result<()> {
    let fds = process.map(|process| [process.as_raw_fd()]);
    let control = fds.as_ref().map(|fds| ControlMessage::ScmRights(fds));
    sendmsg::<()>(
        requests.as_raw_fd(),
        &[IoSlice::new(&number.to_le_bytes())],
        control.as_slice(),
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .map(drop)
}
