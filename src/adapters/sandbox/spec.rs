//! What a cell is made of, what is started in it, and how that ended.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A cell to be opened.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpec {
    /// Names the cell in messages and in `docker ps`, for example `run/case/attempt`.
    pub label: String,
    /// Host files and folders shown inside. Nothing else of the host is visible, except the read-only system
    /// directories of the sandbox that works without an image.
    pub mounts: Vec<Mount>,
    /// Absolute paths inside at which there is an empty folder of the cell's own, in memory, with a bound on bytes and
    /// files; see [`super::Cell::take_folders`].
    pub folders: Vec<PathBuf>,
    pub limits: Limits,
    /// The port on 127.0.0.1, inside, that the runner listens on.
    pub port: u16,
}

/// A host file or folder shown inside the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Absolute path on the host. It must exist.
    pub host: PathBuf,
    /// Absolute path inside, made if it is not there.
    pub inside: PathBuf,
    pub writable: bool,
}

impl Mount {
    pub fn read_only(host: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        Mount {
            host: host.into(),
            inside: inside.into(),
            writable: false,
        }
    }

    pub fn writable(host: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        Mount {
            host: host.into(),
            inside: inside.into(),
            writable: true,
        }
    }
}

/// Upper bounds for everything inside one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Resident memory of all processes together, without swap.
    pub memory_mib: u64,
    /// Processes and threads alive at one time.
    pub pids: u64,
    /// Processor time, in cores. Not enforced where the kernel grants us no control group.
    pub cpus: f64,
    /// Open files of each process.
    pub open_files: u64,
    /// Size of any one file written.
    pub file_mib: u64,
    /// Bytes kept of each of stdout, stderr and terminal output; the rest is read and thrown away.
    pub output_kib: u64,
    /// Size of `/tmp`, and of `/dev/shm`; it counts as memory too.
    pub tmp_mib: u64,
    /// Size of each folder of the cell's own; what is written there inside counts as memory too.
    pub folder_mib: u64,
    /// Files, folders and links in each of them, in `/tmp`, and in `/dev/shm`.
    pub folder_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_mib: 1024,
            pids: 128,
            cpus: 1.0,
            open_files: 1024,
            file_mib: 256,
            output_kib: 4096,
            tmp_mib: 128,
            folder_mib: 192,
            folder_files: 10_000,
        }
    }
}

impl Limits {
    /// Options of the file system in memory behind a folder of the cell's own.
    pub(super) fn of_folder(&self) -> String {
        format!("size={}m,nr_inodes={}", self.folder_mib, self.folder_files)
    }

    /// The same for `/tmp` and `/dev/shm`.
    pub(super) fn of_tmp(&self) -> String {
        format!(
            "mode=1777,size={}m,nr_inodes={}",
            self.tmp_mib, self.folder_files
        )
    }
}

/// One program to be run in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The program, as a path inside the cell, and its arguments. There is no search of `PATH`.
    pub argv: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Absolute working directory inside the cell.
    pub cwd: String,
    /// Fed to standard input, which is then closed. Empty: standard input is `/dev/null`. In a terminal: typed first.
    pub stdin: Vec<u8>,
    /// Wall-clock time after which everything in the cell is killed.
    pub time_limit: Duration,
    /// Leaves processes that outlive the program running, for the next launch to find. Their output ends with the
    /// launch. Normally everything is killed as soon as the program exits.
    pub leave_running: bool,
}

/// One launch of a cell, among those that run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaunchId(pub u32);

/// What a program's standard input, output and error are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdio {
    /// Pipes. Standard input ends behind [`Launch::stdin`].
    Pipes,
    /// Pipes. Standard input gets [`Launch::stdin`] and then neither more nor an end.
    OpenInput,
    /// Pipes, and no standard input at all: descriptor 0 is closed.
    NoInput,
    /// A terminal of this size.
    Terminal(TerminalSize),
}

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// How a launched program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It ran at the time limit, and was killed.
    TimedOut,
    /// The program could not be executed (missing, not executable, bad interpreter) or its working directory is gone.
    /// The text names the path and the reason.
    NotStarted(String),
}

/// A launch that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub exit: Exit,
    /// The first [`Limits::output_kib`] of standard output. For a terminal: what was not yet read.
    pub stdout: Vec<u8>,
    /// More was written than `stdout` holds.
    pub stdout_cut: bool,
    pub stderr: Vec<u8>,
    pub stderr_cut: bool,
    /// From the start of the program to its exit.
    pub duration: Duration,
    /// Processor time, user and system, of the program and of every descendant that ended with it.
    pub cpu: Duration,
    /// Something in the cell was killed because the memory limit was reached.
    pub out_of_memory: bool,
}
