//! Compare: the source of a candidate against that of a mature harness, module by module.
//!
//! Every difference is listed; those that follow from a clause are stored and wait for a reviewer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::candidate::Source;
use crate::domain::difference::{Difference, OUTSIDE, Side, Sight};
use crate::domain::digest::Digester;
use crate::domain::visible::{shortened, visible_line};
use crate::methods::comparison::aliases::Aliases;
use crate::methods::comparison::derivation::{Clauses, Derivation, module_of};
use crate::methods::comparison::differences::{self, Found, Tree};
use crate::methods::comparison::partition::{Evidence, Features};
use crate::methods::comparison::python::{self, Unit};
use crate::storage::database::Database;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{candidates, documents, source_tree};

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    /// A name below `candidates/` or a path.
    pub candidate: String,
    /// The root of the target's source.
    pub target: PathBuf,
    /// What the target is called; from its package when not given.
    pub target_name: Option<String>,
}

/// `pipeline/compare.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub same_words: f64,
    pub skip: Vec<String>,
    pub evidence: Evidence,
    pub derivation: Derivation,
    pub aliases: Aliases,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub candidate: String,
    pub target: String,
    /// Features of the document in the order of their names, then what no feature claims.
    pub modules: Vec<Module>,
    /// The traced ones first, the best first; extras are last.
    pub differences: Vec<Difference>,
    /// Traced, and stored for review.
    pub n_traced: usize,
    /// Of these, not known from any comparison before.
    pub n_new: usize,
    pub n_not_derivable: usize,
    /// What only the candidate has.
    pub n_extra: usize,
}

/// One module on both sides.
#[derive(Debug, Default, Serialize)]
pub struct Module {
    pub module: String,
    pub candidate: Part,
    pub target: Part,
    pub n_missing: usize,
    pub n_differs: usize,
    /// Of the missing and the differing ones.
    pub n_traced: usize,
    pub n_extra: usize,
}

#[derive(Debug, Default, Clone, Serialize)]
pub struct Part {
    /// `path:line name` of each function, method, class and file body.
    pub units: Vec<String>,
    pub n_lines: usize,
}

/// Characters of a message that are kept; what a harness says in more is not said in one error.
const N_SHOWN: usize = 300;

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let project = &context.project;
    let settings = &config.settings;
    let document =
        documents::read(&project.document()).map_err(|findings| Failure::findings(&findings))?;
    let skip = globs(&settings.skip)?;
    let candidate = candidates::find(&project.candidates(), &config.candidate).kind(Kind::User)?;
    let unpacked = tempfile::tempdir().kind(Kind::Environment)?;
    let candidate_root = match &candidate.source {
        Source::Tree(tree) => tree.clone(),
        Source::Mutant { .. } => {
            let root = unpacked.path().join("tree");
            candidates::materialise(&candidate, &root).kind(Kind::Settings)?;
            root
        }
    };
    if !config.target.is_dir() {
        return Err(Failure::user(format!(
            "the target {} is no folder",
            config.target.display()
        ))
        .hint("unpack the target's source first, for example: pip download --no-deps NAME && python3 -m zipfile -e *.whl DIR"));
    }
    let target_name = config
        .target_name
        .clone()
        .unwrap_or_else(|| source_tree::name(&config.target));
    let target_name = visible_line(&target_name).into_owned();
    context.progress.begin("compare", None);
    let ours = units(&candidate_root, &skip)?;
    let theirs = units(&config.target, &skip)?;
    let features = Features::of(&document);
    let our_places = features.place(&ours, &settings.aliases, &settings.evidence);
    let their_places = features.place(&theirs, &settings.aliases, &settings.evidence);
    let found = differences::differences(
        Tree {
            units: &ours,
            placement: &our_places,
        },
        Tree {
            units: &theirs,
            placement: &their_places,
        },
        &settings.aliases,
        settings.same_words,
    );
    let clauses = Clauses::of(&document);
    let mut differences: Vec<Difference> = found
        .into_iter()
        .map(|found| traced(&target_name, found, &clauses, &settings.derivation))
        .collect();
    differences.sort_by(order);
    let candidates_to_store: Vec<Difference> = differences
        .iter()
        .filter(|difference| difference.side != Side::Extra)
        .cloned()
        .collect();
    let mut database = Database::open(&project.database()).kind(Kind::Environment)?;
    let n_new = crate::storage::differences::replace(
        &mut database,
        &candidate.name,
        &target_name,
        &candidates_to_store,
    )?;
    let n_traced = candidates_to_store
        .iter()
        .filter(|difference| difference.trace.is_some())
        .count();
    context.progress.end(&format!(
        "{n_traced} differences follow from a clause, {n_new} of them new"
    ));
    let summary = Summary {
        candidate: candidate.name.clone(),
        target: target_name,
        modules: modules(
            &features,
            (&ours, &our_places),
            (&theirs, &their_places),
            &differences,
        ),
        n_traced,
        n_new,
        n_not_derivable: candidates_to_store.len() - n_traced,
        n_extra: differences.len() - candidates_to_store.len(),
        differences,
    };
    let mut inputs = Digester::default();
    inputs.part(&summary.candidate).part(&summary.target);
    for difference in &summary.differences {
        inputs.part(&difference.id);
    }
    let entry = StageEntry {
        inputs: inputs.finish(),
        finished_at: context.timestamp(),
        summary: serde_json::to_string(&serde_json::json!({
            "candidate": summary.candidate,
            "target": summary.target,
            "n_traced": summary.n_traced,
            "n_new": summary.n_new,
            "n_not_derivable": summary.n_not_derivable,
        }))?,
    };
    stage_log::finish(&mut database, "compare", &entry)?;
    Ok(summary)
}

