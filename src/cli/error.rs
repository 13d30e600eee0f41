//! Exit codes, and how a failure is told. The only place that chooses an exit code.

use std::path::Path;

use super::Output;
use crate::stages::{Failure, Kind};

/// The one table of exit codes; `docs/cli.md` and `--help` show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// The work is done and nothing is wrong.
    Done = 0,
    /// The work is done, and it found what it looks for: failed verdicts, faults of a candidate or a document.
    Found = 1,
    /// The command's words are off.
    Usage = 2,
    /// A file that people write is wrong; the message names it and the line.
    Settings = 3,
    /// The machine lacks something; the message says what to type.
    Environment = 4,
    /// A bug of this program.
    Internal = 5,
    /// The work is done but for units that stayed invalid: our side broke there.
    Invalid = 6,
    /// The work is done and nothing failed, but repetitions of some cases ended differently.
    Flaky = 7,
    /// Not all is there: a shard was cut short or has units that our side broke, a merge lacks units.
    Again = 75,
    /// This shard can never be run here: program, image, suite or candidate are not those of the plan.
    Never = 78,
    /// Ctrl-C; what was finished is kept.
    Interrupted = 130,
}

pub const EXIT_CODES_HELP: &str = "\
Exit codes:
  0  done, nothing is wrong
  1  done, and something was found: a failed verdict, a fault of a candidate or a document
  2  the command's words are off
  3  a file that people write is wrong; the message names it and the line
  4  this machine lacks something; the message says what to type
  5  a bug of this program
  6  done, but some units stayed invalid: our side broke there, nothing of it is counted
  7  done, nothing failed, but some verdicts are flaky: repetitions of a case ended differently
 75  not all of a plan is there yet; what is finished is kept, and nothing of it is run again
 78  the shard can never be run here: program, image, suite or candidates are not those of the plan
130  interrupted; what was finished is kept";

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// Tells a failure on stderr (and as JSON on stdout when asked), and chooses its exit code.
///
/// Paths below the project are shown relative to it.
pub fn report(failure: &Failure, output: &Output, root: Option<&Path>) -> ExitCode {
    let (code, word) = match failure.kind {
        Kind::User => (ExitCode::Usage, "usage"),
        Kind::Settings => (ExitCode::Settings, "settings"),
        Kind::Environment => (ExitCode::Environment, "environment"),
        Kind::Internal => (ExitCode::Internal, "internal"),
        Kind::Interrupted => (ExitCode::Interrupted, "interrupted"),
        Kind::Again => (ExitCode::Again, "again"),
        Kind::Never => (ExitCode::Never, "never"),
    };
    let message = match root {
        Some(root) => failure
            .to_string()
            .replace(&format!("{}/", root.display()), ""),
        None => failure.to_string(),
    };
    output.failure(word, &message, &failure.hints);
    code
}
