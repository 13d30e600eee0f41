//! `pipeline analyze`: the statistics of runs or of a table of verdicts.

mod architecture;
mod cases;
mod numbers;
mod pair;
mod rates;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{ExitCode, Output};
use crate::domain::visible::visible_line;
use crate::stages::analyze::{Config, Settings, Source, Summary};
use crate::stages::{Context, Result, analyze};
use numbers::count;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or several of the same cases on different candidates; the newest one unless said
    #[arg(conflicts_with = "csv", value_name = "RUN")]
    runs: Vec<String>,
    /// Read verdicts from a table instead of a run
    ///
    /// Columns: candidate, model, build, case, category, scenario, outcome, and family (the seed of a variant) and
    /// controls (how many gate the case) where they are known. `report` writes such a table for each run; tables of
    /// several runs can be joined below one header.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The model that built a candidate; candidates of one model are its builds (repeatable)
    ///
    /// A candidate of a run is a model of its own unless said.
    #[arg(long, value_name = "CANDIDATE=MODEL", value_parser = pair_of_names, num_args = 1..)]
    model_of: Vec<(String, String)>,
    /// A candidate that is no contestant but shows what can be passed (repeatable)
    ///
    /// It is in no rate. A case that no candidate passes and a witness does is hard; one that no witness passes either
    /// may be too strict. Patterns as in `adapters/*` are possible; pipeline/analyze.toml names some.
    #[arg(long, value_name = "CANDIDATE")]
    witness: Vec<String>,
    /// Compare two candidates, or two models, on the same cases with an exact test
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    compare: Option<Vec<String>>,
    /// Read facts of the candidates' sources from a table
    ///
    /// Columns: candidate, code_lines, modules, functions, largest_module (code lines), and dedicated (categories with a
    /// module of their own, between blanks) where it is known. Of a run they are counted in the frozen candidates unless
    /// this is given.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Draw the figures into this folder, each as SVG and as PNG
    ///
    /// ranking: pass rates with their spread; categories: cases and controls by category; code-lines: code lines against
    /// pass rate, and the builds of each model.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Write every estimate to this file, one a row
    #[arg(long, value_name = "FILE")]
    csv_out: Option<PathBuf>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let mut settings = Settings::read(&context.project)?;
    settings.witnesses.extend(args.witness);
    let config = Config {
        settings,
        source: match args.csv {
            Some(path) => Source::Table(path),
            None => Source::Runs(args.runs),
        },
        models: args.model_of.into_iter().collect::<BTreeMap<_, _>>(),
        compare: args
            .compare
            .map(|names| <[String; 2]>::try_from(names).expect("the command line takes two names")),
        facts: args.facts,
        figures: args.figures,
        csv_out: args.csv_out,
    };
    let summary = analyze::run(context, &config)?;
    output.result(&summary, words)?;
    Ok(ExitCode::Done)
}

fn pair_of_names(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((candidate, model)) if !candidate.is_empty() && !model.is_empty() => {
            Ok((candidate.to_owned(), model.to_owned()))
        }
        _ => Err("write CANDIDATE=MODEL".to_owned()),
    }
}

fn words(summary: &Summary) -> String {
    let analysis = &summary.analysis;
    let mut parts = vec![
        format!(
            "{}: {} of {} on {} in {}",
            summary.source,
            count(analysis.candidates.len(), "candidate", "candidates"),
            count(analysis.models.len(), "model", "models"),
            count(analysis.n_cases, "case", "cases"),
            count(analysis.n_families, "family", "families"),
        ),
        left_out(summary),
    ];
    if let Some(paired) = &summary.paired {
        parts.push(pair::paired(paired));
    }
    parts.push(rates::candidates(analysis));
    if analysis.models.len() < analysis.candidates.len() {
        parts.push(rates::models(analysis));
    }
    parts.push(rates::groups(analysis));
    parts.push(rates::ranks(analysis));
    parts.push(rates::correlations(analysis));
    parts.push(cases::reliability(summary));
    parts.push(cases::coverage(&summary.coverage));
    parts.push(cases::floor(&summary.floor));
    parts.push(cases::items(&summary.items));
    if let Some(found) = &summary.architecture {
        parts.push(architecture::architecture(found));
    }
    if !summary.figures.is_empty() {
        parts.push(format!("written: {}", summary.figures.join(", ")));
    }
    parts.push(format!(
        "intervals of 95 %: {} over families and builds, seed {}; docs/analysis.md says how to read each figure",
        count(summary.resampling.draws, "draw", "draws"),
        summary.resampling.seed
    ));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn left_out(summary: &Summary) -> String {
    let analysis = &summary.analysis;
    let mut lines = Vec::new();
    if analysis.n_invalid > 0 {
        lines.push(format!(
            "left out: {} (our side broke)",
            count(analysis.n_invalid, "invalid verdict", "invalid verdicts")
        ));
    }
    if analysis.n_not_asked > 0 {
        lines.push(format!(
            "left out: {} not asked (the adapter of a shipping harness cannot express the case)",
            count(analysis.n_not_asked, "verdict", "verdicts")
        ));
    }
    if summary.n_unfinished > 0 {
        lines.push(format!(
            "the run is not finished: {} not there yet",
            count(summary.n_unfinished, "verdict is", "verdicts are")
        ));
    } else if analysis.n_missing > 0 {
        lines.push(format!(
            "left out: {} of a candidate and a case without a verdict",
            count(analysis.n_missing, "pair", "pairs")
        ));
    }
    if lines.is_empty() {
        lines.push("left out: nothing".to_owned());
    }
    if !summary.witnesses.is_empty() {
        lines.push(format!(
            "witnesses, in no rate: {}",
            visible_line(&summary.witnesses.join(", "))
        ));
    }
    lines.join("\n")
}
