//! Starts one program: fork, descriptors, limits, privileges, exec.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::stat::Mode;
use nix::unistd::{ForkResult, Pid, fork, pipe2};
use seccompiler::BpfProgram;

use super::super::protocol::{Failure, LaunchOrder, Step};
use super::super::spec::{Exit, Limits, Stdio, TerminalSize};
use super::filter;

/// What holds for every program started in the cell.
pub struct Rules {
    limits: Vec<(Resource, u64)>,
    filters: Vec<BpfProgram>,
    /// How readily the kernel kills process 1 when memory is short, and the file that says so; see [`Rules::fork`].
    score: Option<(File, String)>,
}

/// A started program.
pub struct Started {
    pub pid: Pid,
    /// Write end of its standard input; the master side of its terminal when it has one.
    pub input: Option<OwnedFd>,
    /// Read end of its standard output, or the master side of its terminal.
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
    /// The program's side of its terminal, held open so that the terminal does not hang up while the program has
    /// closed it for a moment.
    pub slave: Option<OwnedFd>,
}

/// Why nothing was started: the candidate's doing, or ours.
pub enum NotStarted {
    Theirs(Exit),
    Ours(Failure),
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        NotStarted::Ours(failure)
    }
}

impl Rules {
    /// `confined`: the cell has a user namespace of its own, so its processes can be counted by user. `by_process`: no
    /// control group limits memory, so every process gets a bound on its own address space.
    pub fn new(limits: &Limits, confined: bool, by_process: bool) -> Result<Self, Failure> {
        let mut list = vec![
            (Resource::RLIMIT_NOFILE, limits.open_files),
            (Resource::RLIMIT_FSIZE, limits.file_mib << 20),
            // 1, unlike 0, also stops the kernel from feeding a core to a program of the host's.
            (Resource::RLIMIT_CORE, 1),
        ];
        if confined {
            // Process 1 is counted too.
            list.push((Resource::RLIMIT_NPROC, limits.pids + 1));
        }
        if by_process {
            // Threads and allocators reserve far more than they use; resident memory is watched beside this.
            list.push((Resource::RLIMIT_AS, limits.memory_mib << 22));
        }
        // The file belongs to us only as long as we are dumpable; the descriptor stays good afterwards.
        nix::sys::prctl::set_dumpable(true).step("prepare the out-of-memory score")?;
        let path = "/proc/self/oom_score_adj";
        let score = File::options()
            .write(true)
            .open(path)
            .ok()
            .zip(std::fs::read_to_string(path).ok());
        Ok(Rules {
            limits: list,
            filters: filter::programs(by_process)?,
            score,
        })
    }

    /// Starts a program. Without input for a pipe that ends, standard input is `/dev/null`.
    pub fn start(&self, order: &LaunchOrder, has_input: bool) -> Result<Started, NotStarted> {
        let program = Program::new(order)?;
        let (status, status_inside) = pipe2(OFlag::O_CLOEXEC).step("open a pipe")?;
        let streams = match order.stdio {
            Stdio::Terminal(size) => Streams::terminal(size)?,
            Stdio::Pipes => Streams::pipes(has_input)?,
            Stdio::OpenInput => Streams::pipes(true)?,
            // What stands in for it is closed at the last moment, so that no file of ours takes its number.
            Stdio::NoInput => Streams::pipes(false)?,
        };
        let pid = match self.fork().step("fork")? {
            ForkResult::Parent { child } => child,
            ForkResult::Child => {
                let has_stdin = order.stdio != Stdio::NoInput;
                let Err((step, errno)) = self.become_program(&program, &streams, has_stdin);
                let message = [&(errno as i32).to_le_bytes(), step.as_bytes()].concat();
                // When even this fails, the runner sees exit status 127 of a program that said nothing.
                let _ = File::from(status_inside).write_all(&message);
                // SAFETY: ends the forked child without running destructors that belong to process 1.
                unsafe { libc::_exit(127) }
            }
        };
        drop(status_inside);
        let started = streams.outside(pid);
        let mut message = Vec::new();
        File::from(status)
            .read_to_end(&mut message)
            .step("read from a pipe")?;
        match message.split_first_chunk::<4>() {
            None => Ok(started),
            Some((errno, step)) => {
                let errno = i32::from_le_bytes(*errno);
                let failure = Failure {
                    step: String::from_utf8_lossy(step).into_owned(),
                    errno,
                };
                Err(if is_theirs(&failure) {
                    NotStarted::Theirs(Exit::NotStarted(failure.to_string()))
                } else {
                    NotStarted::Ours(failure)
                })
            }
        }
    }

