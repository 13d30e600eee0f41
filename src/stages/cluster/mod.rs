//! Cluster: what was read as relevant, by the phenomenon that it reports. One cluster is the material of one case.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::scoring::ScoringConfig;
use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::decision::{self, Subject, SubjectKind, Verb, standing, standing_in_order};
use crate::domain::digest;
use crate::domain::issue::IssueKey;
use crate::domain::mining::Cluster;
use crate::methods::issue_vectors::Weights;
use crate::paths::Project;
use crate::storage::database::{Database, DatabaseError};
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{clusters, documents, ranking, reviews, settings};

mod background;
mod grouping;
mod growth;
mod judge;
mod judge_pairs;
mod likeness;

use background::Background;
pub use grouping::{Before, Grouping, group};
use growth::Growth;
pub use judge::{CrossedOver, JudgeConfig, Judged, OverDeals, judge};
pub use judge_pairs::JudgedPairs;

/// Raised when the calculation changes, so that stored clusters count as stale.
const CALCULATION: u32 = 6;
/// The name under which the log knows this stage.
const STAGE: &str = "cluster";

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    pub scoring: ScoringConfig,
    /// When nothing was read yet, take the top of the ranking instead of failing.
    pub all: bool,
    /// Make all clusters anew, although nothing changed, and although there are clusters that could grow.
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
    /// What a harness is made of, in the document's words: reports on different parts are of different phenomena.
    pub parts: Vec<String>,
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
    /// Clusters that were there before: they stay, and new issues join them or open others.
    pub n_before: usize,
    /// Parts too big to be clustered in one piece, split first.
    pub n_split: usize,
    /// Pairs that reviewers took apart and that other decisions put together.
    pub n_contradicted: usize,
    /// Nothing changed since the last run, so that the clusters stay.
    pub unchanged: bool,
    pub clusters: Vec<Cluster>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let path = context.project.database();
    let mut database = Database::open(&path).kind(Kind::Environment)?;
    loop {
        if let Some(summary) = attempt(context, &mut database, config)? {
            return Ok(summary);
        }
    }
}

/// None when another run stored its clusters meanwhile: what was read before that is no longer so.
fn attempt(context: &Context, database: &mut Database, config: &Config) -> Result<Option<Summary>> {
    let stored = stage_log::last(database, STAGE)?;
    let (ranking_inputs, basis) = fresh_ranking(context, database, config)?;
    let (material, chosen, n_missing) = chosen(context, database, config)?;
    let said = said(context)?;
    let inputs = Inputs::new(
        &basis,
        material,
        &ranking_inputs,
        &chosen,
        &said.before,
        config,
    )?;
    let mut summary = Summary {
        material,
        n_issues: chosen.len(),
        n_missing,
        n_clusters: 0,
        n_single: 0,
        n_before: 0,
        n_split: 0,
        n_contradicted: 0,
        unchanged: false,
        clusters: Vec::new(),
    };
    let last = stored.as_ref().filter(|_| !config.again);
    if let Some(entry) = last.filter(|entry| entry.inputs == inputs.to_string()) {
        let before: serde_json::Value = serde_json::from_str(&entry.summary)?;
        let number = |name: &str| before[name].as_u64().unwrap_or(0) as usize;
        summary.n_before = number("n_clusters");
        summary.n_split = number("n_split");
        summary.n_contradicted = number("n_contradicted");
        summary.unchanged = true;
        let all = clusters::all(database)?;
        summary.count(&all);
        summary.clusters = all;
        return Ok(Some(summary));
    }
    let last = last.filter(|entry| inputs.same_basis(&entry.inputs));
    context.progress.begin(STAGE, Some(chosen.len() as u64));
    let (mut ids, mut before) = (HashMap::new(), Vec::new());
    if let Some(entry) = last {
        let all = clusters::all(database)?;
        for cluster in &all {
            let members = cluster.members.iter().cloned();
            ids.extend(members.map(|key| (key, cluster.id.clone())));
        }
        before = reusable(context, all, entry)?;
    }
    summary.n_before = before.len();
    let kept = match last {
        Some(_) => Background::kept(database)?,
        None => None,
    };
    let (background, growth) = match kept {
        Some(background) => {
            let growth = Growth::of(database, config, &background, before, &chosen, &said)?;
            (background, growth)
        }
        None => {
            let background = Background::count(database, config)?;
            let growth = Growth::anew(database, config, &background, before, &chosen)?;
            (background, growth)
        }
    };
    let untouched = growth.untouched.iter();
    let before = Before {
        ids,
        other_ids: untouched.map(|cluster| cluster.id.clone()).collect(),
        clusters: growth.touched,
        ..said.before
    };
    let looked_at = &growth.looked_at;
    let grouping = group(
        &looked_at.issues,
        &looked_at.terms,
        &background.rarity,
        &looked_at.in_order(),
        &before,
        &config.settings,
    );
    summary.n_split = grouping.n_split;
    summary.n_contradicted = grouping.n_contradicted;
    let made = clusters::Made {
        clusters: &grouping.clusters,
        vectors: &grouping.vectors,
        background: &serde_json::to_string(&background)?,
    };
    // The clusters and what says from which inputs they are come together or not at all.
    let transaction = database.write()?;
    if stage_log::last_in(&transaction, STAGE)? != stored {
        context.progress.end("another run was faster: once more");
        return Ok(None);
    }
    clusters::replace(&transaction, &growth.untouched, &made)?;
    let n_made = grouping.clusters.len();
    let mut clusters = growth.untouched;
    clusters.extend(grouping.clusters);
    clusters.sort_by(|a, b| (b.members.len().cmp(&a.members.len())).then_with(|| a.id.cmp(&b.id)));
    summary.count(&clusters);
    let entry = StageEntry {
        inputs: inputs.to_string(),
        finished_at: context.timestamp(),
        summary: serde_json::to_string(&summary)?,
    };
    stage_log::store(&transaction, STAGE, &entry)?;
    transaction.commit().map_err(DatabaseError::from)?;
    let end = format!("{n_made} clusters looked at");
    context.progress.end(&end);
    summary.clusters = clusters;
    Ok(Some(summary))
}

