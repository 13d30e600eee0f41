//! The sandbox without a daemon: process 1 isolates itself. Works for root and for ordinary users.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::cell::Remains;
use super::error::SandboxError;
use super::forker::{Forked, Forker};
use super::maker::owner;
use super::protocol::{Confine, Setup};
use super::{Cell, CellSpec, Sandbox, Swept, cgroup};

/// How long the last process of a cell may take to go once process 1 was told to.
const GONE_LIMIT: Duration = Duration::from_secs(20);

/// Cells made of kernel namespaces.
#[derive(Debug, Clone)]
pub struct Namespaces {
    program: PathBuf,
    /// Started with the first cell; none after an error, so that the next cell starts another.
    forker: Arc<Mutex<Option<Forker>>>,
}

impl Default for Namespaces {
    fn default() -> Self {
        Namespaces::new("/proc/self/exe")
    }
}

impl Namespaces {
    /// `program` becomes process 1 of each cell: this very program, or in tests the binary that they belong to.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Namespaces {
            program: program.into(),
            forker: Arc::default(),
        }
    }
}

impl Sandbox for Namespaces {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn owner(&self) -> (u32, u32) {
        owner()
    }

    fn open(&self, spec: CellSpec) -> BoxFuture<'_, Result<Cell, SandboxError>> {
        self.open_cell(spec).boxed()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<Swept, SandboxError>> {
        async {
            Ok(Swept {
                cgroups: cgroup::sweep(),
                ..Swept::default()
            })
        }
        .boxed()
    }
}

impl Namespaces {
    async fn open_cell(&self, spec: CellSpec) -> Result<Cell, SandboxError> {
        let CellSpec {
            label,
            mounts,
            folders,
            limits,
            port,
        } = spec;
        let setup_error = |what: &str, error: std::io::Error| match error.raw_os_error() {
            Some(
                libc::EAGAIN
                | libc::ENOMEM
                | libc::EMFILE
                | libc::ENFILE
                | libc::EPIPE
                | libc::ECONNRESET,
            ) => SandboxError::Lost {
                label: label.clone(),
                why: format!("{what}: {error}"),
            },
            _ => SandboxError::Setup {
                label: label.clone(),
                why: format!("{what}: {error}"),
            },
        };
        let (ours, theirs) =
            UnixStream::pair().map_err(|error| setup_error("socket pair", error))?;
        let forked = self
            .fork(theirs.into())
            .await
            .map_err(|error| setup_error(&format!("start {}", self.program.display()), error))?;
        let stream = ours
            .set_nonblocking(true)
            .and_then(|()| tokio::net::UnixStream::from_std(ours))
            .map_err(|error| setup_error("control stream", error))?;
        let setup = Setup {
            port,
            limits,
            folders,
            confine: Some(Confine {
                mounts,
                owner: owner(),
            }),
        };
        let remains = Processes {
            label: label.clone(),
            outside: forked,
        };
        Cell::set_up(label, stream, setup, Box::new(remains)).await
    }

    /// Forks the process outside a cell, which obeys the other end of `control`.
    async fn fork(&self, control: OwnedFd) -> std::io::Result<Forked> {
        let (forker, program) = (self.forker.clone(), self.program.clone());
        // It is short, and it must not be left half done when nobody waits for the cell any more.
        let forked = tokio::task::spawn_blocking(move || {
            let mut forker = forker.lock().expect("no holder of this lock panics");
            let mut running = match forker.take() {
                Some(running) => running,
                None => Forker::start(&program)?,
            };
            let forked = running.fork(&control)?;
            *forker = Some(running);
            Ok(forked)
        });
        forked.await.map_err(std::io::Error::other)?
    }
}

/// The process outside the cell; it ends after everything inside.
struct Processes {
    label: String,
    outside: Forked,
}

impl Remains for Processes {
    fn process(&self) -> Option<u32> {
        Some(self.outside.pid)
    }

    fn gone(self: Box<Self>) -> BoxFuture<'static, Result<(), SandboxError>> {
        async move {
            if timeout(GONE_LIMIT, self.outside.ended()).await.is_ok() {
                return Ok(());
            }
            // Its death kills process 1, and that everything else.
            self.outside.kill();
            let killed = timeout(GONE_LIMIT, self.outside.ended()).await.is_ok();
            cgroup::sweep();
            if killed {
                return Ok(());
            }
            Err(SandboxError::Lost {
                label: self.label,
                why: "its processes cannot be killed".into(),
            })
        }
        .boxed()
    }
}
