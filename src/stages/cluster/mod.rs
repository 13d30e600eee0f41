//! Cluster: what was read as relevant, by the phenomenon that it reports. One cluster is the material of one case.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::scoring::ScoringConfig;
use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::decision::{SubjectKind, Verb, standing};
use crate::domain::digest;
use crate::domain::issue::IssueKey;
use crate::domain::mining::{Cluster, RankedIssue};
use crate::methods::issue_vectors::Weights;
use crate::methods::text;
use crate::methods::text::vocabulary::Vocabulary;
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{clusters, documents, issues, ranking, reviews, settings};

mod grouping;
mod judge;

pub use grouping::{Grouping, group};
pub use judge::{Judged, judge};

/// Raised when the calculation changes, so that stored clusters count as stale.
const CALCULATION: u32 = 2;

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    pub scoring: ScoringConfig,
    /// When nothing was read yet, take the top of the ranking instead of failing.
    pub all: bool,
    /// Cluster although nothing changed.
    pub again: bool,
}

/// `pipeline/cluster.toml`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Average similarity at which two clusters merge.
    pub cut: f32,
    /// Issues that are clustered in one piece.
    pub max_part: usize,
    /// Issues that `--all` takes from the top of the ranking.
    pub n_top: usize,
    pub weights: Weights,
}

impl Config {
    /// From the settings files of a project.
    pub fn read(project: &Project) -> Result<Self> {
        Ok(Self {
            settings: settings::read(&project.settings("cluster")).kind(Kind::Settings)?,
            scoring: ScoringConfig::read(project)?,
            all: false,
            again: false,
        })
    }
}

/// Where the clustered issues come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Material {
    /// Issues that a reviewer read as relevant.
    Read,
    /// The first places of the ranking, since nothing was read yet.
    TopOfRanking,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub material: Material,
    pub n_issues: usize,
    /// Issues read as relevant that are not collected, left out.
    pub n_missing: usize,
    pub n_clusters: usize,
    pub n_single: usize,
    /// Parts too big to be clustered in one piece, split first.
    pub n_split: usize,
    /// Nothing changed since the last run, so that the clusters stay.
    pub unchanged: bool,
    pub clusters: Vec<Cluster>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let path = context.project.database();
    let mut database = Database::open(&path).kind(Kind::Environment)?;
    let ranking_inputs = fresh_ranking(context, &database, config)?;
    let ranked = ranking::all(&database)?;
    let (material, wanted) = wanted(context, &ranked, config)?;
    let chosen: Vec<&RankedIssue> = wanted.iter().filter_map(|key| ranked.get(key)).collect();
    let inputs = inputs(&ranking_inputs, &chosen, config)?;
    let last = stage_log::last(&database, "cluster")?;
    let unchanged = !config.again && last.as_ref().is_some_and(|entry| entry.inputs == inputs);
    let mut n_split = 0;
    if !unchanged {
        context.progress.begin("cluster", Some(chosen.len() as u64));
        let all = issues::all(&database)?;
        let terms = text::issues(&all, &Vocabulary::new(&config.scoring.vocabulary));
        let grouping = group(&all, &terms, &chosen, &config.settings);
        n_split = grouping.n_split;
        clusters::replace(&mut database, &grouping.clusters)?;
        context
            .progress
            .end(&format!("{} clusters", grouping.clusters.len()));
    } else if let Some(entry) = last {
        let summary: serde_json::Value = serde_json::from_str(&entry.summary)?;
        n_split = summary["n_split"].as_u64().unwrap_or(0) as usize;
    }
    let made = clusters::all(&database)?;
    let mut summary = Summary {
        material,
        n_issues: chosen.len(),
        n_missing: wanted.len() - chosen.len(),
        n_clusters: made.len(),
        n_single: made.iter().filter(|made| made.members.len() == 1).count(),
        n_split,
        unchanged,
        clusters: Vec::new(),
    };
    if !unchanged {
        let entry = StageEntry {
            inputs,
            finished_at: context.timestamp(),
            summary: serde_json::to_string(&summary)?,
        };
        stage_log::finish(&mut database, "cluster", &entry)?;
    }
    summary.clusters = made;
    Ok(summary)
}

/// The digest of what the stored ranking was made from; fails when that is no longer what is there.
fn fresh_ranking(context: &Context, database: &Database, config: &Config) -> Result<String> {
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let inputs = config.scoring.inputs(database, &document)?;
    match stage_log::last(database, "rank")? {
        Some(entry) if entry.inputs == inputs => Ok(inputs),
        Some(_) => Err(
            Failure::user("the ranking is stale: issues, document or settings changed")
                .hint("pipeline rank"),
        ),
        None => Err(Failure::user("there is no ranking yet").hint("pipeline rank")),
    }
}

/// The issues to cluster: those that were read as relevant, or the top of the ranking when none of them is there.
fn wanted(
    context: &Context,
    ranked: &BTreeMap<IssueKey, RankedIssue>,
    config: &Config,
) -> Result<(Material, BTreeSet<IssueKey>)> {
    let decisions =
        reviews::read(&context.project.reviews(), SubjectKind::Issue).kind(Kind::Settings)?;
    let mut read = BTreeSet::new();
    for (subject, decision) in standing(&decisions) {
        if decision.decision == Verb::Approve {
            let key: IssueKey = subject
                .id
                .parse()
                .map_err(|message: String| Failure::settings(format!("{subject}: {message}")))?;
            read.insert(key);
        }
    }
    if read.iter().any(|key| ranked.contains_key(key)) {
        return Ok((Material::Read, read));
    }
    if !config.all {
        return Err(Failure::user("no collected issue was read as relevant yet")
            .hint("pipeline review list")
            .hint("pipeline cluster --all (takes the top of the ranking)"));
    }
    let top = ranked
        .values()
        .filter(|ranked| ranked.place <= config.settings.n_top as u64)
        .map(|ranked| ranked.key.clone());
    Ok((Material::TopOfRanking, top.collect()))
}

fn inputs(ranking_inputs: &str, chosen: &[&RankedIssue], config: &Config) -> Result<String> {
    let mut digester = digest::Digester::default();
    digester.part(CALCULATION.to_le_bytes());
    digester.part(ranking_inputs);
    digester.part(serde_json::to_string(&config.settings)?);
    for ranked in chosen {
        digester.part(ranked.key.to_string());
    }
    Ok(digester.finish())
}
