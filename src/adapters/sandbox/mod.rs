//! Where a candidate runs: a cell without network, privileges or sight of the host, opened for one case and gone
//! after it.
//!
//! There are two sandboxes behind one trait, [`Namespaces`] (no daemon, works for root and for ordinary users) and
//! [`Docker`]. Both put the same program into the cell as process 1, our own binary ([`init_main`]). It binds the port
//! of the mock model, hands the listener to the runner, and starts what it is told to start. So a launch is the same
//! code in both, and no byte of the candidate's output passes through a daemon.
//!
//! What a launch means for a case (routes, fixtures, evidence) is elsewhere; here are argv, bytes and limits.

mod cell;
mod cgroup;
mod docker;
mod error;
mod forker;
mod init;
mod maker;
mod namespaces;
pub mod probe;
mod protocol;
mod spec;

use futures_util::future::BoxFuture;

pub use cell::{Cell, LaunchEvent, Terminal};
pub use docker::{Docker, DockerConfig, image_id as docker_image_id};
pub use error::SandboxError;
pub use init::init_main;
pub use maker::Maker;
pub use namespaces::Namespaces;
pub use spec::{CellSpec, Ended, Exit, Launch, LaunchId, Limits, Mount, Stdio, TerminalSize};

/// The first argument that makes our binary act as process 1 of a cell instead of as a command line.
pub const INIT_ARGUMENT: &str = "__sandbox-init";

/// A way to open cells.
pub trait Sandbox: Send + Sync {
    /// The name used on the command line and in stored results.
    fn name(&self) -> &'static str;

    /// Host user and group that must own every writable folder of a cell, `(uid, gid)`.
    fn owner(&self) -> (u32, u32);

    /// Opens a cell. On return process 1 runs, the port is bound, and nothing of the candidate has started.
    fn open(&self, spec: CellSpec) -> BoxFuture<'_, Result<Cell, SandboxError>>;

    /// Removes what runs that were killed have left on this machine. Cells of living runs are not touched.
    fn sweep(&self) -> BoxFuture<'_, Result<Swept, SandboxError>>;
}

/// What [`Sandbox::sweep`] removed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    pub containers: usize,
    pub cgroups: usize,
    pub folders: usize,
}
