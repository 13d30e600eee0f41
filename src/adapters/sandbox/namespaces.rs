//! The sandbox without a daemon: process 1 isolates itself. Works for root and for ordinary users.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::cell::Remains;
use super::error::SandboxError;
use super::maker::owner;
use super::protocol::{Confine, Setup};
use super::{Cell, CellSpec, INIT_ARGUMENT, Sandbox, Swept, cgroup};

/// How long the last process of a cell may take to go once process 1 was told to.
const GONE_LIMIT: Duration = Duration::from_secs(20);

/// Cells made of kernel namespaces.
#[derive(Debug, Clone)]
pub struct Namespaces {
    program: PathBuf,
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
            Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) => SandboxError::Lost {
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
        // The stream is their standard input, so that nothing has to run between fork and exec. A process group of its
        // own keeps Ctrl-C at the runner's terminal from the cell; the runner decides what to do about it.
        let child = Command::new(&self.program)
            .arg(INIT_ARGUMENT)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
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
            child,
        };
        Cell::set_up(label, stream, setup, Box::new(remains)).await
    }
}

/// The process outside the cell; it ends after everything inside.
struct Processes {
    label: String,
    child: Child,
}

impl Remains for Processes {
    fn process(&self) -> Option<u32> {
        self.child.id()
    }

    fn gone(mut self: Box<Self>) -> BoxFuture<'static, Result<(), SandboxError>> {
        async move {
            if timeout(GONE_LIMIT, self.child.wait()).await.is_ok() {
                return Ok(());
            }
            // Its death kills process 1, and that everything else.
            let _ = self.child.start_kill();
            let killed = timeout(GONE_LIMIT, self.child.wait()).await.is_ok();
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
