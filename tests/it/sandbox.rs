//! What a sandbox promises, checked on both by doing it. Docker's half runs with `PIPELINE_TEST_DOCKER=1`.

mod doctor;
mod folders;
mod killed;
mod several;
mod terminal;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use doc2harness::adapters::sandbox::{
    Cell, CellSpec, Ended, Exit, Launch, Limits, Mount, Sandbox, SandboxError,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::doctor::doctor_finds_promises_kept;
use self::folders::*;
use self::killed::{dropped_cell_is_killed, killed_runner_leaves_nothing};
use self::several::*;
use self::terminal::*;

use crate::both_sandboxes::{PIPELINE, block_on, docker_config, on_docker, promises};

const PORT: u16 = 8400;

/// A sandbox and host folders for one cell.
struct Place {
    sandbox: Box<dyn Sandbox>,
    host: TempDir,
    limits: Limits,
}

impl From<Box<dyn Sandbox>> for Place {
    fn from(sandbox: Box<dyn Sandbox>) -> Self {
        let host = TempDir::new().unwrap();
        for (folder, file) in [
            ("candidate", "harness.py"),
            ("workspace", "notes.txt"),
            ("outside", "secret.txt"),
            ("home", ".profile"),
        ] {
            let folder = host.path().join(folder);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(file), file).unwrap();
        }
        let place = Place {
            sandbox,
            host,
            limits: Limits::default(),
        };
        for folder in ["workspace", "outside", "home"] {
            let (uid, gid) = place.sandbox.owner();
            std::os::unix::fs::chown(place.host(folder), Some(uid), Some(gid)).unwrap();
        }
        place
    }
}

impl Place {
    fn host(&self, path: &str) -> PathBuf {
        self.host.path().join(path)
    }

    fn spec(&self) -> CellSpec {
        CellSpec {
            label: "test".into(),
            mounts: vec![
                Mount::read_only(self.host("candidate"), "/candidate"),
                Mount::writable(self.host("workspace"), "/workspace"),
                Mount::writable(self.host("outside"), "/outside"),
                Mount::writable(self.host("home"), "/home/user"),
            ],
            folders: Vec::new(),
            limits: self.limits.clone(),
            port: PORT,
        }
    }

    async fn open(&self) -> Cell {
        self.sandbox.open(self.spec()).await.unwrap()
    }

    /// Runs one program in a cell of its own.
    async fn run(&self, launch: Launch) -> Ended {
        let mut cell = self.open().await;
        let ended = cell.launch(launch).await.unwrap();
        cell.close().await.unwrap();
        ended
    }
}

