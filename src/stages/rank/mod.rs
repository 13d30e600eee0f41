//! Rank: the collected issues by their relevance to the development document.

use serde::Serialize;

use super::scoring::{Scoring, ScoringConfig};
use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::document::Document;
use crate::domain::mining::RankedIssue;
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{documents, issues, ranking};

mod explain;
mod judge;

pub use explain::{Explanation, explain};
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
    if !unchanged {
        let issues = issues::all(&database)?;
        if issues.is_empty() {
            return Err(Failure::user("there are no issues to rank")
                .hint("pipeline collect --from data/sample/issues.jsonl"));
        }
        context.progress.begin("rank", Some(issues.len() as u64));
        let ranking = Scoring::new(&issues, &document, &config.scoring)?.ranking();
        ranking::replace(&mut database, &ranking)?;
        context
            .progress
            .end(&format!("{} issues, {n_clauses} clauses", issues.len()));
    }
    let counts = issues::counts(&database)?;
    let mut summary = Summary {
        n_issues: counts.values().map(|count| count.n_issues as usize).sum(),
        n_clauses,
        unchanged,
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

fn document(project: &Project) -> Result<Document> {
    documents::read(&project.document()).map_err(|findings| Failure::findings(&findings))
}

fn open(context: &Context) -> Result<Database> {
    Database::open(&context.project.database()).kind(Kind::Environment)
}
