//! A candidate that is an adapter of a shipping harness, ready to be run: its packages are there.

use std::path::{Path, PathBuf};

use super::{Classify, Context, Failure, Kind, Result};
use crate::adapters::sandbox::{Limits, Mount};
use crate::domain::adapter::Adapter;
use crate::domain::candidate::{Candidate, Source};
use crate::storage::candidates;

/// Where the packages of a harness lie inside a cell, read-only.
pub const PACKAGES: &str = "/packages";

#[derive(Debug, Clone)]
pub struct Adapted {
    pub adapter: Adapter,
    packages: Option<PathBuf>,
}

/// The adapter in a candidate's tree; none for a candidate that somebody wrote. `name` is what a person typed.
pub fn read(context: &Context, tree: &Path, name: &str) -> Result<Option<Adapted>> {
    let Some(adapter) = candidates::adapter(tree).kind(Kind::Settings)? else {
        return Ok(None);
    };
    let place = adapter
        .packages
        .as_ref()
        .map(|from| candidates::packages_place(&context.project.packages(), tree, from))
        .transpose()
        .kind(Kind::Settings)?;
    if let Some(place) = &place
        && !place.exists()
    {
        return Err(Failure::environment(format!(
            "the packages of {} {} are not installed",
            adapter.harness, adapter.version
        ))
        .hint(format!("pipeline prepare {name}")));
    }
    Ok(Some(Adapted {
        adapter,
        packages: place,
    }))
}

impl Adapted {
    pub fn mounts(&self) -> Vec<Mount> {
        let packages = self.packages.iter();
        packages
            .map(|place| Mount::read_only(place, PACKAGES))
            .collect()
    }
}

/// The limits of a cell, with what a shipping harness needs.
pub fn limits(adapted: Option<&Adapted>, limits: &Limits) -> Limits {
    let own = adapted.map(|one| one.adapter.limits).unwrap_or_default();
    Limits {
        memory_mib: own.memory_mib.unwrap_or(limits.memory_mib),
        pids: own.pids.unwrap_or(limits.pids),
        tmp_mib: own.tmp_mib.unwrap_or(limits.tmp_mib),
        ..limits.clone()
    }
}

/// The folder in which a candidate was written.
pub fn source_tree(candidate: &Candidate) -> &Path {
    match &candidate.source {
        Source::Tree(tree) => tree,
        Source::Mutant { of, .. } => of,
    }
}
