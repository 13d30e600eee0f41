//! What a sandbox promises, checked on both by doing it. Docker's half runs with `PIPELINE_TEST_DOCKER=1`.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use doc2harness::adapters::sandbox::probe::{self, State};
use doc2harness::adapters::sandbox::{
    Cell, CellSpec, Docker, DockerConfig, Ended, Exit, Launch, Limits, Mount, Namespaces, Sandbox,
    SandboxError, Terminal, TerminalEvent, TerminalSize,
};
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 8400;
const PIPELINE: &str = env!("CARGO_BIN_EXE_pipeline");

/// A sandbox and host folders for one cell.
struct Place {
    sandbox: Box<dyn Sandbox>,
    host: TempDir,
    limits: Limits,
}

impl Place {
    fn new(sandbox: Box<dyn Sandbox>) -> Self {
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

/// Keeps a promise on the sandbox that needs no daemon.
fn on_namespaces<F: Future<Output = ()>>(promise: impl FnOnce(Place) -> F) {
    block_on(async { promise(Place::new(Box::new(Namespaces::new(PIPELINE)))).await });
}

/// Keeps a promise on Docker, when asked to; then a missing daemon is a failure.
fn on_docker<F: Future<Output = ()>>(promise: impl FnOnce(Place) -> F) {
    if std::env::var_os("PIPELINE_TEST_DOCKER").is_none_or(|asked| asked != "1") {
        static SAID: Once = Once::new();
        // Not by `eprintln!`, which the test runner hides when tests pass.
        SAID.call_once(|| {
            drop(writeln!(
                std::io::stderr(),
                "Docker tests were not asked to run; set PIPELINE_TEST_DOCKER=1"
            ))
        });
        return;
    }
    block_on(async {
        let docker = Docker::connect(docker_config())
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        promise(Place::new(Box::new(docker))).await
    });
}

fn docker_config() -> DockerConfig {
    DockerConfig {
        program: PIPELINE.into(),
        ..DockerConfig::default()
    }
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        mod namespaces {
            $(#[test] fn $promise() { super::on_namespaces(super::$promise); })*
        }
        mod docker {
            $(#[test] fn $promise() { super::on_docker(super::$promise); })*
        }
    };
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
        "ls -d {} {} 2>/dev/null; ls /tmp; ls /proc | grep -c '^[0-9]'; ls /home; ls /root 2>/dev/null; ls -d /var/run/docker.sock /run/docker.sock 2>/dev/null; cat /proc/1/environ /.doc2harness/pipeline; ls /.doc2harness/run",
        place.host.path().display(),
        project.display()
    );
    let ended = place.run(sh(&script)).await;
    // Process 1, the shell, ls and grep.
    assert_eq!(text(&ended.stdout), "4\nuser\n");
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
        let started = Instant::now();
        let ended = cell
            .launch(Launch {
                time_limit: Duration::from_millis(400),
                ..sh(script)
            })
            .await
            .unwrap();
        assert_eq!(ended.exit, Exit::TimedOut, "{script}");
        assert_eq!(ended.stdout, b"started\n", "{script}");
        assert!(
            ended.duration >= Duration::from_millis(400),
            "{script}: {:?}",
            ended.duration
        );
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{script}: {:?}",
            started.elapsed()
        );
        assert_eq!(others(&mut cell).await, 0, "{script}");
    }
    cell.close().await.unwrap();
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
    assert!(ended.duration < Duration::from_secs(10));
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

async fn left_running_is_found_by_the_next_launch(place: Place) {
    let mut cell = place.open().await;
    let ended = cell
        .launch(Launch {
            leave_running: true,
            ..sh("sleep 600 & exit 3")
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
    let ended = place
        .run(Launch {
            time_limit: Duration::from_millis(500),
            ..sh("yes")
        })
        .await;
    assert_eq!(
        (ended.exit, ended.stdout.len(), ended.stdout_cut),
        (Exit::TimedOut, 64 * 1024, true)
    );
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
    let ended = cell
        .launch(Launch {
            time_limit: Duration::from_secs(2),
            ..python(script)
        })
        .await
        .unwrap();
    assert_eq!(
        (ended.exit, text(&ended.stdout)),
        (Exit::TimedOut, "True 11\n")
    );
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

const SIZE: TerminalSize = TerminalSize {
    columns: 100,
    rows: 30,
};

/// Reads what a terminal shows until it has shown `wanted`.
async fn shown(terminal: &mut Terminal<'_>, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        match terminal.next().await.unwrap() {
            TerminalEvent::Output(bytes) => seen.push_str(text(&bytes)),
            TerminalEvent::Ended(ended) => panic!("ended without {wanted:?}: {seen:?} {ended:?}"),
        }
    }
    seen
}

async fn terminal_has_the_size_asked_for(place: Place) {
    let mut cell = place.open().await;
    let script = "import os, sys
print(os.get_terminal_size(), [os.isatty(i) for i in range(3)], os.ttyname(0), os.open('/dev/tty', os.O_RDWR) > 2)";
    let ended = cell
        .terminal(python(script), SIZE)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(ended.exit, Exit::Code(0));
    assert_eq!(
        text(&ended.stdout),
        "os.terminal_size(columns=100, lines=30) [True, True, True] /dev/pts/0 True\r\n"
    );
    cell.close().await.unwrap();
}

async fn terminal_echoes_what_is_typed(place: Place) {
    let mut cell = place.open().await;
    let mut terminal = cell
        .terminal(
            Launch {
                stdin: b"first\r".into(),
                ..sh("cat")
            },
            SIZE,
        )
        .await
        .unwrap();
    assert_eq!(
        shown(&mut terminal, "first\r\nfirst\r\n").await,
        "first\r\nfirst\r\n"
    );
    terminal.write("gr\u{fc}n\r".as_bytes()).await.unwrap();
    assert_eq!(
        shown(&mut terminal, "n\r\ngr\u{fc}n\r\n").await,
        "gr\u{fc}n\r\ngr\u{fc}n\r\n"
    );
    // Longer than a terminal takes at once, and read in raw mode.
    terminal.write(b"\x04").await.unwrap();
    assert_eq!(terminal.wait().await.unwrap().exit, Exit::Code(0));
    let raw = "import sys, tty; tty.setraw(0); print('go', flush=True); print(len(sys.stdin.buffer.read(50000)))";
    let mut terminal = cell.terminal(python(raw), SIZE).await.unwrap();
    shown(&mut terminal, "go").await;
    terminal.write(&[b'x'; 50_000]).await.unwrap();
    shown(&mut terminal, "50000").await;
    drop(terminal);
    cell.close().await.unwrap();
}

async fn terminal_can_be_resized(place: Place) {
    let mut cell = place.open().await;
    let script = "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut terminal = cell.terminal(sh(script), SIZE).await.unwrap();
    shown(&mut terminal, "ready").await;
    terminal
        .resize(TerminalSize {
            columns: 120,
            rows: 40,
        })
        .await
        .unwrap();
    let ended = terminal.wait().await.unwrap();
    assert_eq!(
        (ended.exit, text(&ended.stdout)),
        (Exit::Code(4), "\r\n40 120\r\n".trim_start())
    );
    cell.close().await.unwrap();
}

async fn control_characters_are_signals(place: Place) {
    let mut cell = place.open().await;
    let script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
    let mut terminal = cell.terminal(sh(script), SIZE).await.unwrap();
    shown(&mut terminal, "ready").await;
    terminal.write(b"\x03").await.unwrap();
    let ended = terminal.wait().await.unwrap();
    assert_eq!(ended.exit, Exit::Code(9));
    assert!(text(&ended.stdout).contains("caught"), "{ended:?}");
    cell.close().await.unwrap();
}

async fn terminal_flood_is_cut(mut place: Place) {
    place.limits.output_kib = 64;
    let mut cell = place.open().await;
    let flood = Launch {
        time_limit: Duration::from_millis(600),
        ..sh("yes")
    };
    let ended = cell
        .terminal(flood, SIZE)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (ended.exit, ended.stdout.len(), ended.stdout_cut),
        (Exit::TimedOut, 64 * 1024, true)
    );
    cell.close().await.unwrap();
}

async fn terminal_obeys_kill_and_drop(place: Place) {
    let mut cell = place.open().await;
    let mut terminal = cell
        .terminal(sh("trap '' TERM; echo up; while :; do sleep 1; done"), SIZE)
        .await
        .unwrap();
    shown(&mut terminal, "up").await;
    terminal.kill().await.unwrap();
    assert_eq!(
        terminal.wait().await.unwrap().exit,
        Exit::Signal(libc::SIGKILL)
    );
    drop(cell.terminal(sh("sleep 600"), SIZE).await.unwrap());
    assert_eq!(others(&mut cell).await, 0);
    cell.close().await.unwrap();
}

/// Not a test: what [`killed_runner_leaves_nothing`] runs in a process of its own, and kills.
#[test]
#[ignore = "run by another test"]
fn runner_to_be_killed() {
    let Some(folder) = std::env::var_os("PIPELINE_TEST_FOLDER") else {
        return;
    };
    let run = |place: Place| async move {
        let mut spec = place.spec();
        spec.mounts = vec![Mount::writable(folder, "/workspace")];
        let mut cell = place.sandbox.open(spec).await.unwrap();
        let script = "setsid sleep 600 & echo > started; exec sleep 600";
        cell.launch(sh(script)).await.unwrap();
    };
    match std::env::var("PIPELINE_TEST_SANDBOX").unwrap().as_str() {
        "docker" => on_docker(run),
        _ => on_namespaces(run),
    }
}

async fn killed_runner_leaves_nothing(place: Place) {
    let workspace = place.host("workspace");
    let mut runner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::runner_to_be_killed", "--ignored"])
        .env("PIPELINE_TEST_FOLDER", &workspace)
        .env("PIPELINE_TEST_SANDBOX", place.sandbox.name())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the program has started", || {
        workspace.join("started").exists()
    })
    .await;
    let inside = processes_that_see(&workspace);
    assert!(inside.len() >= 3, "process 1 and two programs: {inside:?}");
    let groups = control_groups_of(&inside);
    runner.kill().unwrap();
    runner.wait().unwrap();
    wait_until("its processes are gone", || {
        processes_that_see(&workspace).is_empty()
    })
    .await;
    match place.sandbox.name() {
        "docker" => docker_is_clean(&*place.sandbox, runner.id()).await,
        _ => {
            wait_until("its control groups are gone", || {
                groups.iter().all(|group| !group.exists())
            })
            .await;
            // What a killed process outside the cell would have left.
            if let Some(group) = groups.first() {
                std::fs::create_dir(group).unwrap();
                assert!(place.sandbox.sweep().await.unwrap().cgroups >= 1);
                assert!(!group.exists());
            }
        }
    }
}

