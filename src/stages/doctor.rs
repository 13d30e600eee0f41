//! What this machine can and cannot do, found out by doing, and what to type where something is missing.

use std::path::Path;

use serde::Serialize;

use super::sandboxes::{SandboxKind, Settings};
use super::{Context, Result};
use crate::adapters::sandbox::probe::{self, Finding, State};
use crate::adapters::sandbox::{DockerConfig, Namespaces};

#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub parts: Vec<Part>,
    /// In the sandbox of pipeline/evaluate.toml every promise that can be tried holds, weaker or not, and Python is there.
    pub ready: bool,
}

/// A sandbox, or what else the machine has to have.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    pub name: &'static str,
    /// `pipeline run` needs it.
    pub needed: bool,
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Check {
    pub what: String,
    /// `holds`, `holds weaker`, `does not hold` or `not provable here`.
    pub state: &'static str,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

pub fn run(context: &Context) -> Result<Summary> {
    let settings = Settings::read(context)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let docker = DockerConfig {
        image: settings.image.clone(),
        ..DockerConfig::default()
    };
    let (namespace, docker) = runtime.block_on(async {
        (
            probe::namespaces(&Namespaces::default()).await,
            probe::docker(docker).await,
        )
    });
    let parts = vec![
        Part {
            name: "machine",
            needed: true,
            checks: machine(context, &settings.cells),
        },
        part(
            "namespace",
            settings.sandbox == SandboxKind::Namespace,
            namespace,
        ),
        part("docker", settings.sandbox == SandboxKind::Docker, docker),
    ];
    let ready = parts.iter().filter(|part| part.needed).all(|part| {
        part.checks
            .iter()
            .all(|check| check.state != State::Broken.as_str())
    });
    Ok(Summary { parts, ready })
}

fn part(name: &'static str, needed: bool, findings: Vec<Finding>) -> Part {
    let checks = findings
        .into_iter()
        .map(|finding| Check {
            what: finding.promise.to_owned(),
            state: finding.state.as_str(),
            detail: finding.detail,
            remedy: finding.remedy,
        })
        .collect();
    Part {
        name,
        needed,
        checks,
    }
}

/// Python for candidates, and room for runs.
fn machine(context: &Context, cells: &Path) -> Vec<Check> {
    let script = "import sys; print('%d.%d.%d' % sys.version_info[:3]); sys.exit(sys.version_info < (3, 10))";
    let python = std::process::Command::new("/usr/bin/python3")
        .args(["-c", script])
        .output();
    let python = match python {
        Ok(output) => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            check(
                "/usr/bin/python3",
                output.status.success(),
                version,
                "install Python 3.10 or later as /usr/bin/python3",
            )
        }
        Err(error) => check(
            "/usr/bin/python3",
            false,
            error.to_string(),
            "apt-get install python3, or the like of your distribution",
        ),
    };
    let data = context.project.root().join("data");
    vec![
        python,
        folder(
            "data/",
            &data,
            "give yourself the right to write there, or free some room",
        ),
        folder(
            "folder of cells",
            cells,
            "name another folder as `cells` in pipeline/evaluate.toml",
        ),
    ]
}

/// Whether files can be made in a folder.
fn folder(what: &str, path: &Path, remedy: &str) -> Check {
    match tempfile::tempfile_in(path) {
        Ok(_) => check(
            what,
            true,
            format!("{} can be written", path.display()),
            remedy,
        ),
        Err(error) => check(what, false, format!("{}: {error}", path.display()), remedy),
    }
}

fn check(what: &str, fine: bool, detail: String, remedy: &str) -> Check {
    let state = if fine { State::Holds } else { State::Broken };
    Check {
        what: what.to_owned(),
        state: state.as_str(),
        detail,
        remedy: (!fine).then(|| remedy.to_owned()),
    }
}
