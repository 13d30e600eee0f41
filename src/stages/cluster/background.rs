//! What all collected issues say of those that are clustered: which lines belong to forms, which terms and clauses are
//! rare. It is counted once and kept while clusters grow, so that new issues do not wait for all others to be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Config;
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
    /// Lines of forms, by repository.
    template_lines: BTreeMap<String, Vec<String>>,
    pub rarity: Rarity,
}

impl Background {
    /// What was counted before; none when so many issues came or went since that it is to be counted anew.
    pub fn kept(database: &Database, config: &Config) -> Result<Option<Self>> {
        let Some(stored) = clusters::background(database)? else {
            return Ok(None);
        };
        let background: Self = serde_json::from_str(&stored)?;
        let counts = issues::counts(database)?;
        let n_issues: u64 = counts.values().map(|count| count.n_issues).sum();
        let n_before = background.rarity.n_issues as f64;
        let n_changed = (n_issues as f64 - n_before).abs();
        let is_near = n_changed <= config.scoring.settings.renew_at * n_before;
        Ok(is_near.then_some(background))
    }

    pub fn count(database: &Database, config: &Config) -> Result<Self> {
        let all = issues::all(database)?;
        let templates = text::templates(&all);
        let vocabulary = Vocabulary::new(&config.scoring.vocabulary);
        let terms = text::issues_by(&all, &vocabulary, &templates);
        let ranked: Vec<RankedIssue> = ranking::all(database)?.into_values().collect();
        let clauses = ranked.iter().map(|one| one.relevance.clauses.as_slice());
        Ok(Self {
            template_lines: templates.to_lines(),
            rarity: Rarity::of(&terms, clauses),
        })
    }

    pub fn templates(&self) -> Templates {
        Templates::from_lines(&self.template_lines)
    }
}
