//! Compare: the source of a candidate against that of a mature harness, group by group.
//!
//! Both trees are partitioned by the document's features. Every difference is listed; those that follow from a clause
//! are stored and wait for a reviewer.

mod judge;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;

pub use summary::{Module, Part, Placed, ReadingShown, Summary};

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::candidate::Source;
use crate::domain::difference::{Difference, Side};
use crate::domain::digest::Digester;
use crate::domain::visible::visible_line;
use crate::methods::comparison::aliases::Aliases;
use crate::methods::comparison::attribution::{self, Clauses, Scored};
use crate::methods::comparison::differences::{self, Found, Measure, Tree};
use crate::methods::comparison::partition::{Corrections, Evidence, Features};
use crate::methods::comparison::readings;
use crate::methods::comparison::source::{self, Unit};
use crate::methods::comparison::tokens::{Weights, Words};
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
    /// What people wrote about the groups of either tree.
    pub corrections: Corrections,
    /// Hold the differences against what people found by reading.
    pub judge: bool,
}

/// `pipeline/compare.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Two things of the same clause that are alike by this much are the same (0 to 1).
    pub same: f64,
    /// So many differences of one clause are listed and queued.
    pub most_a_clause: usize,
    pub skip: Vec<String>,
    pub weights: Weights,
    pub evidence: Evidence,
    pub attribution: attribution::Settings,
    /// The document's word or words → the words elsewhere.
    pub words: BTreeMap<String, Vec<String>>,
    pub aliases: Aliases,
}

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
    let words = Words::new(&settings.words, &settings.weights);
    let features = Features::of(&document, &words);
    if let Some(group) = config.corrections.unknown(&features) {
        return Err(Failure::settings(format!(
            "pipeline/partition.toml: {group} is no feature of the document"
        ))
        .hint("the names are those of `pipeline compare … --partition`"));
    }
    let mut our_places = features.place(&ours, &settings.aliases, &settings.evidence);
    let mut their_places = features.place(&theirs, &settings.aliases, &settings.evidence);
    let our_corrected = config
        .corrections
        .apply(&candidate.name, &ours, &mut our_places)
        .kind(Kind::Settings)?;
    let their_corrected = config
        .corrections
        .apply(&target_name, &theirs, &mut their_places)
        .kind(Kind::Settings)?;
    let clauses = Clauses::of(&document, &words, &settings.attribution);
    let our_questions = differences::questions(&ours, &clauses);
    let their_questions = differences::questions(&theirs, &clauses);
    let our_tree = Tree {
        units: &ours,
        placement: &our_places,
        questions: &our_questions,
    };
    let their_tree = Tree {
        units: &theirs,
        placement: &their_places,
        questions: &their_questions,
    };
    let measure = Measure {
        clauses: &clauses,
        words: &words,
        aliases: &settings.aliases,
        same: settings.same,
    };
    let mut found = differences::differences(our_tree, their_tree, &measure);
    let n_found = found.len();
    keep_best(&mut found, settings.most_a_clause);
    let n_further = n_found - found.len();
    let mut listed: Vec<(Difference, Vec<Scored>)> = found
        .into_iter()
        .map(|found| {
            let ranked = found.clauses.clone();
            (summary::difference(&target_name, found, &clauses), ranked)
        })
        .collect();
    listed.sort_by(|a, b| order(&a.0, &b.0));
    // What is seen twice in the same words is one difference.
    let mut known = BTreeSet::new();
    listed.retain(|(difference, _)| known.insert(difference.id.clone()));
    let readings = readings::readings(our_tree, their_tree, &measure);
    let judged = if config.judge {
        let names = (candidate.name.as_str(), target_name.as_str());
        let clauses = &clauses;
        Some(judge::figures(context, names, &listed, &readings, clauses)?)
    } else {
        None
    };
    let differences: Vec<Difference> = listed.into_iter().map(|(it, _)| it).collect();
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
        modules: summary::modules(&features, our_tree, their_tree, &differences),
        partition: summary::placed("candidate", our_tree, &our_corrected)
            .chain(summary::placed("target", their_tree, &their_corrected))
            .collect(),
        readings: summary::readings(&readings, &differences, &clauses),
        n_traced,
        n_new,
        n_further,
        n_not_derivable: candidates_to_store.len() - n_traced,
        n_extra: differences.len() - candidates_to_store.len(),
        differences,
        judged,
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
    let files = source_tree::read(root, source::ENDINGS, skip).kind(Kind::User)?;
    Ok(files
        .iter()
        .flat_map(|(path, text)| source::units(path, text, &|path| skip.is_match(path)))
        .collect())
}

/// Of the differences that follow from one clause the best ones, and one only of each function.
fn keep_best(found: &mut Vec<Found>, most_a_clause: usize) {
    let score = |found: &Found| found.clauses.first().map_or(0.0, |(_, score)| *score);
    let mut by_score: Vec<usize> = (0..found.len()).collect();
    by_score.sort_by(|a, b| {
        score(&found[*b])
            .total_cmp(&score(&found[*a]))
            .then(a.cmp(b))
    });
    let mut kept: BTreeMap<usize, Vec<(bool, String)>> = BTreeMap::new();
    let mut keep = vec![true; found.len()];
    for idx in by_score {
        let one = &found[idx];
        let Some((clause, _)) = one.clauses.first() else {
            continue;
        };
        if one.side == Side::Extra || one.kind.is_named() {
            continue;
        }
        let kept = kept.entry(*clause).or_default();
        let here = (one.side == Side::Differs, one.definition.clone());
        keep[idx] = kept.len() < most_a_clause && !kept.contains(&here);
        if keep[idx] {
            kept.push(here);
        }
    }
    let mut keep = keep.into_iter();
    found.retain(|_| keep.next().unwrap_or(true));
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
