//! Which promises of a sandbox this machine can keep, found out by doing: a cell is opened and misbehaved in.
//!
//! Nothing is read from settings of the kernel or the daemon that merely promise something.

use std::time::Duration;

use serde::Deserialize;

use super::docker::{Docker, DockerConfig};
use super::error::SandboxError;
use super::spec::{CellSpec, Ended, Exit, Launch, Limits};
use super::{Cell, Namespaces, Sandbox};

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
    Kept,
    /// Kept in a weaker form that is good enough for evaluation.
    Weaker,
    Broken,
}

/// Probes the sandbox that needs no daemon.
pub async fn namespaces(sandbox: &Namespaces) -> Vec<Finding> {
    cell("user namespaces", sandbox).await
}

/// Probes Docker: daemon, image, container.
pub async fn docker(config: DockerConfig) -> Vec<Finding> {
    let image = config.image.clone();
    let connected = Docker::connect(config).await;
    let daemon = match &connected {
        Err(error @ SandboxError::Daemon { .. }) => return vec![broken("docker daemon", error)],
        _ => kept("docker daemon", "answers, interface 1.41 or newer"),
    };
    let docker = match connected {
        Err(error) => return vec![daemon, broken("image", &error)],
        Ok(docker) => docker,
    };
    let mut findings = vec![daemon, kept("image", &image)];
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

/// Opens a cell and tries every promise in it. `opening` names what has to work for that.
async fn cell(opening: &'static str, sandbox: &dyn Sandbox) -> Vec<Finding> {
    let spec = CellSpec {
        label: "doctor".into(),
        mounts: Vec::new(),
        folders: Vec::new(),
        limits: SMALL,
        port: 8400,
    };
    let mut cell = match sandbox.open(spec).await {
        Ok(cell) => cell,
        Err(error) => return vec![broken(opening, &error)],
    };
    let mut findings = vec![kept(opening, "a cell was opened")];
    match confinement(&mut cell).await {
        Ok(Err(finding)) => findings.push(finding),
        Ok(Ok((found, limited_by))) => {
            findings.extend(found);
            for finding in [
                memory(&mut cell, limited_by).await,
                pids(&mut cell).await,
                cpu(&mut cell).await,
                time(&mut cell).await,
            ] {
                findings.push(finding.unwrap_or_else(|error| broken("cell", &error)));
            }
        }
        Err(error) => findings.push(broken("cell", &error)),
    }
    findings.push(match cell.close().await {
        Ok(()) => kept("clean end", "nothing of the cell is left"),
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
}

const LOOK: &str = r#"
import json, os, socket, ctypes, sys
status = {name: value.strip() for name, value in (line.split(":", 1) for line in open("/proc/self/status"))}
written = []
for place in ("/x", "/usr/x", "/etc/x", "/dev/x"):
    try: open(place, "w").close(); written.append(place)
    except OSError: pass
try: socket.create_connection(("192.0.2.1", 80), 2); outside = "connected"
except OSError as error: outside = error.strerror or str(error)
libc = ctypes.CDLL(None, use_errno=True)
namespace = "made" if libc.unshare(0x10000000) == 0 else os.strerror(ctypes.get_errno())
limits = [line for line in open("/proc/self/limits") if line.startswith("Max address space")]
print(json.dumps(dict(
    python=sys.version.split()[0], interfaces=[name for _, name in socket.if_nameindex()], outside=outside,
    written=written, no_new_privileges=status["NoNewPrivs"], seccomp=status["Seccomp"],
    capabilities=status["CapEff"], namespace=namespace, address_space=limits[0].split()[3])))
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
    let check = |promise, fine: bool, detail: String| Finding {
        promise,
        state: if fine { State::Kept } else { State::Broken },
        detail,
        remedy: (!fine)
            .then(|| "this is a defect of the sandbox; please report it with this output".into()),
    };
    let network = seen.interfaces == ["lo"] && seen.outside != "connected";
    let rights =
        seen.capabilities.trim_start_matches('0').is_empty() && seen.no_new_privileges == "1";
    let findings = vec![
        check("python", true, format!("version {}", seen.python)),
        check(
            "no network",
            network,
            format!(
                "interfaces {:?}; another machine: {}",
                seen.interfaces, seen.outside
            ),
        ),
        check(
            "read-only root",
            seen.written.is_empty(),
            match seen.written.as_slice() {
                [] => "/, /usr, /etc and /dev refuse".into(),
                written => format!("could write {written:?}"),
            },
        ),
        check(
            "no privileges",
            rights,
            format!("capabilities {}", seen.capabilities),
        ),
        check(
            "system call filter",
            seen.seccomp == "2" && seen.namespace != "made",
            format!("mode {}; a new namespace: {}", seen.seccomp, seen.namespace),
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
        (true, LimitedBy::ControlGroup) => kept(promise, "enforced by a control group"),
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
        Some(n) if n < SMALL.pids => kept(promise, &format!("{n} children at a limit of {}", SMALL.pids)),
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
        Exit::TimedOut => kept(
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
        kept("processor limit", &detail)
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

fn kept(promise: &'static str, detail: &str) -> Finding {
    Finding {
        promise,
        state: State::Kept,
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

fn end(ended: &Ended) -> String {
    format!(
        "{:?} {}",
        ended.exit,
        String::from_utf8_lossy(&ended.stderr).trim()
    )
}
