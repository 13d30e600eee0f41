//! `pipeline review mend`: clusters put together, parted, renamed, from the command line.

use clap::Subcommand;

use super::super::{ExitCode, Output};
use super::{SayingArgs, git_name};
use crate::domain::issue::IssueKey;
use crate::stages::review::{self, Act, Mended, Mending};
use crate::stages::{Context, Result};

#[derive(Debug, Subcommand)]
pub(super) enum Mend {
    /// Put two clusters together: they report one phenomenon
    Merge {
        cluster: String,
        other: String,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Part members off into a cluster of their own
    Part {
        cluster: String,
        #[arg(required = true, value_name = "OWNER/NAME#N")]
        members: Vec<IssueKey>,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Move members to another cluster
    Move {
        cluster: String,
        to: String,
        #[arg(required = true, value_name = "OWNER/NAME#N")]
        members: Vec<IssueKey>,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Give a cluster a name; its id stays
    Rename {
        cluster: String,
        name: String,
        /// Who decides; git's user.name unless said
        #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
        by: Option<String>,
    },
    /// Choose the member that represents the others
    Represent {
        cluster: String,
        #[arg(value_name = "OWNER/NAME#N")]
        member: IssueKey,
        #[command(flatten)]
        saying: SayingArgs,
    },
    /// Take your own last act on clusters back, whatever it was
    Undo {
        /// Who decides; git's user.name unless said
        #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
        by: Option<String>,
    },
    /// Make the act again that you took back last
    Redo {
        /// Who decides; git's user.name unless said
        #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
        by: Option<String>,
    },
}

pub(super) fn run(mend: Mend, context: &Context, output: &Output) -> Result<ExitCode> {
    let name = |by: Option<String>| by.or_else(git_name).unwrap_or_default();
    let (cluster, act, saying) = match mend {
        Mend::Undo { by } => {
            output.result(&review::undo_act(context, &name(by))?, words)?;
            return Ok(ExitCode::Done);
        }
        Mend::Redo { by } => {
            output.result(&review::redo_act(context, &name(by))?, words)?;
            return Ok(ExitCode::Done);
        }
        Mend::Merge {
            cluster,
            other,
            saying,
        } => (cluster, Act::Merge(other), saying),
        Mend::Part {
            cluster,
            members,
            saying,
        } => (cluster, Act::Part(members), saying),
        Mend::Move {
            cluster,
            to,
            members,
            saying,
        } => (cluster, Act::Move(members, to), saying),
        Mend::Rename { cluster, name, by } => {
            let saying = SayingArgs { why: None, by };
            (cluster, Act::Rename(name), saying)
        }
        Mend::Represent {
            cluster,
            member,
            saying,
        } => (cluster, Act::Represent(member), saying),
    };
    let mending = Mending {
        cluster,
        act,
        by: name(saying.by),
        why: saying.why.unwrap_or_default(),
        seen: None,
    };
    let mended = review::mend(context, mending)?.ok_or_else(review::meanwhile)?;
    output.result(&mended, words)?;
    Ok(ExitCode::Done)
}

fn words(mended: &Mended) -> String {
    let lines = match mended.n_decisions {
        1 => "1 line is saved".to_owned(),
        n => format!("{n} lines are saved"),
    };
    format!(
        "{lines}; of {} clusters it is now {}",
        mended.n_clusters,
        mended.clusters.join(", ")
    )
}