async fn docker_is_clean(sandbox: &dyn Sandbox, runner: u32) {
    use bollard::query_parameters::{CreateContainerOptions, ListContainersOptionsBuilder};
    let client = bollard::Docker::connect_with_unix_defaults().unwrap();
    let labelled = |label: String| {
        let filters = std::collections::HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let client = client.clone();
        async move { client.list_containers(Some(options)).await.unwrap() }
    };
    for _ in 0..200 {
        if labelled(format!("doc2harness.pid={runner}"))
            .await
            .is_empty()
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(labelled(format!("doc2harness.pid={runner}")).await, []);
    // Its folder is left, and says who made it. A container that its daemon forgot is left too.
    let folder = folders_of(runner)
        .pop()
        .expect("the folder of a killed runner");
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let dead = name
        .strip_prefix("doc2harness-")
        .unwrap()
        .rsplit_once('-')
        .unwrap()
        .0
        .to_owned();
    let alive = folders_of(std::process::id())
        .pop()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let alive = alive
        .strip_prefix("doc2harness-")
        .unwrap()
        .rsplit_once('-')
        .unwrap()
        .0
        .to_owned();
    let mut made = Vec::new();
    for maker in [&dead, &alive] {
        let body = bollard::models::ContainerCreateBody {
            image: Some(DockerConfig::default().image),
            cmd: Some(vec!["/bin/true".into()]),
            labels: Some([("doc2harness.maker".to_string(), maker.clone())].into()),
            ..Default::default()
        };
        made.push(
            client
                .create_container(None::<CreateContainerOptions>, body)
                .await
                .unwrap()
                .id,
        );
    }
    let swept = sandbox.sweep().await.unwrap();
    assert!(swept.containers >= 1 && swept.folders >= 1, "{swept:?}");
    assert!(!folder.exists());
    assert_eq!(labelled(format!("doc2harness.maker={dead}")).await, []);
    let left = labelled(format!("doc2harness.maker={alive}")).await;
    assert!(
        left.iter()
            .any(|container| container.id.as_ref() == made.last()),
        "a living run's container was swept"
    );
    client.remove_container(&made[1], None).await.unwrap();
}

fn folders_of(pid: u32) -> Vec<PathBuf> {
    let entries = std::env::temp_dir()
        .read_dir()
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let prefix = format!("doc2harness-{pid}-");
    entries
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        })
        .collect()
}

