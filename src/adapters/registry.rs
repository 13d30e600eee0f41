//! Package registries through their own clients, npm and pip. Everything is pinned by hash in lock files, and no code of
//! a package runs here: install scripts stay off, and Python packages come as wheels.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::domain::adapter::Packages;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("{program} is not installed")]
    NoClient {
        program: &'static str,
        source: io::Error,
    },
    #[error("{command} failed: {said}")]
    Refused { command: String, said: String },
    #[error("cannot copy {path}")]
    Lock { path: PathBuf, source: io::Error },
}

/// Installs what the lock files in `locks` name into `into`, an empty folder: `node_modules/` of npm, `site/` of pip.
pub fn install(packages: &Packages, locks: &Path, into: &Path) -> Result<(), RegistryError> {
    for name in packages.files() {
        let path = locks.join(name);
        std::fs::copy(&path, into.join(name))
            .map_err(|source| RegistryError::Lock { path, source })?;
    }
    match packages {
        Packages::Npm => {
            let arguments = "ci --ignore-scripts --omit=dev --omit=optional --no-audit --no-fund";
            run("npm", arguments.split(' ').map(str::to_owned), into)
        }
        Packages::Pip { python } => {
            let arguments = format!(
                "-m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
                 --only-binary :all: --implementation cp --python-version {python} \
                 --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 \
                 --target site --requirement requirements.txt"
            );
            let arguments = arguments.split_whitespace().map(str::to_owned);
            run("python3", arguments, into)
        }
    }
}

fn run(
    program: &'static str,
    arguments: impl Iterator<Item = String>,
    folder: &Path,
) -> Result<(), RegistryError> {
    let arguments: Vec<String> = arguments.collect();
    let output = Command::new(program)
        .args(&arguments)
        .current_dir(folder)
        .output()
        .map_err(|source| RegistryError::NoClient { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    Err(RegistryError::Refused {
        command: format!(
            "{program} {}",
            arguments[..3.min(arguments.len())].join(" ")
        ),
        said: cause(&String::from_utf8_lossy(&output.stderr)),
    })
}

/// Of what a client says when it fails.
const LINES_SHOWN: usize = 6;

/// The first lines that say what is wrong: after them npm explains itself, and before them pip tells of its progress.
fn cause(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| {
        let line = line.to_lowercase();
        line.contains("error") && !line.ends_with("error")
    });
    let chosen: Vec<&str> = lines.take(LINES_SHOWN).collect();
    match chosen.is_empty() {
        true => said.trim().to_owned(),
        false => chosen.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_and_not_the_manual() {
        let npm = "npm warn old\nnpm error code EUSAGE\nnpm error\nnpm error Missing: x@1 from lock file\n";
        let shown = "npm error code EUSAGE\nnpm error Missing: x@1 from lock file";
        assert_eq!(cause(npm), shown);
        assert_eq!(
            cause("Collecting a\nERROR: no network\n"),
            "ERROR: no network"
        );
        assert_eq!(cause(" killed \n"), "killed");
    }
}
