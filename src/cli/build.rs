//! `pipeline build`.

use std::path::PathBuf;

use super::{ExitCode, Output};
use crate::domain::build::{State, Turn};
use crate::stages::build::{self, Built, Config, Order, Settings, Summary};
use crate::stages::sandboxes::{self, SandboxKind};
use crate::stages::{Context, Failure, Result, contract};

/// Build candidates with a model
///
/// OpenCode works in an empty cell that holds the contract skeleton and DOCUMENT.md, and has no way out but a gateway to
/// the model, which is described in pipeline/build.toml. It submits with the command `submit`: the contract check is
/// made, and what it finds comes back. A submission that passes is frozen and ends the build; turns, submissions and
/// wall clock have limits.
///
/// Exit code 1 when a build of this call did not end with a submission that passes, 6 when our side broke one of them
/// while others ended.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The model, by its name in pipeline/build.toml
    #[arg(long, value_name = "NAME", required_unless_present = "builder")]
    model: Option<String>,
    /// How many builds there are to be
    ///
    /// Builds of this model count that are there already, with the same builder, document, skeleton and settings.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    builds: u32,
    /// Run this command in the place of OpenCode
    ///
    /// It is given to /bin/sh once a turn, with the prompt as $1 and the number of the turn as $2. With --model the
    /// model is behind http://127.0.0.1:8400/v1.
    #[arg(long, value_name = "COMMAND")]
    builder: Option<String>,
    /// Name a build and its candidate, or several NAME-1, NAME-2, … [default: the model's name, numbered]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep builds here instead of data/builds
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A folder of this machine that the command sees, read-only, as /shown/NAME with the last part of its path
    #[arg(long, value_name = "DIR", requires = "builder")]
    show: Vec<PathBuf>,
    /// Where the builder runs [default: that of pipeline/build.toml]
    #[arg(long)]
    sandbox: Option<SandboxKind>,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    if let Some(name) = &args.name
        && (name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']))
    {
        return Err(Failure::user(format!(
            "{name:?} cannot name a build: it is a folder's name"
        )));
    }
    let settings = Settings::read(context)?;
    let config = Config {
        orders: vec![Order {
            model: args.model,
            builds: args.builds as usize,
            name: args.name,
        }],
        builder: args.builder,
        show: args.show,
        folder: args.out.unwrap_or_else(|| context.project.builds()),
        sandbox: args.sandbox.unwrap_or(settings.sandbox),
        settings,
        check: contract::Settings::read(context)?,
        sandboxes: sandboxes::Settings::read(context)?,
    };
    let summary = build::run(context, &config)?;
    output.result(&summary, |summary| words(summary, context))?;
    let all_pass = summary.built.iter().all(|one| one.candidate.is_some());
    Ok(match (summary.broken.is_empty(), all_pass) {
        (false, _) => ExitCode::Invalid,
        (true, true) => ExitCode::Done,
        (true, false) => ExitCode::Found,
    })
}

fn words(summary: &Summary, context: &Context) -> String {
    let mut lines = Vec::new();
    for name in &summary.voided {
        lines.push(format!("{name}: void, its process had died"));
    }
    for name in &summary.known {
        lines.push(format!("{name}: is there already"));
    }
    for one in &summary.built {
        lines.extend(told(one, context));
    }
    for one in &summary.broken {
        lines.push(format!("{}: void, our side broke: {}", one.name, one.why));
    }
    lines.join("\n")
}

fn told(one: &Built, context: &Context) -> Vec<String> {
    let build = &one.build;
    let tokens = build.tokens();
    let count = |of: fn(&Turn) -> usize| -> usize { build.turns.iter().map(of).sum() };
    let mut lines = vec![format!(
        "{}: {} turns, {:.0} s, {} submissions; {} answers of the model, {} calls failed, {} refused; {} tokens read \
         ({} from its cache), {} written",
        build.name,
        build.turns.len(),
        build.duration_ms as f64 / 1000.0,
        build.submissions.len(),
        count(|turn| turn.n_answered),
        count(|turn| turn.n_failed),
        count(|turn| turn.n_refused),
        tokens.input,
        tokens.cached,
        tokens.output,
    )];
    let n_unmetered = count(|turn| turn.n_unmetered);
    if n_unmetered > 0 {
        lines.push(format!(
            "{}: the endpoint told no tokens of {n_unmetered} answers",
            build.name
        ));
    }
    if let Some(last) = build.submissions.last() {
        lines.extend(last.findings.iter().map(|finding| format!("  {finding}")));
    }
    let why = build.why.as_deref().unwrap_or_default();
    let folder = context.project.shown(&one.folder);
    lines.push(match (&one.candidate, build.state) {
        (Some(candidate), _) => format!(
            "{}: passes; evaluate it: pipeline evaluate --candidate {}",
            build.name,
            context.project.shown(candidate)
        ),
        (None, State::NotDelivered) => {
            format!("{}: not delivered: {why}; see {folder}", build.name)
        }
        (None, State::Aborted) => {
            format!("{}: aborted, no result: {why}; see {folder}", build.name)
        }
        (None, _) => format!("{}: no submission passes: {why}; see {folder}", build.name),
    });
    lines
}
