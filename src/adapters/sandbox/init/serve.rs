//! The life of process 1 once the cell is set up: one loop that listens to the runner, to the running program and to
//! the clock.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::super::protocol::{self, Failure, FromInit, LaunchOrder, Report, Step, ToInit};
use super::super::spec::{Exit, LaunchId, Limits, Stdio};
use super::child::{self, NotStarted, Rules};
use super::memory::{TICK, Watch};
use super::output::Output;

/// Terminal output waits inside its program while the runner has this much left to read.
const UNREAD_MOST: usize = 1 << 20;
/// How much output of programs that are left running is still picked up when a launch ends, in reads.
const LAST_READS: usize = 64;

/// Process 1 of a cell that is set up.
pub struct Server {
    rules: Rules,
    watch: Watch,
    output_room: usize,
    children: SignalFd,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Launches under way, in the order in which they began.
    running: Vec<Running>,
}

/// A launch that is under way.
struct Running {
    id: LaunchId,
    pid: Pid,
    input: Option<Input>,
    stdout: Output,
    stderr: Output,
    /// Held open, see [`child::Started`]. Its presence says that the launch has a terminal.
    slave: Option<OwnedFd>,
    started: Instant,
    deadline: Instant,
    next_tick: Instant,
    leave_running: bool,
    /// Standard input ends with what is fed to it.
    input_ends: bool,
    kills_before: u64,
    over_memory: bool,
    cpu: Duration,
    /// Set once the program itself has ended.
    exit: Option<Exit>,
}

/// What is still to be fed to a program.
struct Input {
    file: File,
    pending: VecDeque<u8>,
}

impl Server {
    pub fn new(limits: &Limits, watch: Watch, confined: bool) -> Result<Self, Failure> {
        // The end of a launch kills every process in sight. Outside a cell that would be all of the user's.
        if nix::unistd::getpid().as_raw() != 1 {
            return Err(Failure {
                step: "run as process 1".into(),
                errno: libc::EPERM,
            });
        }
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block().step("block SIGCHLD")?;
        let children = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .step("watch for SIGCHLD")?;
        Ok(Server {
            rules: Rules::new(limits, confined, watch.needs_ticks())?,
            watch,
            output_room: limits.output_kib as usize * 1024,
            children,
            inbox: Vec::new(),
            outbox: Vec::new(),
            running: Vec::new(),
        })
    }

    /// Serves until the runner closes the cell or is gone. Returns the exit code.
    pub fn run(mut self, mut control: UnixStream) -> i32 {
        if control.set_nonblocking(true).is_err() {
            return 1;
        }
        loop {
            self.wait(&control);
            match self.receive(&mut control) {
                Ok(true) => {}
                Ok(false) => return self.say_goodbye(&mut control),
                Err(_) => return 1,
            }
            self.reap();
            self.move_data();
            self.check_limits();
            if self.send(&mut control).is_err() {
                return 1;
            }
        }
    }