impl Summary {
    fn count(&mut self, clusters: &[Cluster]) {
        let alone = clusters.iter().filter(|one| one.members.len() == 1);
        self.n_single = alone.count();
        self.n_clusters = clusters.len();
    }
}

/// The digest of what the stored ranking was made from, and that of what any ranking depends on; fails when the stored
/// one was made from other things than are there now.
fn fresh_ranking(
    context: &Context,
    database: &Database,
    config: &Config,
) -> Result<(String, String)> {
    let document = documents::read(&context.project.document())
        .map_err(|findings| Failure::findings(&findings))?;
    let inputs = config.scoring.inputs(database, &document)?;
    match stage_log::last(database, "rank")? {
        Some(entry) if entry.inputs == inputs => Ok((inputs, config.scoring.basis(&document)?)),
        Some(_) => Err(
            Failure::user("the ranking is stale: issues, document or settings changed")
                .hint("pipeline rank"),
        ),
        None => Err(Failure::user("there is no ranking yet").hint("pipeline rank")),
    }
}

/// The issues to cluster: those that were read as relevant, or the top of the ranking when none of them is there. And how
/// many were read and are not there.
fn chosen(
    context: &Context,
    database: &Database,
    config: &Config,
) -> Result<(Material, BTreeSet<IssueKey>, usize)> {
    let decisions =
        reviews::read(&context.project.reviews(), SubjectKind::Issue).kind(Kind::Settings)?;
    let mut read: BTreeSet<IssueKey> = BTreeSet::new();
    for (subject, decision) in standing(&decisions) {
        if decision.decision == Verb::Approve {
            let key = subject
                .id
                .parse()
                .map_err(|message: String| Failure::settings(format!("{subject}: {message}")))?;
            read.insert(key);
        }
    }
    let n_read = read.len();
    let ranked: BTreeSet<IssueKey> = ranking::top_keys(database, i64::MAX as usize)?
        .into_iter()
        .collect();
    read.retain(|key| ranked.contains(key));
    if !read.is_empty() {
        let n_missing = n_read - read.len();
        return Ok((Material::Read, read, n_missing));
    }
    if !config.all {
        return Err(Failure::user("no collected issue was read as relevant yet")
            .hint("pipeline review list")
            .hint("pipeline cluster --all (takes the top of the ranking)"));
    }
    let top = ranking::top_keys(database, config.settings.n_top)?;
    Ok((Material::TopOfRanking, top.into_iter().collect(), 0))
}

