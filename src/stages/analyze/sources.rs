//! Facts of the candidates' sources: counted in the frozen trees of a run, or read from a file.

use std::collections::BTreeMap;

use super::{Config, csv_failure};
use crate::domain::source_facts::SourceFacts;
use crate::methods::source_facts::source_facts;
use crate::stages::{Classify, Context, Kind, Result};
use crate::storage::candidates;
use crate::storage::source_facts as facts_file;

/// By candidate; those that are not known are absent. A file goes before what could be counted.
pub(super) fn facts(
    context: &Context,
    config: &Config,
    digests: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, SourceFacts>> {
    if let Some(path) = &config.facts {
        return facts_file::read(path).map_err(csv_failure);
    }
    let mut facts = BTreeMap::new();
    for (candidate, digest) in digests {
        let tree = candidates::installed(&context.project.frozen(), digest);
        if tree.is_dir() {
            let files = candidates::files(&tree).kind(Kind::Environment)?;
            let counted = source_facts(&files, &config.settings.dedicated);
            facts.insert(candidate.clone(), counted);
        }
    }
    Ok(facts)
}
