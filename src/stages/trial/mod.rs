//! One trial: a case is run once against a candidate, and what the four channels showed comes back as evidence.
//! Nothing is judged here.

mod cells;
mod launch;
mod play;
mod repository;
mod terminal;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use cells::Cells;

use crate::adapters::folders::{self, Folders, FoldersError, Snapshot};
use crate::adapters::mock::{Mock, MockError};
use crate::adapters::sandbox::{Cell, CellSpec, Limits, Mount, Sandbox, SandboxError};
use crate::domain::case::{Bindings, Case, CaseId, Entry, Made};
use crate::domain::evidence::{EVIDENCE_FORMAT, Evidence, LaunchEvidence};
use crate::domain::verdict::{Fault, FaultKind};

/// The port of the mock model inside every cell.
pub const PORT: u16 = 8400;
/// Where the candidate's tree lies inside a cell, read-only.
pub const CANDIDATE: &str = "/candidate";

/// What all trials of a run share.
pub struct Bench {
    pub sandbox: Arc<dyn Sandbox>,
    pub run: String,
    /// Nonces are drawn from it.
    pub seed: String,
}

/// What a trial is about.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The installed tree.
    pub tree: PathBuf,
    /// What else is shown: the packages of a shipping harness.
    pub packages: Vec<Mount>,
    pub limits: Limits,
}

/// A trial that our side broke.
#[derive(Debug)]
pub struct Broken {
    pub fault: Fault,
    /// Every other trial would break in the same way until somebody does something about it.
    pub hopeless: bool,
}

/// Runs the case against the candidate. An error is ours, never the candidate's.
pub async fn run(bench: &Bench, case: &Case, subject: &Subject) -> Result<Evidence, Broken> {
    let mut bindings = bindings(&bench.seed, case);
    let mut mounts = vec![Mount::read_only(&subject.tree, CANDIDATE)];
    mounts.extend(subject.packages.iter().cloned());
    let spec = CellSpec {
        label: format!("{}/{}", bench.run, case.id),
        mounts,
        folders: Folders::INSIDE.map(PathBuf::from).to_vec(),
        limits: subject.limits.clone(),
        port: PORT,
    };
    let mut cell = bench
        .sandbox
        .open(spec)
        .await
        .map_err(|error| sandbox_broken(&error))?;
    let folders = Folders::of_cell(cell.take_folders());
    let owner = bench.sandbox.owner();
    let laid = lay(case, &bindings, &folders, &mut cell, owner).await;
    let launched = match laid {
        Ok(before) => launch_all(case, &mut bindings, (&folders, owner), &mut cell)
            .await
            .map(|launches| (before, launches)),
        Err(broken) => Err(broken),
    };
    // Everything in the cell is dead before the files are read back.
    let closed = cell.close().await.map_err(|error| sandbox_broken(&error));
    let (before, launches) = launched?;
    closed?;
    let after = folders::snapshot(&folders, owner).map_err(|error| folders_broken(&error))?;
    Ok(Evidence {
        format: EVIDENCE_FORMAT,
        case: case.id.clone(),
        bindings,
        launches,
        files_before: before.files,
        files_after: after.files,
        files_cut: after.cut,
    })
}

/// Lays the fixture, repositories first, and reads it back.
async fn lay(
    case: &Case,
    bindings: &Bindings,
    folders: &Folders,
    cell: &mut Cell,
    owner: (u32, u32),
) -> Result<Snapshot, Broken> {
    for (path, entry) in &case.fixture {
        if let Entry::Made(Made { git: Some(git), .. }) = entry {
            let made = repository::make(path, git, bindings, cell).await;
            made.map_err(|error| sandbox_broken(&error))?
                .map_err(|message| {
                    let path = path.clone();
                    folders_broken(&FoldersError::Fixture { path, message })
                })?;
        }
    }
    let laid = folders::acting_as(owner, || {
        folders::lay(&case.fixture, bindings, folders, owner)
    });
    let before = laid.and_then(|()| folders::snapshot(folders, owner));
    match before.map_err(|error| folders_broken(&error))? {
        before if !before.cut => Ok(before),
        _ => Err(folders_broken(&FoldersError::TooLarge {
            path: "the whole".to_owned(),
        })),
    }
}

async fn launch_all(
    case: &Case,
    bindings: &mut Bindings,
    folders: (&Folders, (u32, u32)),
    cell: &mut Cell,
) -> Result<Vec<LaunchEvidence>, Broken> {
    let mock = Mock::serve(cell.take_listener()).map_err(|error: MockError| Broken {
        fault: Fault {
            kind: FaultKind::Sandbox,
            message: error.to_string(),
        },
        hopeless: false,
    })?;
    play::all(case, bindings, folders, cell, &mock)
        .await
        .map_err(|error| sandbox_broken(&error))
}

/// The places and the nonces of a case. A nonce cannot be guessed without the seed, and is a word of 13 characters.
pub fn bindings(seed: &str, case: &Case) -> Bindings {
    let places = [
        ("workspace", folders::WORKSPACE),
        ("outside", folders::OUTSIDE),
        ("home", folders::HOME),
        ("state", folders::STATE),
    ];
    let mut values: BTreeMap<String, String> = places
        .into_iter()
        .map(|(name, path)| (name.to_owned(), path.to_owned()))
        .collect();
    for name in Bindings::nonce_names(&case.text) {
        values.insert(format!("nonce:{name}"), nonce(seed, &case.id, &name));
    }
    Bindings(values)
}

fn nonce(seed: &str, case: &CaseId, name: &str) -> String {
    let drawn = Sha256::digest(format!("{seed}\0{case}\0{name}"));
    let hex: String = drawn
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("n{hex}")
}

fn sandbox_broken(error: &SandboxError) -> Broken {
    let full = matches!(error, SandboxError::DiskFull { .. });
    let hopeless = matches!(
        error,
        SandboxError::DiskFull { .. }
            | SandboxError::NotPermitted { .. }
            | SandboxError::Daemon { .. }
            | SandboxError::ImageMissing { .. }
    );
    Broken {
        fault: Fault {
            kind: if full {
                FaultKind::DiskFull
            } else {
                FaultKind::Sandbox
            },
            message: error.to_string(),
        },
        hopeless,
    }
}

fn folders_broken(error: &FoldersError) -> Broken {
    let source = std::error::Error::source(error).map_or(String::new(), |why| format!(": {why}"));
    Broken {
        fault: Fault {
            kind: FaultKind::Files,
            message: format!("{error}{source}"),
        },
        hopeless: false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn nonces_follow_the_seed_the_case_and_the_name() {
        let text = "title = \"{nonce:a} {nonce:b} {nonce:a}\"\npurpose = \"p\"\nclause = \"a.b.c\"\n\
            class = \"channel\"\n[[launch]]\nroute = \"cli\"\n[[expect]]\nchannel = \"exit\"\nequals = 0\n";
        let case = |id: &str| Case::parse(CaseId::new(id), Path::new("x"), text).expect("a case");
        let drawn = bindings("s", &case("controls/x"));
        assert_eq!(drawn.0.len(), 6);
        let a = &drawn.0["nonce:a"];
        assert!(a.len() == 13 && a.starts_with('n') && *a != drawn.0["nonce:b"]);
        assert_eq!(drawn, bindings("s", &case("controls/x")));
        assert_ne!(*a, bindings("t", &case("controls/x")).0["nonce:a"]);
        assert_ne!(*a, bindings("s", &case("controls/y")).0["nonce:a"]);
    }
}