    /// Forks so that the kernel, short of memory, kills the child rather than process 1. The score is inherited, and
    /// process 1 cannot write that of a child once it has hidden itself, so it takes the child's score for a moment.
    fn fork(&self) -> nix::Result<ForkResult> {
        // The score is only a preference: when it cannot be set the limits still hold.
        if let Some((file, _)) = &self.score {
            let _ = (&mut &*file).write_all(b"1000");
        }
        // SAFETY: this process has one thread.
        let forked = unsafe { fork() };
        if let (Some((file, own)), false) = (&self.score, matches!(forked, Ok(ForkResult::Child))) {
            let _ = (&mut &*file).write_all(own.as_bytes());
        }
        forked
    }

    /// Turns the forked child into the program; returns only what stopped it.
    fn become_program(
        &self,
        program: &Program,
        streams: &Streams,
        has_stdin: bool,
    ) -> Result<std::convert::Infallible, (String, Errno)> {
        let named = |step: &'static str| move |errno| (step.to_string(), errno);
        nix::unistd::setsid().map_err(named("start a session"))?;
        streams
            .install()
            .map_err(named("connect standard input and output"))?;
        // SAFETY: marks descriptors to be closed by exec; none is closed while it is in use.
        unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) };
        for number in Signal::iterator() {
            // SAFETY: restores the default action; SIGKILL and SIGSTOP refuse, and have no other.
            let _ = unsafe { signal(number, SigHandler::SigDfl) };
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
            .map_err(named("unblock signals"))?;
        nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
        // Process 1 may come before everybody else; a candidate does not.
        // SAFETY: plain system calls on this process; giving up priority is allowed to everybody.
        unsafe {
            if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
                libc::setpriority(libc::PRIO_PROCESS, 0, 0);
            }
        }
        nix::unistd::chdir(program.cwd.as_c_str()).map_err(|errno| {
            (
                format!("{STEP_CHDIR} {}", program.cwd.to_string_lossy()),
                errno,
            )
        })?;
        for (resource, value) in &self.limits {
            let (_, most) = getrlimit(*resource).map_err(named("read limits"))?;
            let value = (*value).min(most);
            setrlimit(*resource, value, value).map_err(named("set limits"))?;
        }
        drop_capabilities().map_err(named("drop capabilities"))?;
        nix::sys::prctl::set_no_new_privs().map_err(named("give up new privileges"))?;
        if !has_stdin {
            nix::unistd::close(0).map_err(named("close standard input"))?;
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter)
                .map_err(|error| (format!("filter system calls: {error}"), Errno::last()))?;
        }
        nix::unistd::execve(&program.argv[0], &program.argv, &program.env).map_err(|errno| {
            (
                format!("{STEP_EXEC} {}", program.argv[0].to_string_lossy()),
                errno,
            )
        })
    }
}

const STEP_EXEC: &str = "execute";
const STEP_CHDIR: &str = "enter";

/// Whether a launch failed for a reason that the candidate's files can cause.
fn is_theirs(failure: &Failure) -> bool {
    let about_files = failure.step.starts_with(STEP_EXEC) || failure.step.starts_with(STEP_CHDIR);
    about_files
        && matches!(
            failure.errno,
            libc::ENOENT
                | libc::EACCES
                | libc::ENOEXEC
                | libc::ENOTDIR
                | libc::EISDIR
                | libc::ELOOP
                | libc::ENAMETOOLONG
                | libc::E2BIG
                | libc::EPERM
                | libc::EINVAL
                | libc::ELIBBAD
                | libc::ETXTBSY
        )
}

/// The strings of a launch, ready for exec.
struct Program {
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
}

