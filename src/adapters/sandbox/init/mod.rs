//! The program inside a cell: process 1.
//!
//! It isolates itself where nobody has done that yet (`confine`), binds the mock model's port, and then obeys the
//! runner (`serve`): starts programs (`child`), keeps their output, kills what outlives them, and watches the memory
//! limit (`memory`). Where it confines itself it was forked for its cell (`forks`). It has no threads and no async runtime, so that it may fork. When the control stream closes, for
//! whatever reason, it exits, and the kernel kills everything else in the cell with it.

mod child;
mod confine;
mod filter;
mod forks;
mod memory;
mod output;
mod serve;
mod tree;

use std::ffi::OsString;
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use super::protocol::{self, Failure, FromInit, Setup, Step, ToInit};

/// The step that fails when the kernel does not let us make namespaces.
pub(super) const STEP_NAMESPACES: &str = "create user, mount, pid and network namespaces";

/// The priority of process 1 where we may give it one: it has to end a launch in time, however many programs are busy.
const PRIORITY: i32 = -20;

/// Gives process 1 its priority. Only root can; anybody else waits a little longer for a launch to be ended.
pub(super) fn put_first(process_one: i32) {
    // SAFETY: a plain system call; a refusal changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, process_one as libc::id_t, PRIORITY) };
}

/// Begins everything that process 1 says on standard error, before it has anybody else to tell.
pub(super) const SPEAKER: &str = "sandbox init";

/// Runs process 1 of a cell and never returns. `arguments` are those after [`super::INIT_ARGUMENT`]: `--connect SOCKET`
/// for one cell, or none when control streams of cells come through standard input.
pub fn init_main(arguments: impl Iterator<Item = OsString>) -> ! {
    let arguments: Vec<OsString> = arguments.collect();
    let control = match arguments.as_slice() {
        [] => forks::next_cell(),
        [flag, socket] if flag == "--connect" => UnixStream::connect(socket),
        _ => Err(std::io::Error::other("usage: [--connect SOCKET]")),
    };
    let code = match control {
        Ok(control) => run(control),
        Err(error) => {
            eprintln!("{SPEAKER}: {error}");
            2
        }
    };
    std::process::exit(code)
}

fn run(mut control: UnixStream) -> i32 {
    let Some(setup) = read_setup(&mut control) else {
        return 1;
    };
    let inside = match &setup.confine {
        None => Ok(memory::Watch::in_container(&setup.limits)),
        Some(confine) => match confine::split(confine, &setup.limits) {
            Ok(confine::Side::Outside(outside)) => {
                drop(control);
                return outside.wait();
            }
            Ok(confine::Side::Inside(inside)) => {
                inside.furnish(confine, &setup.folders, &setup.limits)
            }
            Err(failure) => Err(failure),
        },
    };
    let served = inside.and_then(|watch| {
        let confined = setup.confine.is_some();
        let server = serve::Server::new(&setup.limits, watch, confined)?;
        nix::sys::prctl::set_dumpable(false).step("hide process 1 from the candidate")?;
        hand_over(&control, setup.port, &setup.folders)?;
        Ok(server)
    });
    match served {
        Ok(server) => server.run(control),
        Err(failure) => {
            let frame = protocol::encode(&FromInit::Failed(failure), b"");
            // The runner may be gone already; there is nobody else to tell.
            let _ = control.write_all(&[&[protocol::REFUSED], frame.as_slice()].concat());
            1
        }
    }
}

/// Reads the first frame; `None` when the runner is gone or something else speaks.
fn read_setup(control: &mut UnixStream) -> Option<Setup> {
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match protocol::take::<ToInit>(&mut received) {
            Ok(Some((ToInit::Setup(setup), _))) => return Some(setup),
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return None,
        }
        match control.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(n) => received.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Binds the port and opens the cell's own folders, and gives all to the runner: so the candidate does not exist before
/// the mock model does, and no right to enter the cell's network and mounts is needed outside.
fn hand_over(control: &UnixStream, port: u16, folders: &[PathBuf]) -> Result<(), Failure> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).step(format!("bind 127.0.0.1:{port}"))?;
    let folders: Vec<File> = folders
        .iter()
        .map(|folder| File::open(folder).step(format!("open {}", folder.display())))
        .collect::<Result<_, _>>()?;
    let mut fds = vec![listener.as_raw_fd()];
    fds.extend(folders.iter().map(AsRawFd::as_raw_fd));
    sendmsg::<()>(
        control.as_raw_fd(),
        &[IoSlice::new(&[protocol::READY])],
        &[ControlMessage::ScmRights(&fds)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .step("hand over the listener and the folders")?;
    Ok(())
}