/// Clusters without those in which a decision was taken back since they were made: they are made anew.
fn reusable(
    context: &Context,
    mut clusters: Vec<Cluster>,
    made: &StageEntry,
) -> Result<Vec<Cluster>> {
    let decisions =
        reviews::read(&context.project.reviews(), SubjectKind::Pair).kind(Kind::Settings)?;
    for undo in decisions
        .iter()
        .filter(|decision| decision.decision == Verb::Undo && decision.at >= made.finished_at)
    {
        let (a, b) = decision::pair(&undo.on.id)
            .map_err(|message| Failure::settings(format!("{}: {message}", undo.on)))?;
        clusters.retain(|cluster| !cluster.members.contains(&a) && !cluster.members.contains(&b));
    }
    Ok(clusters)
}

/// What reviewers said of issues and of pairs of them.
#[derive(Default)]
struct Said {
    /// Without clusters.
    before: Before,
    /// The issues that any decision names, also one that was taken back since.
    spoken_of: BTreeSet<IssueKey>,
}

fn said(context: &Context) -> Result<Said> {
    let mut said = Said::default();
    let read = |kind| reviews::read(&context.project.reviews(), kind).kind(Kind::Settings);
    let pairs = read(SubjectKind::Pair)?;
    for decision in &pairs {
        let (a, b) = decision::pair(&decision.on.id).map_err(fault(&decision.on))?;
        said.spoken_of.extend([a, b]);
    }
    let mut pairs = standing_in_order(&pairs);
    // The order in which they were made plays no part.
    pairs.sort_by(|a, b| a.on.cmp(&b.on));
    for decision in pairs {
        let pair = decision::pair(&decision.on.id).map_err(fault(&decision.on))?;
        match decision.decision {
            Verb::Approve => said.before.together.push(pair),
            Verb::Reject => said.before.apart.push(pair),
            _ => {}
        }
    }
    for kind in [SubjectKind::Name, SubjectKind::Representative] {
        let decisions = read(kind)?;
        for decision in &decisions {
            let key = decision.on.id.parse().map_err(fault(&decision.on))?;
            said.spoken_of.insert(key);
        }
        let approved = standing_in_order(&decisions).into_iter();
        for decision in approved.filter(|made| made.decision == Verb::Approve) {
            let key = decision.on.id.parse().map_err(fault(&decision.on))?;
            match kind {
                SubjectKind::Name => said.before.names.push((key, decision.why)),
                _ => said.before.representatives.push(key),
            }
        }
    }
    Ok(said)
}

fn fault(on: &Subject) -> impl FnOnce(String) -> Failure {
    move |message| Failure::settings(format!("{on}: {message}"))
}

/// What the stored clusters were made from. They can grow as long as the basis is the same.
struct Inputs {
    /// Settings, document, where the issues come from.
    basis: String,
    /// The issues and what reviewers said of them.
    material: String,
}

impl Inputs {
    fn new(
        scoring_basis: &str,
        material: Material,
        ranking_inputs: &str,
        chosen: &BTreeSet<IssueKey>,
        said: &Before,
        config: &Config,
    ) -> Result<Self> {
        let mut basis = digest::Digester::default();
        basis.part(CALCULATION.to_le_bytes());
        basis.part(scoring_basis);
        basis.part(serde_json::to_string(&config.settings)?);
        basis.part(serde_json::to_string(&material)?);
        let mut of_issues = digest::Digester::default();
        of_issues.part(ranking_inputs);
        for key in chosen {
            of_issues.part(key.to_string());
        }
        of_issues.part(serde_json::to_string(&(&said.together, &said.apart))?);
        if !(said.names.is_empty() && said.representatives.is_empty()) {
            let told = (&said.names, &said.representatives);
            of_issues.part(serde_json::to_string(&told)?);
        }
        Ok(Self {
            basis: basis.finish(),
            material: of_issues.finish(),
        })
    }

    /// Whether what was stored as text has the same basis.
    fn same_basis(&self, stored: &str) -> bool {
        stored
            .split_once('/')
            .is_some_and(|(basis, _)| basis == self.basis)
    }
}

impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.basis, self.material)
    }
}
