//! Filter: of the clusters those that can become a new case. What is left waits for approval; what was dropped stays
//! stored with rule, counterpart and reason.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::case::{Case, Role};
use crate::domain::clause::ClauseId;
use crate::domain::decision::{SubjectKind, Verb, standing};
use crate::domain::digest;
use crate::domain::issue::{Issue, IssueKey};
use crate::domain::mining::{Cluster, DropRule, Outcome, RankedIssue, Term};
use crate::methods::filtering::{self, Candidate, CaseFacts, Member, Outside, Restored, Settings};
use crate::methods::text::markdown::Templates;
use crate::methods::text::words;
use crate::methods::topics::{TopicWord, Topics};
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{clusters, issues, ranking, reviews, settings, suite};

/// Raised when the calculation changes, so that stored outcomes count as stale.
const CALCULATION: u32 = 3;

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    pub topics: Topics,
    /// Filter although nothing changed.
    pub again: bool,
}

impl Config {
    /// From the settings files of a project.
    pub fn read(project: &Project) -> Result<Self> {
        let path = project.settings("filter");
        let settings: Settings = settings::read(&path).kind(Kind::Settings)?;
        let topics: Topics = settings::read(&project.settings("topics")).kind(Kind::Settings)?;
        if let Some(unknown) = settings
            .topics
            .iter()
            .find(|rule| topics.get(rule.as_str()).is_none())
        {
            return Err(Failure::settings(format!(
                "{}: \"{unknown}\" is no topic of pipeline/topics.toml",
                path.display()
            )));
        }
        Ok(Self {
            settings,
            topics,
            again: false,
        })
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub n_clusters: usize,
    pub n_kept: usize,
    /// Dropped clusters, by rule.
    pub dropped: BTreeMap<DropRule, usize>,
    /// Nothing changed since the last run, so that the outcomes stay.
    pub unchanged: bool,
    /// What was said of each cluster, in the order of the clusters.
    pub outcomes: Vec<Outcome>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let path = context.project.database();
    let mut database = Database::open(&path).kind(Kind::Environment)?;
    let clusters = clusters::all(&database)?;
    if clusters.is_empty() {
        return Err(Failure::user("there are no clusters to filter").hint("pipeline cluster"));
    }
    let cases = cases(&context.project)?;
    let restored = restored(context)?;
    let inputs = inputs(&database, &clusters, &cases, &restored, config)?;
    let last = stage_log::last(&database, "filter")?;
    // New clusters take their outcomes with them, whatever the log says.
    let stored = clusters::outcomes(&database)?.len() == clusters.len();
    let unchanged = stored && !config.again && last.is_some_and(|entry| entry.inputs == inputs);
    if !unchanged {
        let issues: BTreeMap<IssueKey, Issue> = issues::all(&database)?
            .into_iter()
            .map(|issue| (issue.key.clone(), issue))
            .collect();
        let ranked = ranking::all(&database)?;
        let topic_terms = config.topics.terms(words::term);
        let candidates: Vec<Candidate<'_>> = clusters
            .iter()
            .map(|cluster| Candidate {
                cluster,
                members: cluster
                    .members
                    .iter()
                    .map(|key| member(issues.get(key), ranked.get(key), &topic_terms))
                    .collect(),
            })
            .collect();
        let facts: Vec<CaseFacts> = cases.iter().map(facts).collect();
        let outcomes = filtering::filter(&candidates, &facts, &restored, &config.settings);
        clusters::replace_outcomes(&mut database, &outcomes)?;
    }
    let outcomes = clusters::outcomes(&database)?;
    let mut dropped: BTreeMap<DropRule, usize> = BTreeMap::new();
    for rule in outcomes.iter().filter_map(|outcome| outcome.rule) {
        *dropped.entry(rule).or_default() += 1;
    }
    let summary = Summary {
        n_clusters: clusters.len(),
        n_kept: outcomes.iter().filter(|outcome| outcome.kept).count(),
        dropped,
        unchanged,
        outcomes,
    };
    if !unchanged {
        let entry = StageEntry {
            inputs,
            finished_at: context.timestamp(),
            summary: serde_json::to_string(&summary)?,
        };
        stage_log::finish(&mut database, "filter", &entry)?;
    }
    Ok(summary)
}

/// A cluster that was dropped, or would have been if nobody had restored it.
#[derive(Debug, Serialize)]
pub struct Dropped {
    #[serde(flatten)]
    pub outcome: Outcome,
    pub label: String,
    pub clause: Option<ClauseId>,
    pub n_issues: usize,
}

#[derive(Debug, Serialize)]
pub struct Listing {
    pub n_clusters: usize,
    /// By rule, then in the order of the clusters.
    pub dropped: Vec<Dropped>,
    /// Clusters that a reviewer restored, in the order of the clusters.
    pub restored: Vec<Dropped>,
    /// What each rule that dropped something is about.
    pub rules: BTreeMap<DropRule, String>,
}

/// What the last run dropped, without filtering again.
pub fn list(context: &Context, config: &Config) -> Result<Listing> {
    let database = Database::open_to_read(&context.project.database()).kind(Kind::Environment)?;
    let outcomes = clusters::outcomes(&database)?;
    // Clusters that were made anew have taken their outcomes with them.
    if outcomes.is_empty() {
        return Err(Failure::user("nothing was filtered yet").hint("pipeline filter"));
    }
    let by_hand = restored(context)?;
    let mut listing = Listing {
        n_clusters: outcomes.len(),
        dropped: Vec::new(),
        restored: Vec::new(),
        rules: BTreeMap::new(),
    };
    for (cluster, outcome) in clusters::all(&database)?.into_iter().zip(outcomes) {
        if let Some(rule) = outcome.rule {
            listing.rules.insert(rule, about(rule, &config.topics));
        }
        let listed = match outcome.kept {
            false => &mut listing.dropped,
            true if by_hand.contains_key(&cluster.id) => &mut listing.restored,
            true => continue,
        };
        listed.push(Dropped {
            outcome,
            label: cluster.label,
            clause: cluster.clause,
            n_issues: cluster.members.len(),
        });
    }
    listing.dropped.sort_by_key(|dropped| dropped.outcome.rule);
    Ok(listing)
}

fn about(rule: DropRule, topics: &Topics) -> String {
    match rule {
        DropRule::NoClause => "the document says nothing that its issues could be about".to_owned(),
        DropRule::Covered => "a case of the suite asserts it already".to_owned(),
        DropRule::Overlap => {
            "another cluster has the same clause and effect and more material; it took this material over".to_owned()
        }
        topic => topics
            .get(topic.as_str())
            .map_or(String::new(), |topic| topic.reason.clone()),
    }
}

/// The clusters whose drop a reviewer rejected.
fn restored(context: &Context) -> Result<Restored> {
    let decisions =
        reviews::read(&context.project.reviews(), SubjectKind::Drop).kind(Kind::Settings)?;
    Ok(standing(&decisions)
        .into_iter()
        .filter(|(_, decision)| decision.decision == Verb::Reject)
        .map(|(subject, decision)| (subject.id, format!("{}: {}", decision.by, decision.why)))
        .collect())
}

/// The test cases of the suite; none when there is no suite yet.
fn cases(project: &Project) -> Result<Vec<Case>> {
    let folder = project.cases();
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let suite = suite::read(&folder).map_err(|findings| Failure::findings(&findings))?;
    Ok(suite.tests().cloned().collect())
}

fn facts(case: &Case) -> CaseFacts {
    let origin = match &case.role {
        Role::Test { origin, .. } => origin.as_ref(),
        Role::Control { .. } => None,
    };
    let phenomenon = origin.and_then(|origin| origin.phenomenon.clone());
    let text = format!(
        "{} {} {}",
        case.title,
        case.purpose,
        phenomenon.unwrap_or_default()
    );
    CaseFacts {
        id: case.id.to_string(),
        clause: case.clause.clone(),
        terms: words::terms(&text).into_iter().collect(),
        sources: origin
            .map(|origin| origin.sources.iter().cloned().collect())
            .unwrap_or_default(),
    }
}

fn member(
    issue: Option<&Issue>,
    ranked: Option<&RankedIssue>,
    topic_terms: &BTreeMap<String, TopicWord>,
) -> Member {
    let Some(issue) = issue else {
        return Member::default();
    };
    // The forms of repositories play no part in what is counted here.
    let parts = Templates::default().parts(&issue.key.repository, &issue.body);
    // A topic that only ranking knows drops nothing.
    let outside = |topic: &str, word: &str| {
        Some(Outside {
            topic: topic.parse().ok()?,
            term: Term {
                term: words::term(word),
                word: word.to_owned(),
            },
        })
    };
    let title = words::terms(&issue.title)
        .into_iter()
        .filter_map(|term| topic_terms.get(&term))
        .filter_map(|found| outside(&found.topic, &found.word))
        .collect();
    let body = ranked
        .map(|ranked| &ranked.relevance.outside[..])
        .unwrap_or_default()
        .iter()
        .filter_map(|found| found.split_once(": "))
        .filter_map(|(topic, word)| outside(topic, word))
        .collect();
    Member {
        title,
        body,
        n_terms: words::terms(&parts.prose).len(),
        has_code: !parts.code.is_empty(),
    }
}

fn inputs(
    database: &Database,
    clusters: &[Cluster],
    cases: &[Case],
    restored: &Restored,
    config: &Config,
) -> Result<String> {
    let mut digester = digest::Digester::default();
    digester.part(CALCULATION.to_le_bytes());
    digester.part(issues::digest_of_all(database)?);
    digester.part(serde_json::to_string(clusters)?);
    digester.part(serde_json::to_string(&config.settings)?);
    digester.part(serde_json::to_string(&config.topics)?);
    digester.part(suite::digest(cases.iter()));
    digester.part(serde_json::to_string(restored)?);
    Ok(digester.finish())
}