/// Host processes in whose mount table a folder appears.
fn processes_that_see(folder: &Path) -> Vec<u32> {
    let name = folder.to_str().unwrap();
    let pids = Path::new("/proc")
        .read_dir()
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
            .is_ok_and(|mounts| mounts.contains(name))
    })
    .collect()
}

/// The control groups that hold these processes, apart from those that hold ours.
fn control_groups_of(pids: &[u32]) -> Vec<PathBuf> {
    let found = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-name", "doc2harness-*"])
        .output()
        .unwrap();
    let all = String::from_utf8(found.stdout).unwrap();
    let is_theirs = |group: &PathBuf| {
        let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        members
            .lines()
            .any(|line| line.parse().is_ok_and(|pid: u32| pids.contains(&pid)))
    };
    all.lines().map(PathBuf::from).filter(is_theirs).collect()
}

async fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn doctor_finds_promises_kept(place: Place) {
    let findings = match place.sandbox.name() {
        "docker" => probe::docker(docker_config()).await,
        _ => probe::namespaces(&Namespaces::new(PIPELINE)).await,
    };
    let worst = if nix::unistd::geteuid().is_root() {
        vec![State::Kept]
    } else {
        vec![State::Kept, State::Weaker]
    };
    assert!(
        findings
            .iter()
            .all(|finding| worst.contains(&finding.state)),
        "{findings:#?}"
    );
    let promises: Vec<_> = findings.iter().map(|finding| finding.promise).collect();
    for promise in [
        "no network",
        "read-only root",
        "system call filter",
        "memory limit",
        "process limit",
        "time limit",
    ] {
        assert!(promises.contains(&promise), "{promises:?}");
    }
}

