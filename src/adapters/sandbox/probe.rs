//! Which promises of a sandbox this machine can keep, found out by doing: a cell is opened and misbehaved in.
//!
//! Nothing is read from settings of the kernel or the daemon that merely promise something.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use serde::Deserialize;

use super::docker::{Docker, DockerConfig};
use super::error::SandboxError;
use super::spec::{CellSpec, Ended, Exit, Launch, Limits};
use super::{Cell, Namespaces, Sandbox, cgroup};

/// One promise, and whether it is kept here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub promise: &'static str,
    pub state: State,
    /// What was seen.
    pub detail: String,
    /// What to type, when the promise is not kept in full.
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Holds,
    /// In a weaker form that is good enough for evaluation.
    Weaker,
    /// It does not hold.
    Broken,
    /// This machine has no place where it could be tried.
    Unproven,
}

impl State {
    /// As it is told to people and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Holds => "holds",
            State::Weaker => "holds weaker",
            State::Broken => "does not hold",
            State::Unproven => "not provable here",
        }
    }
}

/// Probes the sandbox that needs no daemon.
pub async fn namespaces(sandbox: &Namespaces) -> Vec<Finding> {
    let mut findings = cell("user namespaces", sandbox).await;
    findings.push(control_groups());
    findings
}

/// Control groups of version 2, which most machines have by now, also where the limits are set by version 1.
fn control_groups() -> Finding {
    let (state, detail) = match cgroup::prove_version_two() {
        cgroup::Proof::Holds(seen) => (State::Holds, seen),
        cgroup::Proof::Fails(why) => (State::Weaker, why),
        cgroup::Proof::Nowhere(why) => (State::Unproven, why),
    };
    Finding {
        promise: "control groups, version 2",
        state,
        detail,
        remedy: None,
    }
}

/// Probes Docker: daemon, image, container.
pub async fn docker(config: DockerConfig) -> Vec<Finding> {
    let image = config.image.clone();
    let connected = Docker::connect(config).await;
    let daemon = match &connected {
        Err(error @ SandboxError::Daemon { .. }) => return vec![broken("docker daemon", error)],
        _ => holds("docker daemon", "answers, interface 1.41 or newer"),
    };
    let docker = match connected {
        Err(error) => return vec![daemon, broken("image", &error)],
        Ok(docker) => docker,
    };
    let mut findings = vec![daemon, holds("image", &image)];
    findings.extend(cell("container", &docker).await);
    findings
}

/// Small enough to be reached at once. Little enough processor time for four programs to have more even on a busy machine.
const SMALL: Limits = Limits {
    memory_mib: 64,
    pids: 24,
    cpus: 0.3,
    open_files: 64,
    file_mib: 1,
    output_kib: 64,
    tmp_mib: 8,
    folder_mib: 8,
    folder_files: 100,
};

/// The folder of the cell's own.
const FOLDER: &str = "/workspace";

/// Opens a cell and tries every promise in it. `opening` names what has to work for that.
async fn cell(opening: &'static str, sandbox: &dyn Sandbox) -> Vec<Finding> {
    let spec = CellSpec {
        label: "doctor".into(),
        mounts: Vec::new(),
        folders: vec![FOLDER.into()],
        limits: SMALL,
        port: 8400,
    };
    let mut cell = match sandbox.open(spec).await {
        Ok(cell) => cell,
        Err(error) => return vec![broken(opening, &error)],
    };
    let folders = cell.take_folders();
    let mut findings = vec![holds(opening, "a cell was opened")];
    match confinement(&mut cell).await {
        Ok(Err(finding)) => findings.push(finding),
        Ok(Ok((found, limited_by))) => {
            findings.extend(found);
            for finding in [
                memory(&mut cell, limited_by).await,
                pids(&mut cell).await,
                cpu(&mut cell).await,
                time(&mut cell).await,
                orphans(&mut cell).await,
                output(&mut cell).await,
                space(&mut cell, &folders).await,
            ] {
                findings.push(finding.unwrap_or_else(|error| broken("cell", &error)));
            }
        }
        Err(error) => findings.push(broken("cell", &error)),
    }
    findings.push(match cell.close().await {
        Ok(()) => holds("clean end", "nothing of the cell is left"),
        Err(error) => broken("clean end", &error),
    });
    findings
}