fn launch(argv: &[&str]) -> Launch {
    Launch {
        argv: argv.iter().map(|argument| argument.to_string()).collect(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/workspace".into(),
        stdin: Vec::new(),
        time_limit: Duration::from_secs(30),
        leave_running: false,
    }
}

fn sh(script: &str) -> Launch {
    launch(&["/bin/sh", "-c", script])
}

fn python(script: &str) -> Launch {
    launch(&["/usr/bin/python3", "-c", script])
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

promises! {
    exit_code_is_the_programs_own,
    signal_is_told_from_exit_code,
    output_is_kept_apart,
    stdin_is_fed_and_closed,
    environment_is_exactly_what_was_given,
    identity_is_fixed,
    program_that_cannot_start_is_said_so,
    listener_is_reachable_and_nothing_else,
    only_mounts_can_be_written,
    files_belong_to_the_owner_on_the_host,
    host_cannot_be_seen,
    time_limit_holds,
    nothing_outlives_a_launch,
    left_running_is_found_by_the_next_launch,
    launches_share_state,
    cancelled_launch_is_killed,
    flood_is_cut_and_drained,
    fork_bomb_is_contained,
    memory_hog_is_killed,
    process_one_is_out_of_reach,
    missing_folder_is_our_failure,
    cells_do_not_meet,
    terminal_has_the_size_asked_for,
    terminal_echoes_what_is_typed,
    terminal_can_be_resized,
    control_characters_are_signals,
    terminal_flood_is_cut,
    terminal_obeys_kill_and_drop,
    programs_run_beside_each_other,
    a_program_ends_without_its_neighbour,
    signals_reach_the_process_group,
    standard_input_stays_open_or_is_not_there,
    folders_are_filled_before_and_read_after,
    folders_are_full_at_their_limits,
    folders_stay_where_they_are,
    dropped_cell_is_killed,
    killed_runner_leaves_nothing,
    doctor_finds_promises_kept,
}

async fn exit_code_is_the_programs_own(place: Place) {
    let ended = place.run(sh("exit 42")).await;
    assert_eq!(ended.exit, Exit::Code(42));
    assert!(ended.duration > Duration::ZERO && ended.cpu > Duration::ZERO);
    assert!(!ended.out_of_memory);
    assert_eq!(place.run(sh("exit 137")).await.exit, Exit::Code(137));
}

async fn signal_is_told_from_exit_code(place: Place) {
    assert_eq!(
        place.run(sh("kill -SEGV $$")).await.exit,
        Exit::Signal(libc::SIGSEGV)
    );
    // Not ignored, as it is in Rust programs.
    assert_eq!(
        place.run(sh("kill -PIPE $$")).await.exit,
        Exit::Signal(libc::SIGPIPE)
    );
}

async fn output_is_kept_apart(place: Place) {
    let ended = place.run(sh("echo one; echo two >&2; printf three")).await;
    assert_eq!(
        (text(&ended.stdout), text(&ended.stderr)),
        ("one\nthree", "two\n")
    );
    assert!(!ended.stdout_cut && !ended.stderr_cut);
}

async fn stdin_is_fed_and_closed(place: Place) {
    let bytes = vec![7; 3 << 20];
    let ended = place
        .run(Launch {
            stdin: bytes.clone(),
            ..sh("wc -c")
        })
        .await;
    assert_eq!(text(&ended.stdout).trim(), bytes.len().to_string());
    let ended = place
        .run(Launch {
            stdin: bytes,
            ..sh("head -c 3 | wc -c; exit 5")
        })
        .await;
    assert_eq!(
        (ended.exit, text(&ended.stdout).trim()),
        (Exit::Code(5), "3")
    );
    assert_eq!(place.run(sh("wc -c")).await.stdout, b"0\n");
}

async fn environment_is_exactly_what_was_given(place: Place) {
    let env = vec![("A".into(), "1 2".into()), ("EMPTY".into(), String::new())];
    let ended = place
        .run(Launch {
            env,
            ..launch(&["/usr/bin/env"])
        })
        .await;
    assert_eq!(text(&ended.stdout), "A=1 2\nEMPTY=\n");
}

async fn identity_is_fixed(place: Place) {
    let ended = place
        .run(Launch {
            cwd: "/outside".into(),
            ..sh("id -u; id -g; hostname; pwd; umask; date +%Z; grep CapEff /proc/self/status")
        })
        .await;
    let inside = place.inside_ids();
    assert_eq!(
        text(&ended.stdout),
        format!(
            "{}\n{}\nsandbox\n/outside\n0022\nUTC\nCapEff:\t0000000000000000\n",
            inside.0, inside.1
        )
    );
}

impl Place {
    /// The user and group that a candidate sees itself as.
    fn inside_ids(&self) -> (u32, u32) {
        match self.sandbox.name() {
            "docker" => self.sandbox.owner(),
            _ => (1000, 1000),
        }
    }
}

async fn program_that_cannot_start_is_said_so(place: Place) {
    let ended = place.run(launch(&["/candidate/absent"])).await;
    assert_eq!(
        ended.exit,
        Exit::NotStarted(
            "execute /candidate/absent: No such file or directory (os error 2)".into()
        )
    );
    let ended = place.run(launch(&["/candidate/harness.py"])).await;
    assert!(
        matches!(&ended.exit, Exit::NotStarted(why) if why.contains("Permission denied")),
        "{:?}",
        ended.exit
    );
    let ended = place
        .run(Launch {
            cwd: "/workspace/gone".into(),
            ..sh("true")
        })
        .await;
    assert!(
        matches!(&ended.exit, Exit::NotStarted(why) if why.starts_with("enter /workspace/gone")),
        "{:?}",
        ended.exit
    );
}

const CALL: &str = r#"
import socket, sys
def call(address, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(3)
    try:
        s.connect(address); s.sendall(b"ping"); return s.recv(9).decode()
    except OSError as error:
        return type(error).__name__ + " " + str(error.errno)
"#;

async fn listener_is_reachable_and_nothing_else(place: Place) {
    let on_host = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let host_port = on_host.local_addr().unwrap().port();
    let mut cell = place.open().await;
    let listener = tokio::net::TcpListener::from_std(cell.take_listener()).unwrap();
    let mock = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).await.unwrap();
        stream.write_all(b"pong").await.unwrap();
        request
    });
    let script = format!(
        "{CALL}
print(call(('127.0.0.1', {PORT})))
print(call(('127.0.0.1', {host_port})))
print(call(('8.8.8.8', 53)))
print(sorted(name for _, name in socket.if_nameindex()))"
    );
    let ended = cell.launch(python(&script)).await.unwrap();
    assert_eq!(
        text(&ended.stdout),
        "pong\nConnectionRefusedError 111\nOSError 101\n['lo']\n",
        "{}",
        text(&ended.stderr)
    );
    assert_eq!(&mock.await.unwrap(), b"ping");
    cell.close().await.unwrap();
}

