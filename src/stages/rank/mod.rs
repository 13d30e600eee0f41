//! Rank: the collected issues by their relevance to the development document.

use serde::{Deserialize, Serialize};

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::digest;
use crate::domain::document::Document;
use crate::domain::mining::RankedIssue;
use crate::methods::relevance::Weights;
use crate::methods::text::vocabulary::VocabularyFile;
use crate::methods::topics::Topics;
use crate::paths::Project;
use crate::storage::database::Database;
use crate::storage::settings;
use crate::storage::stage_log::{self, StageEntry};
use crate::storage::{documents, issues, ranking};

mod explain;
mod judge;
mod scoring;

pub use explain::{Explanation, explain};
pub use judge::{Judged, judge};
pub use scoring::Scoring;

/// Raised when the calculation changes, so that stored rankings count as stale.
const CALCULATION: u32 = 1;

/// Clauses that are stored with each issue.
pub const N_CLAUSES: usize = 5;

#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    pub vocabulary: VocabularyFile,
    pub topics: Topics,
    /// Rank although nothing changed.
    pub again: bool,
}

/// `pipeline/rank.toml`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub fields: Fields,
    pub weights: Weights,
}

/// Weights of the parts of an issue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    pub title: f32,
    pub prose: f32,
    pub code: f32,
}

impl Config {
    /// From the settings files of a project.
    pub fn read(project: &Project) -> Result<Self> {
        Ok(Self {
            settings: settings::read(&project.settings("rank")).kind(Kind::Settings)?,
            vocabulary: settings::read(&project.settings("vocabulary")).kind(Kind::Settings)?,
            topics: settings::read(&project.settings("topics")).kind(Kind::Settings)?,
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

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let document = document(&context.project)?;
    let mut database = open(context)?;
    let inputs = inputs(&database, &document, config)?;
    let last = stage_log::last(&database, "rank")?;
    let unchanged = !config.again && last.is_some_and(|entry| entry.inputs == inputs);
    if !unchanged {
        let issues = issues::all(&database)?;
        if issues.is_empty() {
            return Err(Failure::user("there are no issues to rank")
                .hint("pipeline collect --from data/sample/issues.jsonl"));
        }
        context.progress.begin("rank", Some(issues.len() as u64));
        let ranking = Scoring::new(&issues, &document, config)?.ranking();
        ranking::replace(&mut database, &ranking)?;
        context.progress.end(&format!(
            "{} issues, {} clauses",
            issues.len(),
            document.clauses().count()
        ));
    }
    let mut summary = Summary {
        n_issues: issues::counts(&database)?
            .values()
            .map(|count| count.n_issues as usize)
            .sum(),
        n_clauses: document.clauses().count(),
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
    for ranked in ranking::top(&database, N_SHOWN)? {
        let issue = issues::get(&database, &ranked.key)?;
        summary.top.push(TopIssue {
            ranked,
            title: issue.map(|issue| issue.title).unwrap_or_default(),
        });
    }
    Ok(summary)
}

/// Digest over all that a ranking depends on; another one than stored means that the ranking is stale.
pub fn inputs(database: &Database, document: &Document, config: &Config) -> Result<String> {
    let mut digester = digest::Digester::default();
    digester.part(CALCULATION.to_le_bytes());
    digester.part(issues::digest_of_all(database)?);
    for chapter in &document.chapters {
        digester.part(&chapter.slug).part(&chapter.markdown);
    }
    digester.part(serde_json::to_string(&config.settings)?);
    digester.part(serde_json::to_string(&config.vocabulary)?);
    digester.part(serde_json::to_string(&config.topics)?);
    Ok(digester.finish())
}

fn document(project: &Project) -> Result<Document> {
    documents::read(&project.document()).map_err(|findings| Failure::findings(&findings))
}

fn open(context: &Context) -> Result<Database> {
    Database::open(&context.project.database()).kind(Kind::Environment)
}
