//! The runner's end of a cell: starts programs through process 1 and hears how they ended.
//!
//! Every method may be cancelled: what was sent stays whole, and what was under way is killed before the next launch.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use futures_util::future::BoxFuture;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::SandboxError;
use super::protocol::{self, FromInit, LaunchOrder, Report, Setup, ToInit};
use super::spec::{Ended, Launch, LaunchId, Stdio, TerminalSize};

/// How long process 1 may take to set the cell up.
const SETUP_LIMIT: Duration = Duration::from_secs(60);
/// How long process 1 may take, beyond the time limit of a launch, to kill and report. It needs milliseconds; this is
/// for a machine that is nearly at a standstill.
const REPORT_LIMIT: Duration = Duration::from_secs(30);

/// A place in which programs of one case run. Dropping it kills all of them; [`Cell::close`] also waits for that.
pub struct Cell {
    label: String,
    link: Link,
    listener: Option<TcpListener>,
    folders: Vec<OwnedFd>,
    remains: Box<dyn Remains>,
    /// Launches whose end has not been read, and until when it must have been reported.
    under_way: BTreeMap<LaunchId, Instant>,
    next_id: u32,
}

/// What is left of a cell on the host when process 1 has been told to go.
pub(super) trait Remains: Send {
    /// Waits until it is gone, and removes it by force when it does not go by itself.
    fn gone(self: Box<Self>) -> BoxFuture<'static, Result<(), SandboxError>>;

    /// The outermost process of the cell; none where it is not seen from here.
    fn process(&self) -> Option<u32>;
}

impl Cell {
    /// Sets the cell up through a stream whose other end process 1 holds.
    pub(super) async fn set_up(
        label: String,
        stream: UnixStream,
        setup: Setup,
        remains: Box<dyn Remains>,
    ) -> Result<Cell, SandboxError> {
        let mut cell = Cell {
            label,
            link: Link::new(stream),
            listener: None,
            folders: Vec::new(),
            remains,
            under_way: BTreeMap::new(),
            next_id: 0,
        };
        match timeout(SETUP_LIMIT, cell.exchange_setup(setup)).await {
            Ok(Ok(())) => Ok(cell),
            Ok(Err(error)) => Err(cell.abandon(error).await),
            Err(_) => {
                let error = cell.lost("process 1 did not get ready in time");
                Err(cell.abandon(error).await)
            }
        }
    }

    /// The listener on the cell's port, not blocking. Drop it when the cell is closed: it keeps the cell's network in
    /// existence.
    ///
    /// # Panics
    /// When it is taken twice.
    pub fn take_listener(&mut self) -> TcpListener {
        self.listener.take().expect("the listener is taken once")
    }

