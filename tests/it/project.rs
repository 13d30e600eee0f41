//! A project of its own for one test, and the `pipeline` program run in it from an empty environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

pub struct Project {
    folder: tempfile::TempDir,
}

/// What a run of the program left: exit code, standard output, standard error.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    /// With the settings and the document of this repository, and nothing else.
    pub fn new() -> Self {
        let project = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for part in ["pipeline", "data/document"] {
            copy(&repository().join(part), &project.path(part));
        }
        project
    }

    /// With everything that the repository ships: sample, suite, candidates and decisions.
    pub fn whole() -> Self {
        let project = Self::new();
        for part in [
            "cases",
            "candidates",
            "skeleton",
            "reviews",
            "data/sample",
            "data/inventory",
        ] {
            copy(&repository().join(part), &project.path(part));
        }
        // Cells belong to another user than the folder of a test.
        for folder in ["", "data"] {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(project.path(folder), open).expect("sets");
        }
        project
    }

    /// Copies a part of this repository to the same place, and lets cells see it.
    pub fn take(&self, part: &str) {
        copy(&repository().join(part), &self.path(part));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path(""), open).expect("sets");
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("is below the root")).expect("makes folders");
        std::fs::write(&path, text).expect("writes");
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pipeline"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("PIPELINE_NOW", "2026-12-01T00:00:00Z");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.command(arguments))
    }

    /// Runs with `--json`, expects exit code 0, and reads standard output.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[&["--json"], arguments].concat());
        assert_eq!(ran.code, 0, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran.json()
    }
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

pub fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the program starts");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Whether this run of the tests was asked to use Docker; said aloud once when it was not.
pub fn docker_asked() -> bool {
    asked("Docker tests", "PIPELINE_TEST_DOCKER")
}

/// Whether this run of the tests was asked for some of them by a variable; said aloud once when it was not.
pub fn asked(what: &str, variable: &str) -> bool {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let asked = std::env::var_os(variable).is_some_and(|asked| asked == "1");
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !asked && said.insert(variable.to_owned()) {
        // Past the capture of the test runner, so that it is seen in a run that passes.
        let text = format!("\n{what} were not asked to run; set {variable}=1\n");
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes())
            .expect("stderr takes it");
    }
    asked
}

/// This repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("makes folders");
    for entry in std::fs::read_dir(from).expect("reads the folder") {
        let path = entry.expect("reads the folder").path();
        let target = to.join(path.file_name().expect("has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copies");
        }
    }
}