fn globs(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).kind(Kind::Settings)?);
    }
    set.build().kind(Kind::Settings)
}

fn units(root: &Path, skip: &GlobSet) -> Result<Vec<Unit>> {
    let files = source_tree::read(root, "py", skip).kind(Kind::User)?;
    Ok(files
        .iter()
        .flat_map(|(path, text)| python::units(path, text))
        .collect())
}

/// A name belongs to the module of the clause that writes it; anything else stays where it was seen. What stands
/// outside the document's features follows from no clause.
fn traced(target: &str, found: Found, clauses: &Clauses<'_>, how: &Derivation) -> Difference {
    let trace = if found.module == OUTSIDE && !found.kind.is_named() {
        None
    } else {
        clauses.trace(&found, how)
    };
    let module = match &trace {
        Some(trace) if found.kind.is_named() => module_of(&trace.clause),
        _ => found.module.clone(),
    };
    let clean = |sight: &Sight| Sight {
        place: visible_line(&sight.place).into_owned(),
        shown: shortened(&visible_line(&sight.shown), N_SHOWN).into_owned(),
    };
    let ours = found.candidate.as_ref().map(clean);
    let theirs = found.target.as_ref().map(clean);
    let shown = |sight: &Option<Sight>| sight.as_ref().map_or("", |sight| &sight.shown).to_owned();
    let title = match found.side {
        Side::Missing => format!("{} not in the candidate: {}", found.kind, shown(&theirs)),
        Side::Extra => format!("{} only in the candidate: {}", found.kind, shown(&ours)),
        Side::Differs => format!(
            "{} differs: {} in the target, {} in the candidate",
            found.kind,
            shown(&theirs),
            shown(&ours)
        ),
    };
    Difference {
        id: differences::id(target, &module, &found),
        module,
        kind: found.kind,
        side: found.side,
        title,
        target: theirs,
        candidate: ours,
        trace,
    }
}

fn order(a: &Difference, b: &Difference) -> std::cmp::Ordering {
    let rank =
        |difference: &Difference| (difference.side == Side::Extra, difference.trace.is_none());
    let score =
        |difference: &Difference| difference.trace.as_ref().map_or(0.0, |trace| trace.score);
    rank(a)
        .cmp(&rank(b))
        .then(score(b).total_cmp(&score(a)))
        .then_with(|| (&a.module, a.kind, &a.title).cmp(&(&b.module, b.kind, &b.title)))
        .then_with(|| a.id.cmp(&b.id))
}

fn modules(
    features: &Features,
    ours: (&[Unit], &[String]),
    theirs: (&[Unit], &[String]),
    differences: &[Difference],
) -> Vec<Module> {
    let names = features.names().chain([OUTSIDE]);
    let mut modules: Vec<Module> = names
        .map(|name| Module {
            module: name.to_owned(),
            ..Module::default()
        })
        .collect();
    let index: BTreeMap<String, usize> = modules
        .iter()
        .enumerate()
        .map(|(idx, module)| (module.module.clone(), idx))
        .collect();
    for (side, (units, places)) in [ours, theirs].into_iter().enumerate() {
        for (unit, place) in units.iter().zip(places) {
            let module = &mut modules[index[place]];
            let part = match side {
                0 => &mut module.candidate,
                _ => &mut module.target,
            };
            let unit_place = format!("{}:{} {}", unit.file.display(), unit.line, unit.name);
            part.units
                .push(visible_line(unit_place.trim_end()).into_owned());
            part.n_lines += unit.n_lines;
        }
    }
    for difference in differences {
        let module = &mut modules[index[&difference.module]];
        let count = match difference.side {
            Side::Missing => &mut module.n_missing,
            Side::Differs => &mut module.n_differs,
            Side::Extra => &mut module.n_extra,
        };
        *count += 1;
        if difference.side != Side::Extra && difference.trace.is_some() {
            module.n_traced += 1;
        }
    }
    modules
}
