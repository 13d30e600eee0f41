//! Builds below `data/builds/`: one folder each, with a record, what was submitted, and what the builder said.
//!
//! A record is written anew, as a whole, after each step. A build whose process died is void: nothing of it counts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const RECORD: &str = "build.json";
const LOCK: &str = "lock";

#[derive(Debug, thiserror::Error)]
pub enum BuildsError {
    #[error("there is already a build {name}")]
    Exists { name: String },
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {message}")]
    Record { path: PathBuf, message: String },
}

type Result<T> = std::result::Result<T, BuildsError>;

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Running,
    /// A submission passed the contract check; the candidate is frozen.
    Passed,
    /// All submissions were returned.
    Failed,
    /// The builder ended without a submission: it failed, or its time was over.
    NotDelivered,
    /// Our process died meanwhile.
    Void,
}

/// The file `build.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub name: String,
    pub state: State,
    /// The builder's command.
    pub builder: String,
    /// RFC 3339.
    pub started_at: String,
    /// Digest of the rendered document that the builder was given.
    pub document: String,
    /// Digest of the skeleton that it began with.
    pub skeleton: String,
    pub sandbox: String,
    /// The version of this program.
    pub version: String,
    pub rounds: Vec<Round>,
}

/// One run of the builder, and what became of its submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// How the builder's command ended, such as `exit 0`.
    pub ended: String,
    pub duration_ms: u64,
    /// Digest of the submission; none when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the contract check found, as `file:line: message`.
    pub findings: Vec<String>,
}

/// The folder of a build that this process makes. While it lives, the build's lock is held.
#[derive(Debug)]
pub struct BuildFolder {
    pub path: PathBuf,
    _lock: File,
}

impl BuildFolder {
    /// Makes the folder of a new build; an absent name becomes the day and a letter.
    pub fn create(builds: &Path, name: Option<&str>, day: &str) -> Result<(Self, String)> {
        fs::create_dir_all(builds).map_err(at(builds))?;
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_owned()],
            None => letters()
                .map(|letters| format!("{day}-{letters}"))
                .collect(),
        };
        for name in names {
            let path = builds.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = File::create(path.join(LOCK)).map_err(at(&path))?;
                    lock.lock().map_err(at(&path))?;
                    return Ok((Self { path, _lock: lock }, name));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(BuildsError::File { path, source }),
            }
        }
        Err(BuildsError::Exists {
            name: name.unwrap_or(day).to_owned(),
        })
    }

    /// Writes the record in place of the one before.
    pub fn write(&self, build: &Build) -> Result<()> {
        write(&self.path, build)
    }

    /// Keeps what the builder printed in a round.
    pub fn write_transcript(&self, round: usize, stdout: &[u8], stderr: &[u8]) -> Result<()> {
        for (stream, bytes) in [("stdout", stdout), ("stderr", stderr)] {
            let path = self.path.join(format!("round-{round}.{stream}"));
            fs::write(&path, bytes).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Where the submission of a round is kept.
    pub fn submission(&self, round: usize) -> PathBuf {
        self.path.join(format!("submission-{round}"))
    }

    /// Where the candidate lies when it passed: a folder with the build's name, since a candidate is named by it.
    pub fn candidate(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// The records of all builds, sorted by name.
pub fn read_all(builds: &Path) -> Result<Vec<Build>> {
    let mut found = Vec::new();
    for path in folders(builds)? {
        found.extend(read(&path)?);
    }
    Ok(found)
}

/// Marks the builds void whose process is gone. Returns their names.
pub fn void_dead(builds: &Path) -> Result<Vec<String>> {
    let mut voided = Vec::new();
    for path in folders(builds)? {
        let Some(mut build) = read(&path)? else {
            continue;
        };
        let lock = File::open(path.join(LOCK)).map_err(at(&path))?;
        if build.state == State::Running && lock.try_lock().is_ok() {
            build.state = State::Void;
            write(&path, &build)?;
            voided.push(build.name);
        }
    }
    Ok(voided)
}

fn write(folder: &Path, build: &Build) -> Result<()> {
    let path = folder.join(RECORD);
    let mut text = serde_json::to_string_pretty(build).expect("a record is plain data");
    text.push('\n');
    let draft = folder.join("build.json.new");
    fs::write(&draft, text).map_err(at(&draft))?;
    fs::rename(&draft, &path).map_err(at(&path))
}

/// None for a folder without a record: its process died before there was anything to tell.
fn read(folder: &Path) -> Result<Option<Build>> {
    let path = folder.join(RECORD);
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| BuildsError::Record {
                path,
                message: error.to_string(),
            }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BuildsError::File { path, source }),
    }
}

fn folders(builds: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    if !builds.is_dir() {
        return Ok(folders);
    }
    for entry in fs::read_dir(builds).map_err(at(builds))? {
        let path = entry.map_err(at(builds))?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// `a` … `z`, `aa` … `zz`
fn letters() -> impl Iterator<Item = String> {
    let one = || ('a'..='z').map(String::from);
    one().chain(one().flat_map(move |first| one().map(move |second| format!("{first}{second}"))))
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> BuildsError + '_ {
    move |source| BuildsError::File {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(name: &str, state: State) -> Build {
        Build {
            name: name.into(),
            state,
            builder: "true".into(),
            started_at: "2026-12-01T00:00:00Z".into(),
            document: "d".into(),
            skeleton: "s".into(),
            sandbox: "namespaces".into(),
            version: "0".into(),
            rounds: Vec::new(),
        }
    }

    #[test]
    fn a_build_whose_process_is_gone_is_void_and_others_stay() {
        let builds = tempfile::tempdir().expect("a folder");
        let create = |state| {
            let (folder, name) =
                BuildFolder::create(builds.path(), None, "2026-12-01").expect("makes");
            folder.write(&build(&name, state)).expect("writes");
            folder
        };
        let living = create(State::Running);
        drop(create(State::Running));
        drop(create(State::Passed));
        assert_eq!(void_dead(builds.path()).expect("reads"), ["2026-12-01-b"]);
        assert_eq!(void_dead(builds.path()).expect("reads"), [""; 0]);
        drop(living);
        assert_eq!(void_dead(builds.path()).expect("reads"), ["2026-12-01-a"]);
        let states: Vec<State> = read_all(builds.path())
            .expect("reads")
            .iter()
            .map(|build| build.state)
            .collect();
        assert_eq!(states, [State::Void, State::Void, State::Passed]);
    }

    #[test]
    fn a_name_is_given_once() {
        let builds = tempfile::tempdir().expect("a folder");
        let create = || BuildFolder::create(builds.path(), Some("x"), "2026-12-01");
        let first = create();
        assert!(first.is_ok());
        assert!(matches!(create(), Err(BuildsError::Exists { .. })));
        assert_eq!(read_all(builds.path()).expect("reads"), []);
    }
}