/// Who limits memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitedBy {
    ControlGroup,
    Us,
}

/// What the probe program saw inside.
#[derive(Debug, Deserialize)]
struct Seen {
    python: String,
    interfaces: Vec<String>,
    /// Outcome of a connection to another machine.
    outside: String,
    /// Places that could be written and should not be.
    written: Vec<String>,
    /// Lines of `/proc/self/status` and `/proc/self/limits`.
    no_new_privileges: String,
    seccomp: String,
    capabilities: String,
    namespace: String,
    address_space: String,
    /// User ids that the program has had, one after another.
    users: Vec<u32>,
    /// What could be done to process 1.
    process_one: Vec<String>,
    /// Sockets that lead out of every network namespace.
    sockets: Vec<String>,
    open_files: u64,
}

const LOOK: &str = r#"
import json, os, resource, socket, ctypes, sys
status = {name: value.strip() for name, value in (line.split(":", 1) for line in open("/proc/self/status"))}
written = []
for place in ("/x", "/usr/x", "/etc/x", "/dev/x"):
    try: open(place, "w").close(); written.append(place)
    except OSError: pass
try: socket.create_connection(("192.0.2.1", 80), 2); outside = "connected"
except OSError as error: outside = error.strerror or str(error)
libc = ctypes.CDLL(None, use_errno=True)
namespace = "made" if libc.unshare(0x10000000) == 0 else os.strerror(ctypes.get_errno())
users = [os.getuid()]
try: os.setuid(0); users.append(os.getuid())
except OSError: pass
def worked(**acts):
    done = []
    for name, act in acts.items():
        try: act(); done.append(name)
        except OSError: pass
    return done
def attach():
    if libc.ptrace(16, 1, 0, 0) < 0: raise OSError()