    /// Sleeps until something may be done.
    fn wait(&self, control: &UnixStream) {
        let now = Instant::now();
        let mut wake_at: Option<Instant> = None;
        let mut interest: Vec<(BorrowedFd<'_>, PollFlags)> = Vec::with_capacity(5);
        let answers = if self.outbox.is_empty() {
            PollFlags::empty()
        } else {
            PollFlags::POLLOUT
        };
        interest.push((control.as_fd(), PollFlags::POLLIN | answers));
        interest.push((self.children.as_fd(), PollFlags::POLLIN));
        for running in &self.running {
            let mut at = running.deadline;
            if self.watch.needs_ticks() {
                at = at.min(running.next_tick);
            }
            wake_at = Some(wake_at.map_or(at, |earlier| earlier.min(at)));
            if self.outbox.len() < UNREAD_MOST {
                let outputs = [running.stdout.fd(), running.stderr.fd()];
                interest.extend(
                    outputs
                        .into_iter()
                        .flatten()
                        .map(|fd| (fd, PollFlags::POLLIN)),
                );
            }
            if let Some(input) = running
                .input
                .as_ref()
                .filter(|input| !input.pending.is_empty())
            {
                interest.push((input.file.as_fd(), PollFlags::POLLOUT));
            }
        }
        let timeout = match wake_at {
            None => PollTimeout::NONE,
            // Rounded up: waking just before the deadline would spin until it.
            Some(at) => at
                .saturating_duration_since(now)
                .saturating_add(Duration::from_micros(999))
                .try_into()
                .unwrap_or(PollTimeout::MAX),
        };
        let mut fds: Vec<PollFd<'_>> = interest
            .into_iter()
            .map(|(fd, flags)| PollFd::new(fd, flags))
            .collect();
        // Everything is read without blocking afterwards, so neither errors nor which one is ready matters.
        let _ = poll(&mut fds, timeout);
    }

    /// Obeys what the runner sent. `false`: it asked us to close.
    fn receive(&mut self, control: &mut UnixStream) -> io::Result<bool> {
        let mut chunk = [0; 64 * 1024];
        loop {
            match control.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.inbox.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while let Some((message, payload)) = protocol::take::<ToInit>(&mut self.inbox)? {
            match message {
                ToInit::Setup(_) => return Err(ErrorKind::InvalidData.into()),
                ToInit::Launch(order) => self.launch(order, payload),
                ToInit::Keys(id) => {
                    if let Some(input) = self.terminal(id) {
                        input.pending.extend(payload);
                    }
                }
                ToInit::Resize(id, size) => {
                    if let Some(input) = self.terminal(id) {
                        child::resize(&input.file, size);
                    }
                }
                ToInit::Signal(id, number) => {
                    if let (Some(idx), Ok(signal)) = (self.position(id), Signal::try_from(number)) {
                        // It may have ended by itself just now.
                        let _ = killpg(self.running[idx].pid, signal);
                    }
                    self.answer(&FromInit::Signalled(id), b"");
                }
                ToInit::Kill(id) => {
                    if let Some(idx) = self.position(id) {
                        self.finish(idx, Exit::Signal(libc::SIGKILL), true);
                    }
                }
                ToInit::Close => return Ok(false),
            }
        }
        Ok(true)
    }

    fn position(&self, id: LaunchId) -> Option<usize> {
        self.running.iter().position(|running| running.id == id)
    }

    /// The keyboard of a launch, when it has a terminal.
    fn terminal(&mut self, id: LaunchId) -> Option<&mut Input> {
        self.running
            .iter_mut()
            .find(|running| running.id == id && running.slave.is_some())
            .and_then(|running| running.input.as_mut())
    }

    fn launch(&mut self, order: LaunchOrder, stdin: Vec<u8>) {
        let started = Instant::now();
        match self.start(&order, stdin, started) {
            Ok(running) => self.running.push(running),
            Err(NotStarted::Ours(failure)) => {
                self.answer(&FromInit::NotLaunched(order.id, failure), b"");
            }
            Err(NotStarted::Theirs(exit)) => {
                let report = Report {
                    exit,
                    stdout_bytes: 0,
                    stdout_cut: false,
                    stderr_cut: false,
                    duration_us: started.elapsed().as_micros() as u64,
                    cpu_us: 0,
                    out_of_memory: false,
                };
                self.answer(&FromInit::Ended(order.id, report), b"");
            }
        }
    }

    fn start(
        &self,
        order: &LaunchOrder,
        stdin: Vec<u8>,
        started: Instant,
    ) -> Result<Running, NotStarted> {
        let kills_before = self.watch.kills();
        let program = self.rules.start(order, !stdin.is_empty())?;
        let input = program.input.map(|fd| Input {
            file: File::from(fd),
            pending: stdin.into(),
        });
        if let Some(input) = &input {
            fcntl(&input.file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .step("prepare standard input")?;
        }
        let room = self.output_room;
        Ok(Running {
            id: order.id,
            pid: program.pid,
            input,
            stdout: Output::new(Some(program.stdout), room).step("prepare standard output")?,
            stderr: Output::new(program.stderr, room).step("prepare standard error")?,
            slave: program.slave,
            started,
            deadline: started + Duration::from_millis(order.time_limit_ms),
            next_tick: started + TICK,
            leave_running: order.leave_running,
            input_ends: order.stdio == Stdio::Pipes,
            kills_before,
            over_memory: false,
            cpu: Duration::ZERO,
            exit: None,
        })
    }

    /// Collects every process that has ended; most are orphans that nobody else collects.
    fn reap(&mut self) {
        while let Ok(Some(_)) = self.children.read_signal() {}
        while let Reaped::Process { pid, exit, cpu } = reap(libc::WNOHANG) {
            if let Some(running) = self.running.iter_mut().find(|running| running.pid == pid) {
                running.cpu += cpu;
                running.exit = Some(exit);
            } else if let Some(running) = self.running.first_mut() {
                // Whose orphan it was, nobody knows any more.
                running.cpu += cpu;
            }
        }
        while let Some((idx, exit)) = self
            .running
            .iter_mut()
            .enumerate()
            .find_map(|(idx, running)| Some((idx, running.exit.take()?)))
        {
            self.finish(idx, exit, false);
        }
    }

    /// Moves bytes between the program and the runner.
    fn move_data(&mut self) {
        let full = self.outbox.len() >= UNREAD_MOST;
        for running in &mut self.running {
            if !full {
                running.stdout.read();
                running.stderr.read();
            }
            if running.slave.is_some() {
                let shown = std::mem::take(&mut running.stdout.kept);
                if !shown.is_empty() {
                    let frame = protocol::encode(&FromInit::Output(running.id), &shown);
                    self.outbox.extend_from_slice(&frame);
                }
            }
            if let Some(input) = &mut running.input
                && (input.feed().is_err() || (running.input_ends && input.pending.is_empty()))
            {
                running.input = None;
            }
        }
    }

    fn check_limits(&mut self) {
        let now = Instant::now();
        while let Some(idx) = self
            .running
            .iter()
            .position(|running| now >= running.deadline)
        {
            self.finish(idx, Exit::TimedOut, true);
        }
        if !self.watch.needs_ticks() || self.running.iter().all(|one| now < one.next_tick) {
            return;
        }
        let is_passed = self.watch.is_passed();
        for running in &mut self.running {
            running.next_tick = now + TICK;
            running.over_memory |= is_passed;
        }
        while is_passed && !self.running.is_empty() {
            self.finish(0, Exit::Signal(libc::SIGKILL), true);
        }
    }

    /// Ends a launch: kills what is left of it, reads the rest of its output, reports. While others run, only its
    /// process group is killed; what has left that dies with the last launch.
    fn finish(&mut self, idx: usize, exit: Exit, by_force: bool) {
        let mut running = self.running.remove(idx);
        let duration = running.started.elapsed();
        let is_last = self.running.is_empty();
        if is_last && (by_force || !running.leave_running) {
            running.cpu += kill_everything();
            running.stdout.drain(usize::MAX);
            running.stderr.drain(usize::MAX);
        } else {
            if by_force || !running.leave_running {
                // Fails only when nothing is left of it.
                let _ = killpg(running.pid, Signal::SIGKILL);
            }
            running.stdout.drain(LAST_READS);
            running.stderr.drain(LAST_READS);
        }
        let report = Report {
            exit,
            stdout_bytes: running.stdout.kept.len(),
            stdout_cut: running.stdout.cut,
            stderr_cut: running.stderr.cut,
            duration_us: duration.as_micros() as u64,
            cpu_us: running.cpu.as_micros() as u64,
            out_of_memory: running.over_memory || self.watch.kills() > running.kills_before,
        };
        let output = [running.stdout.kept, running.stderr.kept].concat();
        self.answer(&FromInit::Ended(running.id, report), &output);
    }

    fn answer(&mut self, message: &FromInit, payload: &[u8]) {
        self.outbox
            .extend_from_slice(&protocol::encode(message, payload));
    }

    fn send(&mut self, control: &mut UnixStream) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match control.write(&self.outbox) {
                Ok(n) => drop(self.outbox.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn say_goodbye(mut self, control: &mut UnixStream) -> i32 {
        kill_everything();
        self.answer(&FromInit::Closed, b"");
        // The runner waits for this; when it does not, the end of the stream says the same.
        let _ = control
            .set_nonblocking(false)
            .and_then(|()| control.write_all(&self.outbox));
        0
    }
}

impl Input {
    /// Writes what fits. An error means that nobody reads any more.
    fn feed(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            match self.file.write(self.pending.as_slices().0) {
                Ok(n) => drop(self.pending.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Kills every process of the cell but this one, and returns when all are gone. A fork under way does not escape: the
/// kernel refuses to finish it for a process that has been sent SIGKILL.
fn kill_everything() -> Duration {
    let mut cpu = Duration::ZERO;
    loop {
        // Fails only when nothing is left to kill.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        match reap(0) {
            Reaped::Process { cpu: more, .. } => cpu += more,
            Reaped::Nothing => return cpu,
        }
    }
}

enum Reaped {
    Process { pid: Pid, exit: Exit, cpu: Duration },
    Nothing,
}

/// Collects one ended child.
fn reap(flags: i32) -> Reaped {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value to be overwritten.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are valid for the call.
        let pid = unsafe { libc::wait4(-1, &mut status, flags, &mut usage) };
        if pid < 0 && nix::errno::Errno::last_raw() == libc::EINTR {
            continue;
        }
        if pid <= 0 {
            return Reaped::Nothing;
        }
        let exit = if libc::WIFSIGNALED(status) {
            Exit::Signal(libc::WTERMSIG(status))
        } else {
            Exit::Code(libc::WEXITSTATUS(status))
        };
        let time = |t: libc::timeval| {
            Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
        };
        return Reaped::Process {
            pid: Pid::from_raw(pid),
            exit,
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
        };
    }
}
