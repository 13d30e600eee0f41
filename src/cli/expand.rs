//! `pipeline expand`.

use std::path::PathBuf;

use super::{ExitCode, Output, output};
use crate::domain::visible::shortened;
use crate::stages::expand::{self, Config, Summary};
use crate::stages::{Context, Result};

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The four variables are the tool, the form of the input (of paths and files, and of how a launch is given: flags, \
settings, streams), the erroneous parameter (of calls, options, settings and flags) and the site where the result is \
returned (requests, outputs, a response of the evaluation API); pipeline/expand.toml holds their operators. A variant that differs in more than one of them, or whose \
assertion changed, is rejected. The distance of two scenarios is 0 to 1: the weighed mean of how much their steps, \
fixtures, arguments and places looked at differ in shape. A variant of the suite that no candidate of the certificate tells from its seed is too close in behaviour; \
`pipeline status` counts them by round. Kept variants wait in `pipeline review list --kind case`.")]
pub struct Args {
    /// The case to start from: CATEGORY/NAME, in cases/ or among the variants
    #[arg(long, value_name = "CASE")]
    seed: String,
    /// Where kept variants go; data/variants unless said
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace variants that were changed since they were written
    #[arg(long)]
    overwrite: bool,
    /// List the operators that do not fit, too, and why
    #[arg(long)]
    all: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let mut config = Config::read(&context.project, &args.seed)?;
    config.overwrite = args.overwrite;
    if let Some(out) = args.out {
        config.out = out;
    }
    let summary = expand::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context, args.all))?;
    Ok(ExitCode::Done)
}

fn words(summary: &Summary, context: &Context, all: bool) -> String {
    let known = match summary.discriminates {
        Some(true) => "",
        Some(false) => {
            "the certificate shows no candidate that fails the seed: variants may not discriminate either\n"
        }
        None => {
            "no certificate knows the seed yet, so that nothing shows whether it discriminates\n"
        }
    };
    let head = format!(
        "{}: {} kept, {} dropped, {} operators do not fit\n{known}{} files written below {}\n",
        summary.seed,
        summary.n_kept,
        summary.variants.len() - summary.n_kept,
        summary.rejected.len(),
        summary.n_written,
        context.project.shown(&summary.out),
    );
    let rows = summary.variants.iter().map(|variant| {
        let near = variant.nearest.as_ref();
        vec![
            variant.variable.as_str().to_owned(),
            variant.operator.clone(),
            format!("{:.3}", variant.distance),
            near.map_or("-".to_owned(), |near| format!("{:.3}", near.distance)),
            if variant.kept { "kept" } else { "dropped" }.to_owned(),
            shortened(&variant.why, 100).into_owned(),
        ]
    });
    let mut text = head;
    if !summary.variants.is_empty() {
        let header = ["variable", "operator", "distance", "nearest", "", "why"];
        text += &format!("\n{}", output::table(&header, rows));
    }
    if summary.n_kept > 0 {
        text += "\n\nnext: pipeline review list --kind case";
    }
    // Where nothing fits, the reasons are the result.
    if all || summary.variants.is_empty() {
        let rows = summary.rejected.iter().map(|rejected| {
            vec![
                rejected.variable.as_str().to_owned(),
                rejected.operator.clone(),
                shortened(&rejected.why, 110).into_owned(),
            ]
        });
        text += &format!(
            "\n\n{}",
            output::table(&["variable", "operator", "does not fit"], rows)
        );
    }
    text
}