async fn only_mounts_can_be_written(place: Place) {
    let script = "for f in /x /usr/x /etc/x /candidate/x /candidate/harness.py /dev/x /home/x /proc/sys/kernel/hostname \
                  /workspace/x /outside/x /home/user/x /tmp/x /dev/shm/x; do \
                  (echo x > $f) 2>/dev/null && echo $f; done; true";
    let ended = place.run(sh(script)).await;
    assert_eq!(
        text(&ended.stdout),
        "/workspace/x\n/outside/x\n/home/user/x\n/tmp/x\n/dev/shm/x\n"
    );
}

async fn files_belong_to_the_owner_on_the_host(place: Place) {
    place
        .run(sh(
            "mkdir deep && echo new > deep/file && chmod 640 deep/file && ln -s deep/file link",
        ))
        .await;
    let file = std::fs::metadata(place.host("workspace/link")).unwrap();
    assert_eq!((file.uid(), file.gid()), place.sandbox.owner());
    assert_eq!(file.permissions().mode() & 0o777, 0o640);
    assert_eq!(
        std::fs::read_to_string(place.host("workspace/deep/file")).unwrap(),
        "new\n"
    );
}

async fn host_cannot_be_seen(place: Place) {
    // The test's own folder is below /tmp on the host, the project wherever it is.
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = format!(
        "ls -d {} {} 2>/dev/null; ls /tmp; set -- /proc/[0-9]*; echo $#; ls /home; ls /root 2>/dev/null; ls -d /var/run/docker.sock /run/docker.sock 2>/dev/null; cat /proc/1/environ /.doc2harness/pipeline; ls /.doc2harness/run",
        place.host.path().display(),
        project.display()
    );
    let ended = place.run(sh(&script)).await;
    // Process 1 and the shell.
    assert_eq!(text(&ended.stdout), "2\nuser\n");
}

async fn time_limit_holds(place: Place) {
    let mut cell = place.open().await;
    for script in [
        "trap '' TERM INT HUP; echo started; while :; do sleep 1; done",
        "echo started; (setsid sh -c 'trap \"\" TERM; sleep 600' & ) ; exec sleep 600",
        "echo started; while :; do :; done",
        // Its reader is a process that left the group and holds the pipe.
        "echo started; setsid sleep 600 & wait",
    ] {
        let (limit, ended) = stopped(&mut cell, sh(script), |ended| !ended.stdout.is_empty()).await;
        assert_eq!(ended.stdout, b"started\n", "{script}");
        assert!(ended.duration >= limit, "{script}: {:?}", ended.duration);
        assert_eq!(others(&mut cell).await, 0, "{script}");
    }
    cell.close().await.unwrap();
}

