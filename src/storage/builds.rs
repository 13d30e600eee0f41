//! Builds below `data/builds/`: one folder each, with a record, what was submitted, and what the builder said.
//!
//! A record is written anew, as a whole, after each step. A build whose process died is void: nothing of it counts.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::domain::build::{Build, State};
use crate::domain::model_call::ModelCall;

/// Calls of the model, in the order in which they ended.
const TRAFFIC: &str = "traffic.jsonl.gz";
const RECORD: &str = "build.json";
const LOCK: &str = "lock";

#[derive(Debug, thiserror::Error)]
pub enum BuildsError {
    #[error("there is already a build, or a frozen candidate, of the name {name}")]
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

/// The folder of a build that this process makes. While it lives, the build's lock is held.
#[derive(Debug)]
pub struct BuildFolder {
    pub path: PathBuf,
    _lock: File,
}

impl BuildFolder {
    /// Makes the folder of a new build. `name` is its own when it is to be `exact`, and else the first free of
    /// `name-1`, `name-2`, …; a name that `is_taken` is not free, nor is that of another build.
    pub fn create(
        builds: &Path,
        name: &str,
        exact: bool,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<(Self, String)> {
        fs::create_dir_all(builds).map_err(at(builds))?;
        for number in 1.. {
            let name = match exact {
                true => name.to_owned(),
                false => format!("{name}-{number}"),
            };
            let path = builds.join(&name);
            let made = match is_taken(&name) {
                true => Err(std::io::ErrorKind::AlreadyExists.into()),
                false => fs::create_dir(&path),
            };
            match made {
                Ok(()) => {
                    let lock = File::create(path.join(LOCK)).map_err(at(&path))?;
                    lock.lock().map_err(at(&path))?;
                    return Ok((Self { path, _lock: lock }, name));
                }
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(BuildsError::File {
                        path,
                        source: error,
                    });
                }
                Err(_) if exact => return Err(BuildsError::Exists { name }),
                Err(_) => {}
            }
        }
        unreachable!("numbers do not end")
    }

    /// Writes the record in place of the one before.
    pub fn write(&self, build: &Build) -> Result<()> {
        write(&self.path, build)
    }

    /// Keeps what the builder printed in a turn.
    pub fn write_transcript(&self, turn: usize, stdout: &[u8], stderr: &[u8]) -> Result<()> {
        for (stream, bytes) in [("stdout", stdout), ("stderr", stderr)] {
            let path = self.path.join(format!("turn-{turn}.{stream}"));
            fs::write(&path, bytes).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Keeps a call of the model: one line of JSON, packed for itself, so that what was kept before a kill stays whole.
    pub fn add_call(&self, call: &ModelCall) -> Result<()> {
        let path = self.path.join(TRAFFIC);
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        serde_json::to_writer(&mut packer, call).expect("a call is plain data");
        let packed = packer
            .write_all(b"\n")
            .and_then(|()| packer.finish())
            .map_err(at(&path))?;
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&packed))
            .map_err(at(&path))
    }

    /// Where a submission is kept, counted from 1.
    pub fn submission(&self, number: usize) -> PathBuf {
        self.path.join(format!("submission-{number}"))
    }
}

/// Where the candidate lies in the folder of a build that passed: with the build's name, since a candidate is named by
/// it.
pub fn candidate_in(folder: &Path) -> PathBuf {
    folder.join(folder.file_name().unwrap_or_default())
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
        let lock = match File::open(path.join(LOCK)) {
            Ok(lock) => lock,
            // No build's, or it died before it had one.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(at(&path)(error)),
        };
        // Read under the lock: what was running a moment ago may have ended since.
        if lock.try_lock().is_err() {
            continue;
        }
        if let Some(mut build) = read(&path)?
            && build.state == State::Running
        {
            build.state = State::Void;
            build.why = Some("its process had died".to_owned());
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
            why: None,
            builder: "true".into(),
            packages: None,
            model: None,
            started_at: "2026-12-01T00:00:00Z".into(),
            duration_ms: 0,
            settings: "t".into(),
            document: "d".into(),
            skeleton: "s".into(),
            sandbox: "namespaces".into(),
            version: "0".into(),
            turns: Vec::new(),
            submissions: Vec::new(),
        }
    }

    #[test]
    fn a_build_whose_process_is_gone_is_void_and_others_stay() {
        let builds = tempfile::tempdir().expect("a folder");
        let create = |state| {
            let (folder, name) =
                BuildFolder::create(builds.path(), "m", false, |_| false).expect("makes");
            folder.write(&build(&name, state)).expect("writes");
            folder
        };
        let living = create(State::Running);
        drop(create(State::Running));
        drop(create(State::Passed));
        assert_eq!(void_dead(builds.path()).expect("reads"), ["m-2"]);
        assert_eq!(void_dead(builds.path()).expect("reads"), [""; 0]);
        drop(living);
        assert_eq!(void_dead(builds.path()).expect("reads"), ["m-1"]);
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
        let create = || BuildFolder::create(builds.path(), "x", true, |_| false);
        let first = create();
        assert!(first.is_ok());
        assert!(matches!(create(), Err(BuildsError::Exists { .. })));
        assert_eq!(read_all(builds.path()).expect("reads"), []);
        let create =
            |exact, name| BuildFolder::create(builds.path(), name, exact, |it| it == "y-1");
        assert!(matches!(
            create(true, "y-1"),
            Err(BuildsError::Exists { .. })
        ));
        assert_eq!(create(false, "y").expect("makes").1, "y-2");
    }
}
