//! Prints the statistics of a run, or of a table of verdicts. It stores nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{Classify, Context, Failure, Kind, Result, stored_run};
use crate::domain::results::{self, Row};
use crate::methods::analysis::{Analysis, analyse, estimates};
use crate::storage::verdict_table::{self, TableError};

pub struct Config {
    pub source: Source,
    /// Candidate → the model that built it; overrides a table's own column.
    pub models: BTreeMap<String, String>,
    /// Where to write every estimate as a row.
    pub csv_out: Option<PathBuf>,
}

pub enum Source {
    /// The newest run when none is named.
    Run(Option<String>),
    Table(PathBuf),
}

#[derive(Debug, Serialize)]
pub struct Summary {
    /// The run's id, or the table's path.
    pub source: String,
    /// Verdicts that the run's plan foresees and that are not there (yet).
    pub n_unfinished: usize,
    #[serde(flatten)]
    pub analysis: Analysis,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let (source, n_unfinished, rows) = match &config.source {
        Source::Run(id) => of_run(context, id.as_deref(), &config.models)?,
        Source::Table(path) => {
            let mut rows = verdict_table::read(path).map_err(|error| Failure {
                kind: match &error {
                    TableError::Read { .. } => Kind::User,
                    TableError::Row(_) => Kind::Settings,
                },
                source: error.into(),
                hints: Vec::new(),
            })?;
            for row in &mut rows {
                if let Some(model) = config.models.get(&row.candidate) {
                    row.model.clone_from(model);
                }
            }
            (context.project.shown(path), 0, rows)
        }
    };
    if let Some(unknown) = config
        .models
        .keys()
        .find(|name| !rows.iter().any(|row| row.candidate == **name))
    {
        return Err(Failure::user(format!("no candidate is named {unknown:?}")));
    }
    let analysis = analyse(&rows);
    if let Some(path) = &config.csv_out {
        let mut writer = csv::Writer::from_path(path).kind(Kind::User)?;
        for estimate in estimates(&analysis) {
            writer.serialize(estimate)?;
        }
        writer.flush()?;
    }
    Ok(Summary {
        source,
        n_unfinished,
        analysis,
    })
}

fn of_run(
    context: &Context,
    id: Option<&str>,
    models: &BTreeMap<String, String>,
) -> Result<(String, usize, Vec<Row>)> {
    let run = stored_run::open(context, id)?;
    let verdicts = run.verdicts().map_err(stored_run::classify)?;
    let facts = stored_run::facts(context, &run.plan);
    let n_planned = run.plan.candidates.len() * facts.len();
    let rows = results::rows(&verdicts, &facts, models);
    Ok((run.id().to_owned(), n_planned - verdicts.len(), rows))
}