/// How long after its time limit a launch may end on a machine that does much else. What is launched here would go on for
/// minutes.
const LATE: Duration = Duration::from_secs(20);

/// Runs a program that does not end by itself into its time limit, which is longer the next time when the machine was too
/// busy for the program to get as far as it should. Returns the limit, and how it ended.
async fn stopped(
    cell: &mut Cell,
    program: Launch,
    got_there: impl Fn(&Ended) -> bool,
) -> (Duration, Ended) {
    for limit in [400, 2_000, 20_000].map(Duration::from_millis) {
        let launch = Launch {
            time_limit: limit,
            ..program.clone()
        };
        let started = Instant::now();
        let ended = cell.launch(launch).await.unwrap();
        assert_eq!(ended.exit, Exit::TimedOut, "{:?}", program.argv);
        let took = started.elapsed();
        assert!(took < limit + LATE, "{:?}: {took:?}", program.argv);
        if got_there(&ended) {
            return (limit, ended);
        }
    }
    panic!("not even in the last limit: {:?}", program.argv);
}

/// How many processes live in the cell besides process 1 and the one that counts.
async fn others(cell: &mut Cell) -> usize {
    let script = "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]) - 2)";
    text(&cell.launch(python(script)).await.unwrap().stdout)
        .trim()
        .parse()
        .unwrap()
}

