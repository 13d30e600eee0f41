//! `pipeline case`: faults of the cases, and one case in words.

use std::fmt::Write;

use super::{ExitCode, Output};
use crate::domain::visible::{shortened, visible_line};
use crate::methods::cases::story::{LaunchStory, Story, tree};
use crate::stages::case::{self, Config, Shown, Summary, Weight};
use crate::stages::{Context, Result};

/// Characters of a line of a case; `--full` cuts nothing.
const SHOWN_CHARS: usize = 160;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Lint(LintArgs),
    Show(ShowArgs),
}

/// Find what is wrong or doubtful in the cases
///
/// Errors are what an evaluation refuses, and controls that differ from a case they gate in more than the input or the
/// route. Notes are for a reader: near copies, absences of what nothing says, steps that are never asked for, flags and
/// tools that the document does not have, controls that change two things. Exit code 1 when there is an error.
#[derive(Debug, clap::Args)]
struct LintArgs {
    /// Only findings of these files, folders or ids; the whole suite is looked at all the same
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

/// Tell one case or control in words
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// CATEGORY/NAME, or the name alone
    name: String,
    /// Cut nothing
    #[arg(long)]
    full: bool,
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    match args.command {
        Command::Lint(args) => {
            let summary = case::lint(context, &Config { paths: args.paths })?;
            output.result(&summary, lint_words)?;
            Ok(match summary.n_errors {
                0 => ExitCode::Done,
                _ => ExitCode::Found,
            })
        }
        Command::Show(args) => {
            let n_chars = if args.full { usize::MAX } else { SHOWN_CHARS };
            output.result(&case::show(context, &args.name)?, |shown| {
                show_words(shown, n_chars)
            })?;
            Ok(ExitCode::Done)
        }
    }
}

fn lint_words(summary: &Summary) -> String {
    let mut out = String::new();
    for found in &summary.found {
        let weight = match found.weight {
            Weight::Error => "error",
            Weight::Note => "note",
        };
        let message = visible_line(&found.message);
        writeln!(out, "{}:{}: {weight}: {message}", found.file, found.line).expect("a String");
        for difference in &found.differences {
            writeln!(out, "    {}", visible_line(difference)).expect("a String");
        }
    }
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    writeln!(
        out,
        "{} and {}: {}, {}",
        plural(summary.n_cases, "case"),
        plural(summary.n_controls, "control"),
        plural(summary.n_errors, "error"),
        plural(summary.n_notes, "note"),
    )
    .expect("a String");
    out
}

fn show_words(shown: &Shown, n_chars: usize) -> String {
    let Shown {
        file,
        story,
        behaviour,
    } = shown;
    let mut out = String::new();
    let mut line = |text: String| {
        let text = visible_line(text.trim_end());
        writeln!(out, "{}", shortened(&text, n_chars)).expect("a String takes everything");
    };
    line(format!("{}  {file}", story.id));
    line(format!("  {}", story.title));
    line(format!("  {}", story.purpose));
    line(format!("  {}, clause {}", story.kind, story.clause));
    if let Some(behaviour) = behaviour {
        line(format!("  “{behaviour}”"));
    }
    if !story.origin.is_empty() {
        line(format!("  from {}", story.origin.join(", ")));
    }
    fixture(story, &mut line);
    for (idx, launch) in story.launches.iter().enumerate() {
        line(String::new());
        self::launch(idx + 1, launch, &mut line);
    }
    line(String::new());
    line("expected".to_owned());
    for (idx, expect) in story.expects.iter().enumerate() {
        line(format!("  {}. {}", idx + 1, expect.sentence));
        line(format!("     {}", expect.short));
    }
    if !story.controls.is_empty() {
        line(String::new());
        line("gated by".to_owned());
    }
    for control in &story.controls {
        match (&control.title, &control.class) {
            (Some(title), Some(class)) => line(format!("  {} ({class}): {title}", control.name)),
            _ => line(format!("  {}: there is no such control", control.name)),
        }
        for difference in &control.differences {
            line(format!("    {difference}"));
        }
    }
    if !story.gates.is_empty() {
        line(String::new());
        line("gates".to_owned());
        for id in &story.gates {
            line(format!("  {id}"));
        }
    }
    out
}

/// The tree of what lies there before the first launch.
fn fixture(story: &Story, line: &mut impl FnMut(String)) {
    if story.fixture.is_empty() {
        return;
    }
    line(String::new());
    line("laid before".to_owned());
    for told in tree(&story.fixture) {
        let indent = "  ".repeat(told.depth + 1);
        line(format!("{indent}{}  {}", told.name, told.what));
    }
}

fn launch(number: usize, launch: &LaunchStory, line: &mut impl FnMut(String)) {
    line(format!("launch {number}  {}", launch.command));
    for circumstance in &launch.circumstances {
        line(format!("  {circumstance}"));
    }
    for said in &launch.conversation {
        line(format!("  {:<8}  {}", said.who, said.what));
    }
}
