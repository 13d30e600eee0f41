//! What all collected issues say of those that are clustered: which lines belong to forms, which terms and clauses are
//! rare. It is counted once and kept while clusters grow, so that new issues do not wait for all others to be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Config;
use crate::domain::digest;
use crate::domain::mining::RankedIssue;
use crate::methods::issue_vectors::Rarity;
use crate::methods::text;
use crate::methods::text::markdown::Templates;
use crate::methods::text::vocabulary::Vocabulary;
use crate::stages::Result;
use crate::storage::database::Database;
use crate::storage::{clusters, issues, ranking};

#[derive(Serialize, Deserialize)]
pub struct Background {
    /// Digest of what the ranking of all issues went by.
    ranking: Option<String>,
    /// Lines of forms, by repository.
    template_lines: BTreeMap<String, Vec<String>>,
    pub rarity: Rarity,
}

impl Background {
    /// What was counted before; none when all issues were ranked anew since.
    pub fn kept(database: &Database) -> Result<Option<Self>> {
        let Some(stored) = clusters::background(database)? else {
            return Ok(None);
        };
        let background: Self = serde_json::from_str(&stored)?;
        let ranking = ranking_digest(database)?;
        let is_same = ranking.is_some() && background.ranking == ranking;
        Ok(is_same.then_some(background))
    }

    pub fn count(database: &Database, config: &Config) -> Result<Self> {
        let all = issues::all(database)?;
        let templates = text::templates(&all);
        let vocabulary = Vocabulary::new(&config.scoring.vocabulary);
        let terms = text::issues_by(&all, &vocabulary, &templates);
        let ranked: Vec<RankedIssue> = ranking::all(database)?.into_values().collect();
        let clauses = ranked.iter().map(|one| one.relevance.clauses.as_slice());
        Ok(Self {
            ranking: ranking_digest(database)?,
            template_lines: templates.to_lines(),
            rarity: Rarity::of(&terms, clauses),
        })
    }

    pub fn templates(&self) -> Templates {
        Templates::from_lines(&self.template_lines)
    }
}

fn ranking_digest(database: &Database) -> Result<Option<String>> {
    let basis = ranking::basis(database)?;
    Ok(basis.map(|basis| digest::of([basis.settings, basis.basis])))
}
