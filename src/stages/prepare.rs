//! Installs the packages of shipping harnesses: the one step that may use the network, and never part of a run. They
//! are sealed by digest of their lock files, so that a second call does nothing.

use std::path::PathBuf;

use serde::Serialize;

use super::adapted::source_tree;
use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::registry::{self, RegistryError};
use crate::storage::candidates;

#[derive(Debug, Clone)]
pub struct Config {
    /// Names below `candidates/`, or paths.
    pub candidates: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub prepared: Vec<Prepared>,
}

#[derive(Debug, Serialize)]
pub struct Prepared {
    pub candidate: String,
    pub harness: String,
    pub version: String,
    /// Where its packages lie; none when it needs none.
    pub folder: Option<PathBuf>,
    /// They were there already.
    pub known: bool,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let total = config.candidates.len() as u64;
    context.progress.begin("prepare", Some(total));
    let mut prepared = Vec::new();
    for name in &config.candidates {
        prepared.push(prepare(context, name)?);
        context.progress.advance(1);
    }
    let n_new = prepared.iter().filter(|one| !one.known).count();
    context.progress.end(&format!("{n_new} installed"));
    Ok(Summary { prepared })
}

fn prepare(context: &Context, name: &str) -> Result<Prepared> {
    let candidate = candidates::find(&context.project.candidates(), name)
        .kind(Kind::User)
        .map_err(|failure| failure.hint("ls candidates/adapters"))?;
    let tree = source_tree(&candidate);
    let adapter = candidates::adapter(tree)
        .kind(Kind::Settings)?
        .ok_or_else(|| {
            Failure::user(format!(
                "{} is no adapter of a shipping harness: nothing has to be prepared",
                candidate.name
            ))
            .hint("ls candidates/adapters")
        })?;
    let mut one = Prepared {
        candidate: candidate.name.clone(),
        harness: adapter.harness,
        version: adapter.version,
        folder: None,
        known: true,
    };
    let Some(from) = &adapter.packages else {
        return Ok(one);
    };
    let packages = context.project.packages();
    let place = candidates::packages_place(&packages, tree, from).kind(Kind::Settings)?;
    one.folder = Some(place.clone());
    if place.exists() {
        return Ok(one);
    }
    context.progress.note(&format!(
        "installing {} {} from its registry",
        one.harness, one.version
    ));
    // What is half installed has another name, and goes with this call.
    std::fs::create_dir_all(&packages)?;
    let draft = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(&packages)?;
    let folder = draft.path().join("packages");
    std::fs::create_dir(&folder)?;
    registry::install(from, tree, &folder).map_err(|error| registry_failure(&error, name))?;
    let digest = place.file_name().unwrap_or_default().to_string_lossy();
    candidates::seal(&folder, &packages, &digest)?;
    one.known = false;
    Ok(one)
}

fn registry_failure(error: &RegistryError, name: &str) -> Failure {
    let failure = Failure::environment(error.to_string());
    match error {
        RegistryError::NoClient { program, .. } => failure.hint(match *program {
            "npm" => "apt-get install nodejs npm",
            _ => "apt-get install python3-pip",
        }),
        RegistryError::Refused { .. } => failure.hint(format!(
            "this step needs the package registry; with a network type: pipeline prepare {name}"
        )),
        RegistryError::Lock { .. } => failure,
    }
}