impl Program {
    fn new(order: &LaunchOrder) -> Result<Self, Failure> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| Failure {
                step: format!("launch with {text:?}"),
                errno: libc::EINVAL,
            })
        };
        if order.argv.is_empty() {
            return Err(Failure {
                step: "launch without a program".into(),
                errno: libc::EINVAL,
            });
        }
        Ok(Program {
            argv: order
                .argv
                .iter()
                .map(|a| text(a))
                .collect::<Result<_, _>>()?,
            env: order
                .env
                .iter()
                .map(|(name, value)| text(&format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
            cwd: text(&order.cwd)?,
        })
    }
}

/// Both ends of a program's standard streams.
enum Streams {
    Pipes {
        stdin: (Option<OwnedFd>, OwnedFd),
        stdout: (OwnedFd, OwnedFd),
        stderr: (OwnedFd, OwnedFd),
    },
    Terminal {
        master: OwnedFd,
        slave: OwnedFd,
    },
}

impl Streams {
    fn pipes(has_input: bool) -> Result<Self, Failure> {
        let stdin = if has_input {
            let (inside, outside) = pipe2(OFlag::O_CLOEXEC).step("open a pipe")?;
            (Some(outside), inside)
        } else {
            (
                None,
                open(
                    "/dev/null",
                    OFlag::O_RDONLY | OFlag::O_CLOEXEC,
                    Mode::empty(),
                )
                .step("open /dev/null")?,
            )
        };
        let stdout = pipe2(OFlag::O_CLOEXEC).step("open a pipe")?;
        let stderr = pipe2(OFlag::O_CLOEXEC).step("open a pipe")?;
        Ok(Streams::Pipes {
            stdin,
            stdout,
            stderr,
        })
    }

    fn terminal(size: TerminalSize) -> Result<Self, Failure> {
        let pty = nix::pty::openpty(&winsize(size), None).step("open a terminal")?;
        Ok(Streams::Terminal {
            master: pty.master,
            slave: pty.slave,
        })
    }

    /// In the child: makes the inner ends descriptors 0, 1 and 2.
    fn install(&self) -> nix::Result<()> {
        let (stdin, stdout, stderr) = match self {
            Streams::Pipes {
                stdin,
                stdout,
                stderr,
            } => (stdin.1.as_fd(), stdout.1.as_fd(), stderr.1.as_fd()),
            Streams::Terminal { slave, .. } => {
                // SAFETY: plain ioctl on an open descriptor; the session has no terminal yet.
                Errno::result(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) })?;
                (slave.as_fd(), slave.as_fd(), slave.as_fd())
            }
        };
        nix::unistd::dup2_stdin(stdin)?;
        nix::unistd::dup2_stdout(stdout)?;
        nix::unistd::dup2_stderr(stderr)
    }

    /// In process 1: keeps the outer ends and closes the inner ones.
    fn outside(self, pid: Pid) -> Started {
        match self {
            Streams::Pipes {
                stdin,
                stdout,
                stderr,
            } => Started {
                pid,
                input: stdin.0,
                stdout: stdout.0,
                stderr: Some(stderr.0),
                slave: None,
            },
            Streams::Terminal { master, slave } => {
                let input = master.try_clone().ok();
                Started {
                    pid,
                    input,
                    stdout: master,
                    stderr: None,
                    slave: Some(slave),
                }
            }
        }
    }
}

/// Tells a terminal its size; the kernel sends SIGWINCH to what runs in it.
pub fn resize(terminal: &impl AsFd, size: TerminalSize) {
    // SAFETY: the argument outlives the call. It cannot fail on the master side of a terminal.
    unsafe {
        libc::ioctl(
            terminal.as_fd().as_raw_fd(),
            libc::TIOCSWINSZ,
            &winsize(size),
        )
    };
}

fn winsize(size: TerminalSize) -> nix::pty::Winsize {
    nix::pty::Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn drop_capabilities() -> nix::Result<()> {
    for capability in 0..64 {
        // SAFETY: plain prctl. Numbers that the kernel does not know, and cells that have no right to drop because they
        // have no capabilities, answer with an error that changes nothing.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let none = [0u32; 6];
    // SAFETY: header and data have the layout of version 3 (two sets of three words).
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &header, &none) }).map(drop)
}
