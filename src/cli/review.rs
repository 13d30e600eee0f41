//! `pipeline review`.

use clap::Subcommand;

use super::{ExitCode, Output, output};
use crate::domain::decision::{Subject, SubjectKind, Verb};
use crate::domain::visible::{shortened, visible, visible_line};
use crate::stages::review::{self, Decided, Item, Listing, Saying, Shown};
use crate::stages::{Context, Result};

/// Decisions are lines of the files below reviews/, made for git: append-only, one file a kind.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what waits for a decision
    List {
        /// Only this kind
        #[arg(long, value_parser = kind)]
        kind: Option<SubjectKind>,
        /// What is decided too
        #[arg(long)]
        all: bool,
    },
    /// Show everything that is known of a subject
    Show { subject: Subject },
    /// Approve: an issue is relevant, a cluster or difference becomes a case, a variant joins the suite
    Approve {
        subject: Subject,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Reject
    Reject {
        subject: Subject,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Take your own last decision on a subject back
    Undo {
        subject: Subject,
        #[command(flatten)]
        saying: SayingArgs,
    },
}

#[derive(Debug, clap::Args)]
struct SayingArgs {
    /// The reason
    #[arg(long, default_value = "")]
    why: String,
    /// Who decides; git's user.name unless said
    #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
    by: Option<String>,
}

fn kind(text: &str) -> std::result::Result<SubjectKind, String> {
    SubjectKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .ok_or_else(|| {
            format!(
                "use one of {}",
                SubjectKind::ALL.map(SubjectKind::as_str).join(", ")
            )
        })
}

pub fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let (subject, verb, saying) = match args.action {
        Action::List { kind, all } => {
            output.result(&review::list(context, kind, all)?, listed)?;
            return Ok(ExitCode::Done);
        }
        Action::Show { subject } => {
            output.result(&review::show(context, &subject)?, shown)?;
            return Ok(ExitCode::Done);
        }
        Action::Approve { subject, saying } => (subject, Verb::Approve, saying),
        Action::Reject { subject, saying } => (subject, Verb::Reject, saying),
        Action::Undo { subject, saying } => (subject, Verb::Undo, saying),
    };
    let decided = review::decide(
        context,
        Saying {
            subject,
            verb,
            by: saying.by.or_else(git_name).unwrap_or_default(),
            why: saying.why,
        },
    )?;
    output.result(&decided, said)?;
    Ok(ExitCode::Done)
}

/// None when git is not there or knows no name.
fn git_name() -> Option<String> {
    let output = std::process::Command::new("git")
        .args(["config", "user.name"])
        .output()
        .ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !name.is_empty()).then_some(name)
}

/// Rows that people are shown; `--json` gives all.
const N_SHOWN: usize = 40;

fn listed(listing: &Listing) -> String {
    let rows = listing.items.iter().take(N_SHOWN).map(|item| {
        vec![
            visible_line(&item.subject.to_string()).into_owned(),
            shortened(&visible_line(&item.title), 60).into_owned(),
            item.clause
                .as_ref()
                .map_or("n/a".to_owned(), ToString::to_string),
            state(item),
        ]
    });
    let table = output::table(&["subject", "title", "clause", "why"], rows);
    let more = match listing.items.len().saturating_sub(N_SHOWN) {
        0 => String::new(),
        n => format!("… and {n} more (--json lists all)\n"),
    };
    format!("{table}\n{more}\n{} wait for a decision", listing.n_waiting)
}

fn state(item: &Item) -> String {
    match (&item.decided, item.changed) {
        (None, _) => item.why.clone(),
        (Some(made), changed) => {
            let word = match made.decision {
                Verb::Approve => "approved",
                Verb::Reject => "rejected",
                Verb::Undo => "undone",
            };
            let changed = if changed { ", changed since" } else { "" };
            format!("{word} by {}{changed}", visible_line(&made.by))
        }
    }
}

fn shown(shown: &Shown) -> String {
    let item = &shown.item;
    let mut text = format!("{}\n", visible_line(&item.subject.to_string()));
    text += &format!("title   {}\n", visible_line(&item.title));
    if let Some(clause) = &item.clause {
        text += &format!("clause  {clause}\n");
    }
    text += &format!("state   {}\n", state(item));
    if let Some(made) = &item.decided {
        text += &format!("reason  {} ({})\n", visible_line(&made.why), made.at);
    }
    format!("{text}\n{}", visible(&shown.text))
}

fn said(decided: &Decided) -> String {
    let made = &decided.decision;
    let word = match made.decision {
        Verb::Approve => "approved",
        Verb::Reject => "rejected",
        Verb::Undo => "taken back:",
    };
    let moved = decided
        .moved_to
        .as_ref()
        .map_or(String::new(), |path| format!("; it is {path}"));
    let (on, by) = (made.on.to_string(), visible_line(&made.by));
    format!("{word} {} by {by}{moved}", visible_line(&on))
}
