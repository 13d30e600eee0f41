//! Prints the statistics of runs, or of a table of verdicts. It stores nothing but what it is asked to write.

mod pictures;
mod sources;
mod verdicts;

use std::collections::BTreeMap;
use std::path::PathBuf;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::{Classify, Context, Failure, Kind, Result};
use crate::domain::case::Category;
use crate::methods::analysis::{
    Analysis, Architecture, CoverageRow, FloorCase, Independence, Items, Paired, Resampling,
    Selection, Table, analyse_resampled, architecture, coverage, estimates, floor, independence,
    items, of_architecture, of_items, of_pair, paired, selection,
};
use crate::paths::Project;
use crate::storage::csv_table::CsvError;
use crate::storage::settings;
use verdicts::Verdicts;

pub struct Config {
    pub source: Source,
    pub settings: Settings,
    /// Candidate → the model that built it; overrides a table's own column.
    pub models: BTreeMap<String, String>,
    /// Two candidates or models to compare.
    pub compare: Option<[String; 2]>,
    /// Facts of the candidates' sources, for a table; those of a run are counted in the frozen trees.
    pub facts: Option<PathBuf>,
    /// Where to put the figures.
    pub figures: Option<PathBuf>,
    /// Where to write every estimate as a row.
    pub csv_out: Option<PathBuf>,
}

pub enum Source {
    /// Of the same cases on different candidates; the newest run when none is named.
    Runs(Vec<String>),
    Table(PathBuf),
}

/// `pipeline/analyze.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub resampling: Resampling,
    /// The reliability that the number of further cases is for.
    pub wanted_reliability: f64,
    /// Category → what the file name of a dedicated module holds.
    pub dedicated: BTreeMap<Category, Vec<String>>,
    /// Names and patterns of candidates that are no contestants.
    pub witnesses: Vec<String>,
}

impl Settings {
    pub fn read(project: &Project) -> Result<Self> {
        let path = project.settings("analyze");
        let settings: Self = settings::read(&path).kind(Kind::Settings)?;
        let wrong = |message: &str| Failure::settings(format!("{}: {message}", path.display()));
        if settings.resampling.draws < 100 {
            return Err(wrong(
                "fewer than 100 draws have no percentiles of 2.5 and 97.5",
            ));
        }
        if !(settings.wanted_reliability > 0.0 && settings.wanted_reliability < 1.0) {
            return Err(wrong("wanted_reliability is not between 0 and 1"));
        }
        Ok(settings)
    }

    fn witness_names(&self) -> Result<GlobSet> {
        let mut names = GlobSetBuilder::new();
        for pattern in &self.witnesses {
            names.add(Glob::new(pattern).kind(Kind::User)?);
        }
        names.build().kind(Kind::User)
    }
}

#[derive(Debug, Serialize)]
pub struct Summary {
    /// The runs' ids, or the table's path.
    pub source: String,
    /// Verdicts that the run's plan foresees and that are not there (yet).
    pub n_unfinished: usize,
    /// In no rate; they tell what the floor means.
    pub witnesses: Vec<String>,
    pub resampling: Resampling,
    #[serde(flatten)]
    pub analysis: Analysis,
    pub coverage: Vec<CoverageRow>,
    pub independence: Independence,
    pub items: Items,
    pub floor: Vec<FloorCase>,
    pub selection: Option<Selection>,
    pub paired: Option<Paired>,
    /// None when nothing is known of any source.
    pub architecture: Option<Architecture>,
    /// Files that were written.
    pub figures: Vec<String>,
}

pub fn run(context: &Context, config: &Config) -> Result<Summary> {
    let verdicts = Verdicts::read(context, config)?;
    let table = Table::new(&verdicts.rows);
    let resampling = config.settings.resampling;
    let paired = match &config.compare {
        None => None,
        Some([a, b]) => Some(paired(&table, a, b, resampling).map_err(|unknown| {
            let names: Vec<&str> = verdicts.names().collect();
            let why = match verdicts.witnesses.contains_key(&unknown) {
                true => format!("{unknown} is a witness, which is not compared"),
                false => format!("no candidate and no model is named {unknown:?}"),
            };
            Failure::user(why).hint(format!("one of: {}", names.join(", ")))
        })?),
    };
    let facts = sources::facts(context, config, &verdicts.digests)?;
    let analysis = analyse_resampled(&table, resampling);
    let mut summary = Summary {
        n_unfinished: verdicts.n_unfinished,
        resampling,
        architecture: architecture(&analysis, &table, &facts, resampling),
        analysis,
        figures: Vec::new(),
        coverage: coverage(&table),
        independence: independence(&table),
        items: items(&table),
        floor: floor(&table, &verdicts.witnesses),
        selection: selection(&table, config.settings.wanted_reliability),
        paired,
        witnesses: verdicts.witnesses.into_keys().collect(),
        source: verdicts.source,
    };
    if let Some(path) = &config.csv_out {
        let mut writer = csv::Writer::from_path(path).kind(Kind::User)?;
        let all = [
            estimates(&summary.analysis),
            of_items(&summary.items),
            summary
                .architecture
                .as_ref()
                .map(of_architecture)
                .unwrap_or_default(),
            summary.paired.as_ref().map(of_pair).unwrap_or_default(),
        ];
        for estimate in all.iter().flatten() {
            writer.serialize(estimate)?;
        }
        writer.flush()?;
    }
    if let Some(folder) = &config.figures {
        let written = pictures::write(&summary, folder)?;
        summary.figures = written
            .iter()
            .map(|path| context.project.shown(path))
            .collect();
    }
    Ok(summary)
}

/// A table that is not there was named wrongly; one that is wrong was written so.
fn csv_failure(error: CsvError) -> Failure {
    let kind = match &error {
        CsvError::Read { .. } => Kind::User,
        CsvError::Row(_) => Kind::Settings,
    };
    Failure {
        kind,
        source: error.into(),
        hints: Vec::new(),
    }
}
