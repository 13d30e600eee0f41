//! What makes a tree an adapter, and where the packages of its harness lie.

use std::fs;
use std::path::{Path, PathBuf};

use super::{CandidatesError, Result, at};
use crate::domain::adapter::{ADAPTER_FILE, Adapter, Packages};
use crate::domain::digest::Digester;
use crate::domain::place::Place;

/// The adapter that a candidate's tree is; none for a candidate that somebody wrote.
pub fn adapter(tree: &Path) -> Result<Option<Adapter>> {
    let file = tree.join(ADAPTER_FILE);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(at(&file))?,
    };
    let adapter = toml::from_str(&text).map_err(|error| CandidatesError::Adapter {
        place: Place::of_offset(&file, &text, error.span().map_or(0, |span| span.start)),
        message: error.message().trim().to_owned(),
    })?;
    Ok(Some(adapter))
}

/// Where the packages that an adapter's lock files name lie below `packages`, whether or not they are there yet: by
/// digest of these files, so that other locks are other packages.
pub fn packages_place(packages: &Path, tree: &Path, from: &Packages) -> Result<PathBuf> {
    let mut digester = Digester::default();
    match from {
        Packages::Npm => digester.part("npm"),
        Packages::Pip { python } => digester.part("pip").part(python),
    };
    for name in from.files() {
        let file = tree.join(name);
        digester
            .part(name)
            .part(fs::read(&file).map_err(at(&file))?);
    }
    Ok(packages.join(digester.finish()))
}