process_one = worked(memory=lambda: open("/proc/1/mem", "rb"), descriptors=lambda: os.listdir("/proc/1/fd"), attach=attach,
    limits=lambda: resource.prlimit(1, resource.RLIMIT_CPU, (60, 60)), priority=lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
sockets = worked(vsock=lambda: socket.socket(40, socket.SOCK_STREAM), packet=lambda: socket.socket(17, socket.SOCK_RAW))
kept = []
try:
    while len(kept) < 2000: kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
open_files = len(kept)
for descriptor in kept: os.close(descriptor)
limits = [line for line in open("/proc/self/limits") if line.startswith("Max address space")]
print(json.dumps(dict(
    python=sys.version.split()[0], interfaces=[name for _, name in socket.if_nameindex()], outside=outside,
    written=written, no_new_privileges=status["NoNewPrivs"], seccomp=status["Seccomp"],
    capabilities=status["CapEff"], namespace=namespace, address_space=limits[0].split()[3],
    users=users, process_one=process_one, sockets=sockets, open_files=open_files)))
"#;

/// Looks around inside. Without Python there is nothing to look with, and one finding says so.
async fn confinement(
    cell: &mut Cell,
) -> Result<Result<(Vec<Finding>, LimitedBy), Finding>, SandboxError> {
    let ended = cell.launch(python(LOOK)).await?;
    let Ok(seen) = serde_json::from_slice::<Seen>(&ended.stdout) else {
        let remedy =
            "install Python 3.9 or newer as /usr/bin/python3; for Docker, `.ci/base-image --force`";
        let state = State::Broken;
        return Ok(Err(Finding {
            promise: "python",
            state,
            detail: end(&ended),
            remedy: Some(remedy.into()),
        }));
    };
    let network = seen.interfaces == ["lo"] && seen.outside != "connected";
    let rights =
        seen.capabilities.trim_start_matches('0').is_empty() && seen.no_new_privileges == "1";
    let findings = vec![
        either("python", true, format!("version {}", seen.python)),
        either(
            "no network",
            network,
            format!(
                "interfaces {:?}; another machine: {}",
                seen.interfaces, seen.outside
            ),
        ),
        either(
            "read-only root",
            seen.written.is_empty(),
            match seen.written.as_slice() {
                [] => "/, /usr, /etc and /dev refuse".into(),
                written => format!("could write {written:?}"),
            },
        ),
        either(
            "no privileges",
            rights,
            format!("capabilities {}", seen.capabilities),
        ),
        either(
            "system call filter",
            seen.seccomp == "2" && seen.namespace != "made",
            format!("mode {}; a new namespace: {}", seen.seccomp, seen.namespace),
        ),
        either(
            "unprivileged user",
            !seen.users.contains(&0),
            format!("user {:?}", seen.users),
        ),
        either(
            "process 1 out of reach",
            seen.process_one.is_empty(),
            format!("what could be done to it: {:?}", seen.process_one),
        ),
        either(
            "no other sockets",
            seen.sockets.is_empty(),
            format!("could be opened: {:?}", seen.sockets),
        ),
        either(
            "open files limit",
            seen.open_files < SMALL.open_files,
            format!("{} at a limit of {}", seen.open_files, SMALL.open_files),
        ),
    ];
    let limited_by = if seen.address_space == "unlimited" {
        LimitedBy::ControlGroup
    } else {
        LimitedBy::Us
    };
    Ok(Ok((findings, limited_by)))
}

const HOG: &str = "
kept = []
while True:
    kept.append(bytearray(1 << 20))
    import time; time.sleep(0.002)
";

async fn memory(cell: &mut Cell, limited_by: LimitedBy) -> Result<Finding, SandboxError> {
    let ended = cell.launch(python(HOG)).await?;
    let promise = "memory limit";
    Ok(match (ended.out_of_memory, limited_by) {
        (true, LimitedBy::ControlGroup) => holds(promise, "enforced by a control group"),
        (true, LimitedBy::Us) => Finding {
            promise,
            state: State::Weaker,
            detail: "watched ten times a second; each process is bounded by its address space"
                .into(),
            remedy: Some("run as root to have it enforced by a control group".into()),
        },
        (false, _) => Finding {
            promise,
            state: State::Broken,
            detail: format!("a program that takes all memory ended as {}", end(&ended)),
            remedy: Some(
                "let the daemon limit memory: `docker info` names what is missing; or run as root"
                    .into(),
            ),
        },
    })
}

const MULTIPLY: &str = "
import os, time
n = 0
try:
    while n < 500:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        n += 1
except OSError: pass
print(n)
";

async fn pids(cell: &mut Cell) -> Result<Finding, SandboxError> {
    let ended = cell.launch(python(MULTIPLY)).await?;
    let promise = "process limit";
    let n: Option<u64> = String::from_utf8_lossy(&ended.stdout).trim().parse().ok();
    Ok(match n {
        Some(n) if n < SMALL.pids => holds(promise, &format!("{n} children at a limit of {}", SMALL.pids)),
        _ => Finding {
            promise,
            state: State::Broken,
            detail: format!("{} at a limit of {}: {}", n.unwrap_or(0), SMALL.pids, end(&ended)),
            remedy: Some("use Linux 5.14 or newer, or a daemon whose `docker info` shows no missing pids limit".into()),
        },
    })
}

async fn time(cell: &mut Cell) -> Result<Finding, SandboxError> {
    let stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)";
    let ended = cell
        .launch(Launch {
            time_limit: Duration::from_millis(300),
            ..python(stubborn)
        })
        .await?;
    Ok(match ended.exit {
        Exit::TimedOut => holds(
            "time limit",
            &format!("killed after {} ms", ended.duration.as_millis()),
        ),
        _ => Finding {
            promise: "time limit",
            state: State::Broken,
            detail: end(&ended),
            remedy: None,
        },
    })
}

async fn orphans(cell: &mut Cell) -> Result<Finding, SandboxError> {
    let daemon = "import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(60)";
    cell.launch(python(daemon)).await?;
    let count = "import os; print(sum(name.isdigit() for name in os.listdir('/proc')) - 2)";
    let ended = cell.launch(python(count)).await?;
    let fine = ended.stdout == b"0\n";
    Ok(either(
        "nothing outlives a launch",
        fine,
        format!("a daemon was left; still there: {}", said(&ended)),
    ))
}

async fn output(cell: &mut Cell) -> Result<Finding, SandboxError> {
    let ended = cell.launch(python("print('x' * (1 << 20))")).await?;
    let kept_kib = ended.stdout.len() as u64 >> 10;
    let fine = ended.stdout_cut && kept_kib == SMALL.output_kib && ended.exit == Exit::Code(0);
    Ok(either(
        "output limit",
        fine,
        format!(
            "{kept_kib} KiB kept of 1024 at a limit of {}",
            SMALL.output_kib
        ),
    ))
}

