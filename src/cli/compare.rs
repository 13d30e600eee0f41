//! `pipeline compare`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::domain::difference::{Difference, Side};
use crate::domain::visible::shortened;
use crate::stages::compare::{self, Config, Summary};
use crate::stages::{Classify, Context, Kind, Result};
use crate::storage::settings;

/// The languages whose source can be read.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Language {
    Python,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A difference is traced to the clause whose words it shares most; the score is the share of its words, 0 to 1. \
The trace is a proposal: traced differences wait in `pipeline review list --kind difference`. What only the candidate \
has is listed with --all and never queued.")]
pub struct Args {
    /// The candidate: a name below candidates/ or a folder
    #[arg(long, value_name = "NAME")]
    candidate: String,
    /// The folder with the source of the mature harness
    #[arg(long, value_name = "DIR")]
    target: PathBuf,
    /// What to call the target; from its package or its folder when left out
    #[arg(long, value_name = "NAME")]
    target_name: Option<String>,
    /// The language of both
    #[arg(long, default_value = "python")]
    language: Language,
    /// Show one module only, such as tools.read, with the definitions that were placed in it
    #[arg(long, value_name = "MODULE")]
    module: Option<String>,
    /// List what follows from no clause and what only the candidate has, too
    #[arg(long)]
    all: bool,
    /// The most differences to list; all of them are in --json
    #[arg(long, value_name = "N", default_value_t = 40)]
    top: usize,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let Language::Python = args.language;
    let config = Config {
        settings: settings::read(&context.project.settings("compare")).kind(Kind::Settings)?,
        candidate: args.candidate.clone(),
        target: args.target.clone(),
        target_name: args.target_name.clone(),
    };
    let summary = compare::run(context, &config)?;
    output.result(&summary, |summary| words(summary, &args))?;
    Ok(ExitCode::Done)
}

fn words(summary: &Summary, args: &Args) -> String {
    let size = |n: usize| {
        if n == 0 {
            "-".to_owned()
        } else {
            n.to_string()
        }
    };
    let modules = output::table(
        &[
            "module",
            "lines",
            "target lines",
            "missing",
            "differs",
            "traced",
            "extra",
        ],
        summary
            .modules
            .iter()
            .filter(|module| !module.candidate.units.is_empty() || !module.target.units.is_empty())
            .filter(|module| {
                args.module
                    .as_ref()
                    .is_none_or(|name| *name == module.module)
            })
            .map(|module| {
                vec![
                    module.module.clone(),
                    size(module.candidate.n_lines),
                    size(module.target.n_lines),
                    size(module.n_missing),
                    size(module.n_differs),
                    size(module.n_traced),
                    size(module.n_extra),
                ]
            }),
    );
    let parts: String = summary
        .modules
        .iter()
        .filter(|module| args.module.as_ref() == Some(&module.module))
        .flat_map(|module| [("candidate", &module.candidate), ("target", &module.target)])
        .flat_map(|(side, part)| {
            part.units
                .iter()
                .map(move |unit| format!("{side:<10} {unit}\n"))
        })
        .collect();
    let listed: Vec<&Difference> = summary
        .differences
        .iter()
        .filter(|difference| {
            args.module
                .as_ref()
                .is_none_or(|name| *name == difference.module)
        })
        .filter(|difference| {
            args.all || (difference.side != Side::Extra && difference.trace.is_some())
        })
        .collect();
    let n_hidden = listed.len().saturating_sub(args.top);
    let rows = output::table(
        &["clause", "score", "difference", "place"],
        listed.iter().take(args.top).map(|difference| {
            let (clause, score) = match &difference.trace {
                Some(trace) => (trace.clause.to_string(), format!("{:.2}", trace.score)),
                None => ("not derivable".to_owned(), "-".to_owned()),
            };
            let sight = difference.target.as_ref().or(difference.candidate.as_ref());
            vec![
                clause,
                score,
                shortened(&difference.title, 90).into_owned(),
                sight.map_or_else(String::new, |sight| sight.place.clone()),
            ]
        }),
    );
    let more = match n_hidden {
        0 => String::new(),
        n => format!("\n{n} more (--top N, --module MODULE, --json)"),
    };
    format!(
        "{} against {}: {} differences follow from a clause ({} new), {} do not; {} are only in the candidate\n\n\
         {modules}\n\n{parts}{}{rows}{more}",
        summary.candidate,
        summary.target,
        summary.n_traced,
        summary.n_new,
        summary.n_not_derivable,
        summary.n_extra,
        if parts.is_empty() { "" } else { "\n" },
    )
}
