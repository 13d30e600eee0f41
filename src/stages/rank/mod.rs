//! Rank: the collected issues by their relevance to the development document. A few new issues are put among the others
//! by what is known of those; when many came, all are ranked anew.

use std::collections::BTreeMap;

use serde::Serialize;

use super::scoring::{Basis, Scoring, ScoringConfig};
use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::document::Document;
use crate::domain::mining::RankedIssue;
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::ranking::StoredBasis;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{documents, issues, ranking};

mod explain;
mod judge;

pub use explain::{Explanation, MatchedTerm, MatchedTerms, Matching, explain};
pub use judge::{Judged, judge};

#[derive(Debug, Clone)]
pub struct Config {
    pub scoring: ScoringConfig,
    /// Rank although nothing changed.
    pub again: bool,
}

impl Config {
    /// From the settings files of a project.
    pub fn read(project: &Project) -> Result<Self> {
        Ok(Self {
            scoring: ScoringConfig::read(project)?,
            again: false,
        })
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub n_issues: usize,
    pub n_clauses: usize,
    /// Nothing changed since the last ranking, so that it stays.
    pub unchanged: bool,
    /// Issues that were ranked now; fewer than all when most stayed as they were.
    pub n_ranked: usize,
    /// Issues by language, codes of ISO 639-3; `?` for those that are too short to say.
    pub languages: BTreeMap<String, usize>,
    /// The first places.
    pub top: Vec<TopIssue>,
}

/// A place of the ranking for people.
#[derive(Debug, Serialize)]
pub struct TopIssue {
    #[serde(flatten)]
    pub ranked: RankedIssue,
    pub title: String,
}

/// Places that a summary shows.
const N_SHOWN: usize = 20;
/// Clauses that are shown with an issue.
const N_CLAUSES_SHOWN: usize = 5;

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let document = document(&context.project)?;
    let mut database = open(context)?;
    let inputs = config.scoring.inputs(&database, &document)?;
    let last = stage_log::last(&database, "rank")?;
    let unchanged = !config.again && last.is_some_and(|entry| entry.inputs == inputs);
    let n_clauses = document.clauses().count();
    let counts = issues::counts(&database)?;
    let n_issues = counts.values().map(|count| count.n_issues as usize).sum();
    let mut n_ranked = 0;
    if !unchanged {
        if n_issues == 0 {
            return Err(Failure::user("there are no issues to rank")
                .hint("pipeline collect --from data/sample/issues.jsonl"));
        }
        context.progress.begin("rank", None);
        n_ranked = match config.again {
            true => None,
            false => add(&mut database, &document, &config.scoring)?,
        }
        .map_or_else(|| renew(&mut database, &document, &config.scoring), Ok)?;
        context
            .progress
            .end(&format!("{n_ranked} issues, {n_clauses} clauses"));
    }
    let languages = ranking::languages(&database)?
        .into_iter()
        .map(|(language, n)| (language.unwrap_or_else(|| "?".to_owned()), n))
        .collect();
    let mut summary = Summary {
        n_issues,
        n_clauses,
        unchanged,
        n_ranked,
        languages,
        top: Vec::new(),
    };
    if !unchanged {
        let entry = StageEntry {
            inputs,
            finished_at: context.timestamp(),
            summary: serde_json::to_string(&summary)?,
        };
        stage_log::finish(&mut database, "rank", &entry)?;
    }
    for mut ranked in ranking::top(&database, N_SHOWN)? {
        let issue = issues::get(&database, &ranked.key)?;
        ranked.relevance.clauses.truncate(N_CLAUSES_SHOWN);
        summary.top.push(TopIssue {
            ranked,
            title: issue.map(|issue| issue.title).unwrap_or_default(),
        });
    }
    Ok(summary)
}

/// Ranks all issues, and keeps what their scores go by.
pub fn renew(
    database: &mut Database,
    document: &Document,
    config: &ScoringConfig,
) -> Result<usize> {
    let issues = issues::all(database)?;
    let scoring = Scoring::new(&issues, document, config)?;
    let basis = StoredBasis {
        settings: config.basis(document)?,
        n_issues: issues.len(),
        n_since: 0,
        basis: serde_json::to_string(&scoring.basis()?)?,
    };
    ranking::replace(database, &scoring.ranking(), &basis)?;
    Ok(issues.len())
}

/// Puts new and changed issues among the others, whose scores stay; the number of them. None when all issues have to be
/// ranked anew: settings or document changed, or much came or went since.
pub fn add(
    database: &mut Database,
    document: &Document,
    config: &ScoringConfig,
) -> Result<Option<usize>> {
    let Some(stored) = ranking::basis(database)? else {
        return Ok(None);
    };
    if stored.settings != config.basis(document)? {
        return Ok(None);
    }
    let issues = ranking::unranked(database)?;
    let n_since = (stored.n_since + issues.len()) as f64;
    if n_since > config.settings.renew_at * stored.n_issues as f64 {
        return Ok(None);
    }
    let basis: Basis = serde_json::from_str(&stored.basis)?;
    let ranking = Scoring::by(basis, &issues, document, config)?.ranking();
    ranking::merge(database, &ranking)?;
    Ok(Some(issues.len()))
}

fn document(project: &Project) -> Result<Document> {
    documents::read(&project.document()).map_err(|findings| Failure::findings(&findings))
}

fn open(context: &Context) -> Result<Database> {
    Database::open(&context.project.database()).kind(Kind::Environment)
}
