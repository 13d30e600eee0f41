//! `pipeline review`.

mod agreement;
mod mend;
mod serve;

use std::path::PathBuf;

use clap::Subcommand;

use super::{ExitCode, Output, output};
use crate::domain::decision::{Subject, SubjectKind, Verb};
use crate::domain::visible::{shortened, visible, visible_line};
use crate::stages::review::{
    self, Decided, Item, Listing, Order, ReadConfig, ReadSummary, Saying, Shown, Simulated,
};
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
    /// Read issues in batches: what to read next, and whether to read on
    ///
    /// The order of the unread is learned anew from what was read. `stop now` comes when a tenth is read and the last 50
    /// issues brought nothing (or, with `by = "bound"` in pipeline/review.toml, when it is unlikely that more than the
    /// allowed share of relevant issues was missed); a closing sample of the rest then bounds what is left.
    Read(ReadArgs),
    /// Say how far reviewers agree, on first votes, and what they disagree on
    Agreement {
        /// Of this kind
        #[arg(long, value_parser = kind, default_value = "issue")]
        kind: SubjectKind,
    },
    /// Serve a page for reading and deciding, on this machine only, until Ctrl-C
    ///
    /// Prints an address for each reviewer; whoever has it decides in that name. Decisions are the same lines of the same
    /// files as those of the other commands, on the disk before the page answers. The page loads nothing from elsewhere.
    Serve(serve::Args),
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
    /// Leave to somebody else what you cannot say; it waits on, apart from what nobody has looked at
    Unsure {
        subject: Subject,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Send a case back; the reason says what to change
    Change {
        subject: Subject,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Remark on a subject, in --why, and decide nothing
    Note {
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
    /// Make the decision on a subject again that you took back last
    Redo {
        subject: Subject,
        /// Who decides; git's user.name unless said
        #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
        by: Option<String>,
    },
    /// Mend clusters: merge, part, move, rename, choose the representative; undo and redo these
    ///
    /// Each act is lines in reviews/pairs.jsonl, names.jsonl or representatives.jsonl with the number of the act, and
    /// binds every later clustering. An undo takes the whole of your last act back.
    #[command(subcommand)]
    Mend(mend::Mend),
}

#[derive(Debug, clap::Args)]
struct ReadArgs {
    /// Issues to show [default: batch of pipeline/review.toml]
    #[arg(short)]
    n: Option<usize>,
    /// Record decisions first; a line each: approve OWNER/NAME#N WHY, or reject OWNER/NAME#N WHY (- for standard input)
    #[arg(long, value_name = "FILE")]
    say: Option<PathBuf>,
    /// Who decides what --say says; git's user.name unless said
    #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
    by: Option<String>,
    /// Draw a closing sample of N unread issues, which are read next
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Simulate a reviewer who says what a judged set says, and print what the rules would have done; nothing is stored
    #[arg(long, value_name = "DIR", conflicts_with_all = ["n", "say", "sample"])]
    judge: Option<PathBuf>,
    /// Hide the judged set among the issues of these files and folders
    #[arg(long, value_name = "PATH", requires = "judge", num_args = 1..)]
    among: Vec<PathBuf>,
    /// How often to simulate, each time without another tenth of the issues
    #[arg(long, value_name = "N", requires = "judge", default_value_t = 100)]
    shuffles: usize,
}

#[derive(Debug, clap::Args)]
struct SayingArgs {
    /// The reason; issues can do without
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
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
        Action::Read(args) => return read(args, context, output),
        Action::Agreement { kind } => {
            output.result(&review::double(context, kind)?, agreement::words)?;
            return Ok(ExitCode::Done);
        }
        Action::Mend(args) => return mend::run(args, context, output),
        Action::Redo { subject, by } => {
            let by = by.or_else(git_name).unwrap_or_default();
            output.result(&review::redo(context, &subject, &by)?, said)?;
            return Ok(ExitCode::Done);
        }
        Action::Serve(args) => return serve::run(args, context, output),
        Action::Show { subject } => {
            output.result(&review::show(context, &subject)?, shown)?;
            return Ok(ExitCode::Done);
        }
        Action::Approve { subject, saying } => (subject, Verb::Approve, saying),
        Action::Reject { subject, saying } => (subject, Verb::Reject, saying),
        Action::Unsure { subject, saying } => (subject, Verb::Unsure, saying),
        Action::Change { subject, saying } => (subject, Verb::Change, saying),
        Action::Note { subject, saying } => (subject, Verb::Note, saying),
        Action::Undo { subject, saying } => (subject, Verb::Undo, saying),
    };
    output.result(
        &decide(context, subject, verb, saying.by, saying.why)?,
        said,
    )?;
    Ok(ExitCode::Done)
}

/// Records a decision; who makes it is git's user.name unless said.
pub(super) fn decide(
    context: &Context,
    subject: Subject,
    verb: Verb,
    by: Option<String>,
    why: Option<String>,
) -> Result<Decided> {
    let saying = Saying {
        subject,
        verb,
        by: by.or_else(git_name).unwrap_or_default(),
        why: why.unwrap_or_default(),
    };
    review::decide(context, saying)
}

fn read(args: ReadArgs, context: &Context, output: &Output) -> Result<ExitCode> {
    let config = ReadConfig {
        n: args.n,
        sample: args.sample,
        ..ReadConfig::read(&context.project)?
    };
    if let Some(folder) = &args.judge {
        let simulated = review::simulate(context, &config, folder, &args.among, args.shuffles)?;
        output.result(&simulated, simulated_words)?;
        return Ok(ExitCode::Done);
    }
    if let Some(file) = &args.say {
        let by = args.by.or_else(git_name).unwrap_or_default();
        review::record(context, file, &by)?;
    }
    output.result(&review::read(context, &config)?, batch)?;
    Ok(ExitCode::Done)
}

fn batch(summary: &ReadSummary) -> String {
    let why = match summary.order {
        Order::Ranking => "in the order of the ranking",
        Order::Learned => "in the order learned from what was read",
        Order::Sample => "the closing sample",
    };
    let rows = summary.batch.iter().map(|unread| {
        vec![
            unread.key.to_string(),
            unread.place.to_string(),
            shortened(&visible_line(&unread.title), 60).into_owned(),
            unread.clause.clone().unwrap_or("-".to_owned()),
            visible_line(&unread.words.join(" ")).into_owned(),
        ]
    });
    let table = output::table(&["issue", "place", "title", "clause", "because of"], rows);
    let sentence = summary.reading.sentence();
    if summary.batch.is_empty() {
        return sentence;
    }
    format!(
        "{sentence}\n\n{} to read, {why}\n\n{table}",
        summary.batch.len()
    )
}

fn simulated_words(simulated: &Simulated) -> String {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let rows = simulated.rules.iter().map(|rule| {
        vec![
            rule.rule.clone(),
            format!("{} of {}", rule.n_reached, simulated.n_shuffles),
            format!("{:.3}", rule.median_recall),
            format!("{:.3}", rule.lowest_recall),
            format!("{:.3}", rule.median_read),
            format!("{:.3}", rule.mean_read),
        ]
    });
    let table = output::table(
        &[
            "rule",
            "recall ≥ .95",
            "median",
            "lowest",
            "median read",
            "mean read",
        ],
        rows,
    );
    format!(
        "{} issues, {} relevant, {} simulations\n\nWSS@95 {} in the order of the ranking, {} in the learned one\n\n{table}",
        simulated.n_issues,
        simulated.n_relevant,
        simulated.n_shuffles,
        figure(simulated.wss_95_ranking),
        figure(simulated.wss_95_learned),
    )
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
            let word = made.decision.done();
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
    let moved = decided
        .moved_to
        .as_ref()
        .map_or(String::new(), |path| format!("; it is {path}"));
    let (on, by) = (made.on.to_string(), visible_line(&made.by));
    let word = made.decision.done();
    format!("{} {word} by {by}{moved}", visible_line(&on))
}