    /// The cell's own folders, in the order of [`super::CellSpec::folders`]: each opened for reading, to be filled before
    /// a launch and read after it. They outlive the cell: a folder is gone when its descriptor is closed.
    ///
    /// Its files belong to [`super::Sandbox::owner`], and nobody else can make any, root neither.
    pub fn take_folders(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.folders)
    }

    /// The process of this machine that everything in the cell descends from; none where it is not seen from here.
    pub fn process(&self) -> Option<u32> {
        self.remains.process()
    }

    /// Runs a program to its end.
    pub async fn launch(&mut self, launch: Launch) -> Result<Ended, SandboxError> {
        self.settle().await?;
        let id = self.start(launch, Stdio::Pipes).await?;
        loop {
            if let (ended_id, LaunchEvent::Ended(ended)) = self.next().await?
                && ended_id == id
            {
                return Ok(ended);
            }
        }
    }

    /// Starts a program in a terminal. Dropping the terminal kills the program before the next launch.
    pub async fn terminal(
        &mut self,
        launch: Launch,
        size: TerminalSize,
    ) -> Result<Terminal<'_>, SandboxError> {
        self.settle().await?;
        let id = self.start(launch, Stdio::Terminal(size)).await?;
        Ok(Terminal {
            cell: self,
            id,
            ended: None,
        })
    }

    /// Starts a program beside those that run already; [`Cell::next`] tells of all of them. What outlives a program
    /// while others run dies with the last of them.
    pub async fn start(&mut self, launch: Launch, stdio: Stdio) -> Result<LaunchId, SandboxError> {
        let id = LaunchId(self.next_id);
        self.next_id += 1;
        let Launch {
            argv,
            env,
            cwd,
            stdin,
            time_limit,
            leave_running,
        } = launch;
        let order = LaunchOrder {
            id,
            argv,
            env,
            cwd,
            time_limit_ms: time_limit.as_millis() as u64,
            leave_running,
            stdio,
        };
        self.under_way
            .insert(id, Instant::now() + time_limit + REPORT_LIMIT);
        self.say(&ToInit::Launch(order), &stdin).await?;
        Ok(id)
    }

    /// The next thing that happens to one of the programs under way. Output of pipes comes with the end.
    pub async fn next(&mut self) -> Result<(LaunchId, LaunchEvent), SandboxError> {
        let deadline = self.patience();
        let (message, payload) = match timeout_at(deadline, self.link.receive()).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.lost("process 1 ended; was it killed from outside, or by the kernel short of memory?"));
            }
            Ok(Err(error)) => return Err(self.lost(&error.to_string())),
            Err(_) => return Err(self.lost("the end of a launch was not reported in time")),
        };
        match message {
            FromInit::Output(id) => Ok((id, LaunchEvent::Output(payload))),
            FromInit::Signalled(id) => Ok((id, LaunchEvent::Signalled)),
            FromInit::Ended(id, report) => {
                self.under_way.remove(&id);
                Ok((id, LaunchEvent::Ended(ended(report, payload))))
            }
            FromInit::NotLaunched(id, failure) => {
                self.under_way.remove(&id);
                Err(self.lost(&failure.to_string()))
            }
            other => Err(self.lost(&format!("unexpected {other:?}"))),
        }
    }

    /// Types bytes into a launch's terminal. They are lost when it has ended.
    pub async fn write(&mut self, id: LaunchId, keys: &[u8]) -> Result<(), SandboxError> {
        self.say(&ToInit::Keys(id), keys).await
    }

    pub async fn resize(&mut self, id: LaunchId, size: TerminalSize) -> Result<(), SandboxError> {
        self.say(&ToInit::Resize(id, size), b"").await
    }

    /// Sends a signal to a launch's process group; [`Cell::next`] tells when it is sent.
    pub async fn signal(&mut self, id: LaunchId, number: i32) -> Result<(), SandboxError> {
        self.say(&ToInit::Signal(id, number), b"").await
    }

    /// Kills a launch; [`Cell::next`] then tells its end.
    pub async fn kill(&mut self, id: LaunchId) -> Result<(), SandboxError> {
        self.say(&ToInit::Kill(id), b"").await
    }

    /// Kills what runs, and returns when nothing of the cell is left on the host.
    pub async fn close(mut self) -> Result<(), SandboxError> {
        let farewell = async {
            self.link.send(&ToInit::Close, b"").await?;
            while !matches!(self.link.receive().await?, (FromInit::Closed, _)) {}
            Ok::<(), io::Error>(())
        };
        // A cell that cannot answer is removed all the same.
        let _ = timeout(REPORT_LIMIT, farewell).await;
        let Cell {
            link,
            listener,
            folders,
            remains,
            ..
        } = self;
        drop((link, listener, folders));
        remains.gone().await
    }

    async fn exchange_setup(&mut self, setup: Setup) -> Result<(), SandboxError> {
        let label = self.label.clone();
        let lost = |error: io::Error| SandboxError::Lost {
            label: label.clone(),
            why: format!("set-up: {error}"),
        };
        let n_folders = setup.folders.len();
        self.link
            .send(&ToInit::Setup(setup), b"")
            .await
            .map_err(lost)?;
        match self.link.receive_descriptors().await.map_err(lost)? {
            Some((listener, folders)) if folders.len() == n_folders => {
                listener.set_nonblocking(true).map_err(lost)?;
                (self.listener, self.folders) = (Some(listener), folders);
                Ok(())
            }
            Some(_) => Err(self.lost("process 1 did not hand over all folders")),
            None => match self.link.receive().await.map_err(lost)? {
                (FromInit::Failed(failure), _) => Err(SandboxError::from_setup(&label, &failure)),
                (other, _) => Err(self.lost(&format!("unexpected {other:?} at set-up"))),
            },
        }
    }

    /// Ends launches that nobody waits for any more.
    async fn settle(&mut self) -> Result<(), SandboxError> {
        while let Some(id) = self.under_way.keys().next().copied() {
            let deadline = Instant::now() + REPORT_LIMIT;
            self.under_way.insert(id, deadline);
            self.kill(id).await?;
            while self.under_way.contains_key(&id) {
                self.next().await?;
            }
        }
        Ok(())
    }

    /// When process 1 must have said something, at the latest.
    fn patience(&self) -> Instant {
        let now = Instant::now() + REPORT_LIMIT;
        self.under_way.values().max().copied().unwrap_or(now)
    }

    async fn say(&mut self, message: &ToInit, payload: &[u8]) -> Result<(), SandboxError> {
        match timeout_at(self.patience(), self.link.send(message, payload)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.lost(&error.to_string())),
            Err(_) => Err(self.lost("process 1 stopped listening")),
        }
    }

    fn lost(&self, why: &str) -> SandboxError {
        SandboxError::Lost {
            label: self.label.clone(),
            why: why.into(),
        }
    }

    /// Removes a cell that never came to be, and passes on why.
    async fn abandon(self, why: SandboxError) -> SandboxError {
        let Cell { link, remains, .. } = self;
        drop(link);
        // The first error explains more than one met while cleaning up.
        let _ = remains.gone().await;
        why
    }
}