async fn nothing_outlives_a_launch(place: Place) {
    let mut cell = place.open().await;
    let script = "(setsid sh -c 'sleep 600' & ) ; nohup sleep 600 & exit 3";
    let ended = cell.launch(sh(script)).await.unwrap();
    assert_eq!(ended.exit, Exit::Code(3));
    assert!(
        ended.duration < LATE,
        "it was waited for: {:?}",
        ended.duration
    );
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

async fn left_running_is_found_by_the_next_launch(place: Place) {
    let mut cell = place.open().await;
    let ended = cell
        .launch(Launch {
            leave_running: true,
            // It ends when the other has become what is looked for.
            ..sh("sleep 600 & until grep -q '^sleep' /proc/$!/cmdline; do :; done; exit 3")
        })
        .await
        .unwrap();
    assert_eq!(ended.exit, Exit::Code(3));
    let ended = cell
        .launch(sh("grep -l '^sleep' /proc/[0-9]*/cmdline | wc -l"))
        .await
        .unwrap();
    assert_eq!(text(&ended.stdout), "1\n");
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

async fn launches_share_state(place: Place) {
    let mut cell = place.open().await;
    cell.launch(sh("echo kept > /tmp/state; echo too > state"))
        .await
        .unwrap();
    let ended = cell.launch(sh("cat /tmp/state state")).await.unwrap();
    assert_eq!(text(&ended.stdout), "kept\ntoo\n");
    cell.close().await.unwrap();
    let ended = place.run(sh("cat state; cat /tmp/state")).await;
    assert_eq!((text(&ended.stdout), ended.exit), ("too\n", Exit::Code(1)));
}

async fn cancelled_launch_is_killed(place: Place) {
    let mut cell = place.open().await;
    let cancelled =
        tokio::time::timeout(Duration::from_millis(300), cell.launch(sh("sleep 600"))).await;
    assert!(cancelled.is_err());
    let ended = cell.launch(sh("echo next")).await.unwrap();
    assert_eq!((ended.exit, text(&ended.stdout)), (Exit::Code(0), "next\n"));
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

async fn flood_is_cut_and_drained(mut place: Place) {
    place.limits.output_kib = 64;
    let script = "import sys\nfor i in range(200): sys.stdout.write('x' * 100000)\nsys.stderr.write('end')\nsys.exit(7)";
    let ended = place.run(python(script)).await;
    assert_eq!(
        (ended.exit, ended.stdout.len(), ended.stdout_cut),
        (Exit::Code(7), 64 * 1024, true)
    );
    assert_eq!(
        (ended.stderr.as_slice(), ended.stderr_cut),
        (b"end".as_slice(), false)
    );
    let mut cell = place.open().await;
    let (_, ended) = stopped(&mut cell, sh("yes"), |ended| ended.stdout_cut).await;
    assert_eq!(ended.stdout.len(), 64 * 1024);
    cell.close().await.unwrap();
}

async fn fork_bomb_is_contained(mut place: Place) {
    place.limits.pids = 40;
    let mut cell = place.open().await;
    let script = "import os, time
n = 0
while True:
    try:
        if os.fork() == 0: time.sleep(600)
        n += 1
    except OSError as error:
        print(n < 40, error.errno, flush=True); break
time.sleep(600)";
    let (_, ended) = stopped(&mut cell, python(script), |ended| !ended.stdout.is_empty()).await;
    assert_eq!(text(&ended.stdout), "True 11\n");
    let bomb = "b() { b | b & }; b; sleep 600";
    let ended = cell
        .launch(Launch {
            time_limit: Duration::from_secs(1),
            ..sh(bomb)
        })
        .await
        .unwrap();
    assert!(
        matches!(ended.exit, Exit::TimedOut | Exit::Code(_)),
        "{:?}",
        ended.exit
    );
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

async fn memory_hog_is_killed(mut place: Place) {
    place.limits.memory_mib = 100;
    let mut cell = place.open().await;
    // Page by page, as a leak does, in a child of the program.
    let script = "import subprocess, sys
subprocess.run([sys.executable, '-c', '''
import time
kept = []
while True:
    kept.append(bytearray(1 << 20)); time.sleep(0.002)
'''])
print('survived')";
    let ended = cell.launch(python(script)).await.unwrap();
    assert!(ended.out_of_memory, "{ended:?}");
    let ended = cell.launch(sh("echo alive")).await.unwrap();
    assert_eq!(
        (ended.out_of_memory, text(&ended.stdout)),
        (false, "alive\n")
    );
    cell.close().await.unwrap();
}

async fn process_one_is_out_of_reach(place: Place) {
    let script = "import ctypes, os
def tried(action):
    try: action(); return 'done'
    except OSError as error: return error.errno
libc = ctypes.CDLL(None, use_errno=True)
def ptrace():
    if libc.ptrace(16, 1, 0, 0) < 0: raise OSError(ctypes.get_errno(), '')
def unshare():
    if libc.unshare(0x10000000) < 0: raise OSError(ctypes.get_errno(), '')
print(tried(lambda: os.listdir('/proc/1/fd')), tried(lambda: open('/proc/1/mem')), tried(ptrace), tried(unshare))
os.kill(1, 9); os.kill(1, 19); print('still here')";
    let ended = place.run(python(script)).await;
    assert_eq!(
        text(&ended.stdout),
        "13 13 1 1\nstill here\n",
        "{}",
        text(&ended.stderr)
    );
}

async fn missing_folder_is_our_failure(place: Place) {
    let mut spec = place.spec();
    spec.mounts
        .push(Mount::read_only("/no/such/folder", "/folder"));
    let error = place
        .sandbox
        .open(spec)
        .await
        .err()
        .expect("a cell was opened");
    assert!(
        matches!(&error, SandboxError::Setup { why, .. } if why.contains("/no/such/folder")),
        "{error}"
    );
    assert!(!error.is_worth_a_retry());
}

async fn cells_do_not_meet(place: Place) {
    let (mut one, mut two) = tokio::join!(place.open(), place.open());
    let writes = one
        .launch(sh("echo one > /tmp/note; kill -9 -1; sleep 5"))
        .await
        .unwrap();
    assert_eq!(writes.exit, Exit::Code(0));
    let looks = two.launch(sh("ls /tmp; echo alive")).await.unwrap();
    assert_eq!(text(&looks.stdout), "alive\n");
    one.close().await.unwrap();
    two.close().await.unwrap();
}