#[test]
fn doctor_says_what_to_type_without_docker() {
    let config = DockerConfig {
        socket: Some("/no/such.sock".into()),
        ..docker_config()
    };
    block_on(async {
        let findings = probe::docker(config).await;
        let [daemon] = findings.as_slice() else {
            panic!("{findings:#?}")
        };
        assert_eq!(
            (daemon.promise, daemon.state),
            ("docker daemon", State::Broken)
        );
        assert!(
            daemon.remedy.as_ref().unwrap().contains(".ci/start-docker"),
            "{daemon:?}"
        );
    });
}

/// Not a test: what [`refused_namespaces_say_what_to_type`] runs where no namespace can be made.
#[test]
#[ignore = "run by another test"]
fn doctor_without_namespaces() {
    block_on(async {
        let findings = probe::namespaces(&Namespaces::new(PIPELINE)).await;
        println!("{findings:#?}");
    });
}

#[test]
fn refused_namespaces_say_what_to_type() {
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec {} --exact sandbox::doctor_without_namespaces --ignored --nocapture",
        program.display()
    );
    let output = std::process::Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(
        said.contains("state: Broken") && said.contains("sysctl -w user.max_user_namespaces"),
        "{output:?}"
    );
}

#[test]
fn missing_image_is_said_so() {
    on_docker(|_| async {
        let config = DockerConfig {
            image: "doc2harness-absent:1".into(),
            ..docker_config()
        };
        let error = Docker::connect(config)
            .await
            .err()
            .expect("an image that nobody made");
        assert!(
            matches!(&error, SandboxError::ImageMissing { image } if image == "doc2harness-absent:1"),
            "{error}"
        );
        assert!(error.to_string().contains(".ci/base-image"));
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn image_that_cannot_run_our_program_is_said_so() {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    on_docker(|place| async move {
        // Nothing at all, and a loader that finds no library: the daemon fails to start the one, the other starts and dies.
        for (name, file) in [("empty", None), ("loader", Some(LOADER))] {
            let image = format!("doc2harness-test-{name}:1");
            import_image(&image, file).await;
            let docker = Docker::connect(DockerConfig {
                image: image.clone(),
                ..docker_config()
            })
            .await
            .unwrap();
            let error = docker
                .open(place.spec())
                .await
                .err()
                .expect("a cell was opened");
            assert!(
                matches!(&error, SandboxError::Setup { .. }),
                "{name}: {error:?}"
            );
            if file.is_some() {
                assert!(error.to_string().contains("libgcc_s.so.1"), "{error}");
            }
            let client = bollard::Docker::connect_with_unix_defaults().unwrap();
            let force = bollard::query_parameters::RemoveImageOptionsBuilder::default()
                .force(true)
                .build();
            client
                .remove_image(&image, Some(force), None)
                .await
                .unwrap();
        }
    });
}

/// Makes an image that holds one file of the host, or none.
async fn import_image(image: &str, file: Option<&str>) {
    let mut tar = tar::Builder::new(Vec::new());
    if let Some(file) = file {
        tar.append_path_with_name(Path::new(file).canonicalize().unwrap(), &file[1..])
            .unwrap();
    }
    let options = bollard::query_parameters::CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(image)
        .build();
    let client = bollard::Docker::connect_with_unix_defaults().unwrap();
    let body = bollard::body_full(tar.into_inner().unwrap().into());
    let mut progress = std::pin::pin!(client.create_image(Some(options), Some(body), None));
    while let Some(step) = progress.next().await {
        step.unwrap();
    }
}
