//! Installing a candidate: its tree is written out, `install.sh` runs in a cell without network, and the result is
//! sealed by digest, so that the same tree is installed once and nobody changes it afterwards.

use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::owned_folder::{self, OwnedFolder};
use super::trial::CANDIDATE;
use super::{Failure, Result};
use crate::adapters::folders::{self, FoldersError};
use crate::adapters::sandbox::{CellSpec, Exit, Launch, Limits, Mount, Sandbox, SandboxError};
use crate::domain::candidate::Candidate;
use crate::storage::candidates;

const PORT: u16 = 8400;
/// Where a candidate lies as it was delivered, while it is installed.
const DELIVERED: &str = "/delivered";
/// A tree that is being installed, below the frozen ones.
const DRAFT: &str = ".new-";
/// Characters at the end of what a script said that are told.
const SAID_MOST: usize = 200;

/// How an installation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installed {
    /// The sealed tree.
    Tree(PathBuf),
    /// The candidate's doing; the text says what its script said.
    Refused(String),
}

/// Installs the candidate and seals the result under its digest. `packages` are shown to its script, which is killed
/// after `time_limit`.
pub async fn install(
    sandbox: &dyn Sandbox,
    limits: &Limits,
    time_limit: Duration,
    frozen: &Path,
    candidate: &Candidate,
    digest: &str,
    packages: Vec<Mount>,
) -> Result<Installed> {
    std::fs::create_dir_all(frozen)?;
    let draft = OwnedFolder::make(frozen, DRAFT)?;
    let delivered = draft.path().join("delivered");
    candidates::materialise(candidate, &delivered)?;
    give_all(&delivered, sandbox.owner())?;
    let spec = CellSpec {
        label: format!("install/{}", candidate.name),
        mounts: [vec![Mount::read_only(&delivered, DELIVERED)], packages].concat(),
        folders: vec![CANDIDATE.into()],
        limits: limits.clone(),
        port: PORT,
    };
    let environment = |error: SandboxError| Failure::environment(error.to_string());
    let mut cell = sandbox.open(spec).await.map_err(environment)?;
    drop(cell.take_listener());
    let folders = cell.take_folders();
    // The script writes into a folder of the cell's own, so that it cannot fill the disk.
    let script = format!("cp -a {DELIVERED}/. . && exec /bin/sh install.sh");
    let launch = Launch {
        argv: vec!["/bin/sh".into(), "-c".into(), script],
        env: [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/tmp"),
            ("LANG", "C.UTF-8"),
            ("TZ", "UTC"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        cwd: CANDIDATE.to_owned(),
        stdin: Vec::new(),
        time_limit,
        leave_running: false,
    };
    let ended = cell.launch(launch).await;
    cell.close().await.map_err(environment)?;
    let ended = ended.map_err(environment)?;
    let said = last_words(&ended.stderr);
    let refused = match ended.exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("install.sh ended with {code}: {said}")),
        Exit::Signal(signal) => Some(format!("install.sh died of signal {signal}: {said}")),
        Exit::TimedOut => Some(format!("install.sh took over {} s", time_limit.as_secs())),
        Exit::NotStarted(why) => Some(format!("install.sh did not start: {why}")),
    };
    if let Some(why) = refused {
        return Ok(Installed::Refused(why));
    }
    let tree = draft.path().join("tree");
    match folders::copy_out(&folders[0], &tree, limits.folder_mib << 20) {
        Err(FoldersError::NotCopied { path, why }) => Ok(Installed::Refused(format!(
            "install.sh left {}, which {why}",
            path.display()
        ))),
        copied => {
            copied?;
            Ok(Installed::Tree(candidates::seal(&tree, frozen, digest)?))
        }
    }
}

/// The end of what a script said. All of it stands with each case of the candidate, so it has to be short.
fn last_words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let said = said.trim();
    match said.char_indices().rev().nth(SAID_MOST) {
        None => said.to_owned(),
        Some((start, _)) => format!("… {}", &said[start..]),
    }
}

/// Removes trees that killed processes were installing. Returns how many.
pub fn sweep(frozen: &Path) -> std::io::Result<usize> {
    owned_folder::sweep(frozen, DRAFT)
}

/// Gives a tree to the user of the cells; only root can, anybody else is that user.
fn give_all(path: &Path, (uid, gid): (u32, u32)) -> std::io::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    lchown(path, Some(uid), Some(gid))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_all(&entry?.path(), (uid, gid))?;
        }
    }
    Ok(())
}
