//! What the runner and process 1 of a cell say to each other.
//!
//! A frame is two little-endian `u32` lengths, a JSON message, and a payload of plain bytes (standard input, output,
//! keys). The runner speaks first: [`ToInit::Setup`]. Process 1 answers with one byte, [`READY`] with the listener and
//! the folders attached as descriptors, or [`REFUSED`] followed by a [`FromInit::Failed`] frame. Both ends are the same build of
//! this program, so there are no versions; a frame that does not parse means that this is not so.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::spec::{Exit, LaunchId, Limits, Mount, Stdio, TerminalSize};

/// The first byte from process 1 when the cell is set up; the listener comes with it, then the folders in order.
pub const READY: u8 = b'L';
/// More folders than fit beside the listener in one message are a mistake of ours.
pub const MOST_FOLDERS: usize = 15;
/// The first byte from process 1 when it is not.
pub const REFUSED: u8 = b'F';

/// No frame is longer; output is capped far below.
const MAX_FRAME: usize = 1 << 30;

/// From the runner to process 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ToInit {
    Setup(Setup),
    /// Start a program; the payload is its standard input.
    Launch(LaunchOrder),
    /// The payload is typed into the launch's terminal.
    Keys(LaunchId),
    Resize(LaunchId, TerminalSize),
    /// Send this signal to the launch's process group, and answer [`FromInit::Signalled`].
    Signal(LaunchId, i32),
    /// End the launch now, as at the time limit. Ignored, as all the others, when it does not run.
    Kill(LaunchId),
    /// Kill everything, answer [`FromInit::Closed`] and exit.
    Close,
}

/// From process 1 to the runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FromInit {
    /// The cell is unusable.
    Failed(Failure),
    /// The launch could not be started for a reason that is not the candidate's doing.
    NotLaunched(LaunchId, Failure),
    /// The payload appeared on the launch's terminal.
    Output(LaunchId),
    /// The signal is sent, or there is nobody left to send it to.
    Signalled(LaunchId),
    Ended(LaunchId, Report),
    Closed,
}

/// What process 1 needs to know before it is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    pub port: u16,
    pub limits: Limits,
    /// The folders of the cell's own; inside a container they are there already.
    pub folders: Vec<PathBuf>,
    /// Present when process 1 has to isolate itself first; absent inside a container.
    pub confine: Option<Confine>,
}

/// How process 1 isolates itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confine {
    pub mounts: Vec<Mount>,
    /// Host user and group behind user and group 1000 inside.
    pub owner: (u32, u32),
}

/// [`super::Launch`] without its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchOrder {
    pub id: LaunchId,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: String,
    pub time_limit_ms: u64,
    pub leave_running: bool,
    pub stdio: Stdio,
}

/// The end of a launch; the payload is stdout followed by stderr.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub exit: Exit,
    pub stdout_bytes: usize,
    pub stdout_cut: bool,
    pub stderr_cut: bool,
    pub duration_us: u64,
    pub cpu_us: u64,
    pub out_of_memory: bool,
}

/// A step of process 1 that did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: String,
    pub errno: i32,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.step,
            io::Error::from_raw_os_error(self.errno)
        )
    }
}

/// Names the step that an operating-system error belongs to.
pub trait Step<T> {
    fn step(self, step: impl Into<String>) -> Result<T, Failure>;
}

impl<T> Step<T> for nix::Result<T> {
    fn step(self, step: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step: step.into(),
            errno: errno as i32,
        })
    }
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, step: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step: step.into(),
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })
    }
}

/// The bytes of a frame.
pub fn encode<M: Serialize>(message: &M, payload: &[u8]) -> Vec<u8> {
    let json =
        serde_json::to_vec(message).expect("messages have string keys and finite numbers only");
    let mut frame = Vec::with_capacity(8 + json.len() + payload.len());
    frame.extend_from_slice(&(json.len() as u32).to_le_bytes());
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&json);
    frame.extend_from_slice(payload);
    frame
}

/// Takes the first whole frame off the front of what has been received, if there is one.
pub fn take<M: DeserializeOwned>(received: &mut Vec<u8>) -> io::Result<Option<(M, Vec<u8>)>> {
    let Some(lengths) = received.first_chunk::<8>() else {
        return Ok(None);
    };
    let json = u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
    let payload = u32::from_le_bytes([lengths[4], lengths[5], lengths[6], lengths[7]]) as usize;
    let total = 8 + json + payload;
    if total > MAX_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("frame of {total} bytes"),
        ));
    }
    if received.len() < total {
        received.reserve(total - received.len());
        return Ok(None);
    }
    let message = serde_json::from_slice(&received[8..8 + json])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let payload = received[8 + json..total].to_vec();
    received.drain(..total);
    Ok(Some((message, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let id = LaunchId(7);
        let size = TerminalSize {
            columns: 80,
            rows: 24,
        };
        let first = encode(&ToInit::Keys(id), b"ls\r");
        let second = encode(&ToInit::Resize(id, size), b"");
        let stream = [first, second].concat();
        for cut in 0..=stream.len() {
            let mut received = stream[..cut].to_vec();
            let mut seen = Vec::new();
            while let Some(frame) = take::<ToInit>(&mut received).unwrap() {
                seen.push(frame);
            }
            received.extend_from_slice(&stream[cut..]);
            while let Some(frame) = take::<ToInit>(&mut received).unwrap() {
                seen.push(frame);
            }
            assert_eq!(
                seen,
                [
                    (ToInit::Keys(id), b"ls\r".to_vec()),
                    (ToInit::Resize(id, size), Vec::new())
                ]
            );
            assert!(received.is_empty());
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(take::<ToInit>(&mut b"\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()).is_err());
        assert!(take::<ToInit>(&mut b"\x02\0\0\0\0\0\0\0{}".to_vec()).is_err());
    }
}
