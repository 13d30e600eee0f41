//! One end of a program's output: reads all, keeps the beginning.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Output of a program, read without blocking.
#[derive(Debug)]
pub struct Output {
    /// `None` once every writer has closed.
    source: Option<File>,
    pub kept: Vec<u8>,
    pub cut: bool,
    /// Bytes that may still be kept.
    room: usize,
}

impl Output {
    /// Output that keeps at most `room` bytes. No source: no output, as for the stderr of a terminal.
    pub fn new(source: Option<OwnedFd>, room: usize) -> nix::Result<Self> {
        if let Some(fd) = &source {
            fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(Output {
            source: source.map(File::from),
            kept: Vec::new(),
            cut: false,
            room,
        })
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(|file| file.as_fd())
    }

    /// Reads once. Returns whether there may be more at this moment.
    pub fn read(&mut self) -> bool {
        let mut chunk = [0; 64 * 1024];
        let Some(source) = &mut self.source else {
            return false;
        };
        match source.read(&mut chunk) {
            Ok(n) if n > 0 => {
                let keep = n.min(self.room);
                self.kept.extend_from_slice(&chunk[..keep]);
                self.room -= keep;
                self.cut |= keep < n;
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => true,
            // End of file; a terminal says it with EIO.
            Ok(_) | Err(_) => {
                self.source = None;
                false
            }
        }
    }

    /// Reads what is there, at most `limit` reads, so that a writer that is still alive cannot hold us.
    pub fn drain(&mut self, limit: usize) {
        for _ in 0..limit {
            if !self.read() {
                break;
            }
        }
    }
}
