//! `pipeline document`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::methods::document_coverage::Coverage;
use crate::stages::document::{self, CheckSummary, Config, Format};
use crate::stages::{Classify, Context, Kind, Result};
use crate::storage::settings;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check the document against itself, its words and the inventory
    Check,
    /// Count which features of which harness went into which clause
    Coverage(CoverageArgs),
    /// Write the document as one text for the builder
    Render(RenderArgs),
}

#[derive(Debug, clap::Args)]
struct CoverageArgs {
    /// What one line of the table is about; the JSON result has everything
    #[arg(long, value_enum, default_value_t = By::Chapter)]
    by: By,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum By {
    Chapter,
    Clause,
    Harness,
    Reason,
}

#[derive(Debug, clap::Args)]
struct RenderArgs {
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = TextFormat::Md)]
    format: TextFormat,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum TextFormat {
    /// Markdown
    Md,
    /// One page that needs no other file
    Html,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    match args.command {
        Command::Check => {
            let config: Config =
                settings::read(&context.project.settings("document")).kind(Kind::Settings)?;
            let summary = document::check(context, &config)?;
            output.result(&summary, check_words)?;
            Ok(if summary.findings.is_empty() {
                ExitCode::Done
            } else {
                ExitCode::Found
            })
        }
        Command::Coverage(args) => {
            let coverage = document::coverage(context)?;
            output.result(&coverage, |coverage| coverage_words(coverage, args.by))?;
            Ok(ExitCode::Done)
        }
        Command::Render(args) => {
            let format = match args.format {
                TextFormat::Md => Format::Markdown,
                TextFormat::Html => Format::Html,
            };
            let text = document::render(context, format)?;
            match args.out {
                Some(path) => document::write(&path, &text)?,
                None => output.result(&text, Clone::clone)?,
            }
            Ok(ExitCode::Done)
        }
    }
}

fn check_words(summary: &CheckSummary) -> String {
    let mut lines: Vec<String> = summary
        .findings
        .iter()
        .map(|found| format!("{}:{}: {}", found.file, found.line, found.message))
        .collect();
    let n_features: usize = summary.harnesses.iter().map(|tally| tally.n_features).sum();
    let n_open: usize = summary.harnesses.iter().map(|tally| tally.n_open).sum();
    lines.push(format!(
        "{} chapters, {} clauses, {} aliases, {} homonyms, {n_features} features of {} harnesses ({n_open} open): {}",
        summary.n_chapters,
        summary.n_clauses,
        summary.n_aliases,
        summary.n_homonyms,
        summary.harnesses.len(),
        match summary.findings.len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            n => format!("{n} findings"),
        }
    ));
    lines.join("\n")
}

fn coverage_words(coverage: &Coverage, by: By) -> String {
    match by {
        By::Chapter => output::table(
            &[
                "chapter",
                "clauses",
                "ordinary",
                "boundary",
                "backed",
                "features",
                "harnesses",
            ],
            coverage.chapters.iter().map(|row| {
                let counts = [
                    row.n_clauses,
                    row.n_ordinary,
                    row.n_boundary,
                    row.n_backed,
                    row.n_features,
                    row.n_harnesses,
                ];
                named(&row.chapter, &counts)
            }),
        ),
        By::Clause => output::table(
            &["clause", "features", "harnesses"],
            coverage.clauses.iter().map(|row| {
                let n_features: usize = row.features.values().map(Vec::len).sum();
                let harnesses: Vec<&str> = row.features.keys().map(String::as_str).collect();
                vec![
                    row.clause.to_string(),
                    n_features.to_string(),
                    harnesses.join(", "),
                ]
            }),
        ),
        By::Harness => output::table(
            &["harness", "features", "merged", "split", "pruned", "open"],
            coverage.harnesses.iter().map(|row| {
                named(
                    &row.harness,
                    &[
                        row.n_features,
                        row.n_merged,
                        row.n_split,
                        row.n_pruned,
                        row.n_open,
                    ],
                )
            }),
        ),
        By::Reason => output::table(
            &["reason", "features"],
            coverage
                .pruned
                .iter()
                .map(|(reason, n)| named(reason, &[*n])),
        ),
    }
}

fn named(name: &str, counts: &[usize]) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend(counts.iter().map(ToString::to_string));
    row
}
