//! `pipeline draft`.

use super::{ExitCode, Output};
use crate::domain::secret::Secret;
use crate::domain::visible::{shortened, visible_line};
use crate::stages::draft::{self, Config, Settings, Summary};
use crate::stages::sandboxes::{SandboxKind, Settings as Sandboxes};
use crate::stages::{Context, Failure, Result};

/// The key is read from the environment only: arguments and files are seen by others.
const KEY: &str = "PIPELINE_MODEL_KEY";

/// Write the draft of a case from a cluster into the approval queue
///
/// Without a model it is a case to start from: clause, category, fixture and script are those of the suite's nearest
/// case, the issues stand above them, and it cannot be approved before somebody has finished it. With --model a model
/// fills it: its answer has to be in the case language, within bounds, without faults, pass on the reference with its
/// controls and fail on a harness that does nothing, or else it is refused, told why, and kept below data/drafts/.
///
/// A key is taken from PIPELINE_MODEL_KEY. Exit code 1 when every draft was refused. Texts of issues and answers are
/// data: what a draft runs, it runs in a cell; see docs/drafts.md.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A cluster that the filter kept: pipeline review list --kind cluster
    cluster: String,
    /// Ask the model behind this OpenAI-compatible endpoint, as http://127.0.0.1:8000/v1
    #[arg(long, value_name = "URL")]
    model: Option<String>,
    /// What the endpoint calls the model [default: name of pipeline/draft.toml]
    #[arg(long, value_name = "NAME", requires = "model")]
    model_name: Option<String>,
    /// Where the draft is run [default: that of pipeline/evaluate.toml]
    #[arg(long, value_enum, requires = "model")]
    sandbox: Option<SandboxKind>,
    /// Replace a draft that was changed since it was written
    #[arg(long)]
    overwrite: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let sandboxes = Sandboxes::read(context)?;
    let config = Config {
        cluster: args.cluster,
        key: match args.model {
            Some(_) => key()?,
            None => None,
        },
        model: args.model,
        model_name: args.model_name,
        overwrite: args.overwrite,
        sandbox: args.sandbox.unwrap_or(sandboxes.sandbox),
        settings: Settings::read(&context.project)?,
        sandboxes,
    };
    let summary = draft::run(context, &config)?;
    output.result(&summary, words)?;
    Ok(match summary.queued {
        Some(_) => ExitCode::Done,
        None => ExitCode::Found,
    })
}

fn key() -> Result<Option<Secret>> {
    match std::env::var(KEY) {
        Ok(text) if !text.is_empty() => Secret::new(&text)
            .map(Some)
            .ok_or_else(|| Failure::environment(format!("{KEY} holds signs that no key has"))),
        _ => Ok(None),
    }
}

fn words(summary: &Summary) -> String {
    let mut text = format!(
        "{}: {} issues, clause {}\n",
        summary.cluster, summary.n_issues, summary.clause
    );
    for refusal in &summary.refused {
        let reason = shortened(&visible_line(&refusal.reason), 300).into_owned();
        text += &format!("refused  {}: {reason}\n", refusal.check);
    }
    if let Some(file) = &summary.refused_file {
        text += &format!("kept     {file}\n");
    }
    let Some(queued) = &summary.queued else {
        return text + "\nnothing was queued; without --model you get a case to start from";
    };
    for file in &queued.files {
        text += &format!("queued   {file}\n");
    }
    for file in &queued.left {
        text += &format!(
            "left     {file}: it was changed since it was written (--overwrite replaces it)\n"
        );
    }
    if let Some(what) = &queued.to_finish {
        text += &format!("finish   {}\n", visible_line(what));
    }
    for note in &queued.notes {
        text += &format!("note     {}\n", visible_line(note));
    }
    format!("{text}\nnext: pipeline review show case:{}", queued.case)
}