/// A program that runs in a terminal.
pub struct Terminal<'cell> {
    cell: &'cell mut Cell,
    id: LaunchId,
    ended: Option<Ended>,
}

/// What a program does next, in a terminal or on pipes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchEvent {
    /// Bytes written to the terminal, in pieces as they came.
    Output(Vec<u8>),
    /// A signal that was asked for is sent.
    Signalled,
    /// The program ended; everything it wrote has been given out before, up to the limit.
    Ended(Ended),
}

impl Terminal<'_> {
    /// Waits for output or the end. After the end it gives the same end again.
    pub async fn next(&mut self) -> Result<LaunchEvent, SandboxError> {
        if let Some(ended) = &self.ended {
            return Ok(LaunchEvent::Ended(ended.clone()));
        }
        match self.cell.next().await? {
            (_, LaunchEvent::Ended(mut ended)) => {
                // What was read last came with the report.
                let rest = std::mem::take(&mut ended.stdout);
                self.ended = Some(ended.clone());
                Ok(if rest.is_empty() {
                    LaunchEvent::Ended(ended)
                } else {
                    LaunchEvent::Output(rest)
                })
            }
            (_, output) => Ok(output),
        }
    }

    /// Types bytes. They are lost when the program has ended.
    pub async fn write(&mut self, keys: &[u8]) -> Result<(), SandboxError> {
        self.cell.write(self.id, keys).await
    }

    pub async fn resize(&mut self, size: TerminalSize) -> Result<(), SandboxError> {
        self.cell.resize(self.id, size).await
    }

    /// Kills the program; [`Terminal::wait`] then tells the end.
    pub async fn kill(&mut self) -> Result<(), SandboxError> {
        self.cell.kill(self.id).await
    }

    /// Waits for the end. `stdout` holds the output that [`Terminal::next`] has not given out.
    pub async fn wait(mut self) -> Result<Ended, SandboxError> {
        let mut rest = Vec::new();
        loop {
            match self.next().await? {
                LaunchEvent::Signalled => {}
                LaunchEvent::Output(bytes) => rest.extend_from_slice(&bytes),
                LaunchEvent::Ended(ended) => {
                    return Ok(Ended {
                        stdout: rest,
                        ..ended
                    });
                }
            }
        }
    }
}

fn ended(report: Report, mut output: Vec<u8>) -> Ended {
    let stderr = output.split_off(report.stdout_bytes.min(output.len()));
    Ended {
        exit: report.exit,
        stdout: output,
        stdout_cut: report.stdout_cut,
        stderr,
        stderr_cut: report.stderr_cut,
        duration: Duration::from_micros(report.duration_us),
        cpu: Duration::from_micros(report.cpu_us),
        out_of_memory: report.out_of_memory,
    }
}

/// Frames over the control stream. A cancelled call leaves its bytes here for the next one.
struct Link {
    stream: UnixStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

impl Link {
    fn new(stream: UnixStream) -> Self {
        Link {
            stream,
            inbox: Vec::new(),
            outbox: Vec::new(),
        }
    }

    async fn send(&mut self, message: &ToInit, payload: &[u8]) -> io::Result<()> {
        self.outbox
            .extend_from_slice(&protocol::encode(message, payload));
        while !self.outbox.is_empty() {
            let n = self.stream.write(&self.outbox).await?;
            self.outbox.drain(..n);
        }
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<(FromInit, Vec<u8>)> {
        loop {
            if let Some(frame) = protocol::take(&mut self.inbox)? {
                return Ok(frame);
            }
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads the first byte from process 1, and what comes with it when all is well.
    async fn receive_descriptors(&mut self) -> io::Result<Option<Descriptors>> {
        let fd = self.stream.as_raw_fd();
        self.stream
            .async_io(Interest::READABLE, || receive_descriptors(fd))
            .await
    }
}

/// The listener, and the folders.
type Descriptors = (TcpListener, Vec<OwnedFd>);

fn receive_descriptors(fd: RawFd) -> io::Result<Option<Descriptors>> {
    let mut byte = [0];
    let mut space = nix::cmsg_space!([RawFd; protocol::MOST_FOLDERS + 1]);
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(
        fd,
        &mut buffers,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut received = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control {
            // SAFETY: the kernel has just made these descriptors for us.
            received.extend(
                fds.into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            );
        }
    }
    let mut received = received.into_iter();
    match (byte[0], received.next()) {
        (protocol::READY, Some(listener)) => Ok(Some((listener.into(), received.collect()))),
        (protocol::REFUSED, None) => Ok(None),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "process 1 speaks another language",
        )),
    }
}