const FILL: &str = r#"
import errno, os
seen = []
for place in ("/workspace", "/tmp", "/dev/shm"):
    try:
        with open(place + "/big", "wb", 0) as file:
            file.truncate(0)
            for n in range(64): open(f"{place}/part-{n}", "wb").write(bytes(1 << 20))
    except OSError as error: seen.append(errno.errorcode[error.errno])
    for name in os.listdir(place): os.remove(f"{place}/{name}")
    try:
        for n in range(1000): open(f"{place}/{n}", "w").close()
    except OSError as error: seen.append(errno.errorcode[error.errno])
    for name in os.listdir(place): os.remove(f"{place}/{name}")
open("/workspace/last", "w").write("read back")
print(*seen)
"#;

/// Fills what can be filled, and reads from outside what was left.
async fn space(cell: &mut Cell, folders: &[OwnedFd]) -> Result<Finding, SandboxError> {
    let ended = cell.launch(python(FILL)).await?;
    let full = said(&ended) == ["ENOSPC"; 6].join(" ");
    let last = folders
        .first()
        .map(|folder| format!("/proc/self/fd/{}/last", folder.as_raw_fd()));
    let read = last.and_then(|path| std::fs::read_to_string(path).ok());
    Ok(either(
        "sized folders",
        full && read.as_deref() == Some("read back"),
        format!(
            "at {} MiB and {} files in {FOLDER}, /tmp and /dev/shm: {}; from outside: {}",
            SMALL.folder_mib,
            SMALL.folder_files,
            said(&ended),
            read.as_deref().unwrap_or("not readable")
        ),
    ))
}

async fn cpu(cell: &mut Cell) -> Result<Finding, SandboxError> {
    let busy = "for i in 1 2 3 4; do (while :; do :; done) & done; wait";
    let argv = ["/bin/sh", "-c", busy].map(String::from).to_vec();
    let ended = cell
        .launch(Launch {
            argv,
            time_limit: Duration::from_secs(1),
            ..python("")
        })
        .await?;
    let cores = ended.cpu.as_secs_f64() / ended.duration.as_secs_f64();
    let detail = format!(
        "four busy programs had {cores:.2} cores at a limit of {}",
        SMALL.cpus
    );
    Ok(if cores < SMALL.cpus * 1.6 {
        holds("processor limit", &detail)
    } else {
        let remedy = Some("run as root to have it enforced by a control group".into());
        Finding {
            promise: "processor limit",
            state: State::Weaker,
            detail,
            remedy,
        }
    })
}

fn python(script: &str) -> Launch {
    Launch {
        argv: ["/usr/bin/python3", "-c", script]
            .map(String::from)
            .to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/tmp".into(),
        stdin: Vec::new(),
        time_limit: Duration::from_secs(20),
        leave_running: false,
    }
}

fn either(promise: &'static str, fine: bool, detail: String) -> Finding {
    Finding {
        promise,
        state: if fine { State::Holds } else { State::Broken },
        detail,
        remedy: (!fine)
            .then(|| "this is a defect of the sandbox; please report it with this output".into()),
    }
}

fn holds(promise: &'static str, detail: &str) -> Finding {
    Finding {
        promise,
        state: State::Holds,
        detail: detail.into(),
        remedy: None,
    }
}

/// The text of an error ends with what to type.
fn broken(promise: &'static str, error: &SandboxError) -> Finding {
    let (detail, remedy) = match error {
        SandboxError::NotPermitted { what, hint } => (what.clone(), Some(hint.clone())),
        SandboxError::Daemon { why, hint } => (why.clone(), Some(hint.clone())),
        SandboxError::ImageMissing { image } => (
            format!("{image} is not there"),
            Some(".ci/base-image".into()),
        ),
        other => (other.to_string(), None),
    };
    Finding {
        promise,
        state: State::Broken,
        detail,
        remedy,
    }
}

fn said(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stdout).trim().to_owned()
}

fn end(ended: &Ended) -> String {
    format!(
        "{:?} {}",
        ended.exit,
        String::from_utf8_lossy(&ended.stderr).trim()
    )
}
