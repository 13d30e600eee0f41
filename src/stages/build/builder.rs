//! Who builds: a harness that is fixed for a study. The default is [`super::opencode::OpenCode`]; here is the other, any
//! command.

use std::path::{Path, PathBuf};

use crate::adapters::sandbox::Mount;
use crate::stages::{Failure, Result};

/// A harness that builds, as far as a build has to know it.
pub trait Builder: Sync {
    /// For the record: its name with its version, or all that is known of it.
    fn name(&self) -> String;

    /// Digest of what it was installed from; none when nobody knows.
    fn packages(&self) -> Option<String> {
        None
    }

    /// What it needs to be shown in the cell.
    fn mounts(&self) -> Vec<Mount>;

    /// Beside the variables that every builder has.
    fn env(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// A command that shows that it starts, and what this must print.
    fn start(&self) -> Option<(Vec<String>, String)> {
        None
    }

    /// What is run in a turn, from 1. All turns of a build are one conversation.
    fn turn(&self, turn: usize, prompt: &str) -> Vec<String>;
}

/// Where a command sees folders of this machine.
const SHOWN: &str = "/shown";

/// Any command, for `/bin/sh -c`. It is given the prompt as `$1` and the number of the turn as `$2`.
#[derive(Debug)]
pub struct CommandBuilder {
    command: String,
    shown: Vec<Mount>,
}

impl CommandBuilder {
    /// `show`: host folders that it sees, read-only, as `/shown/NAME` with the last part of their path.
    pub fn new(command: &str, show: &[PathBuf]) -> Result<Self> {
        let mount = |shown: &PathBuf| {
            let host = shown.canonicalize().map_err(|error| {
                Failure::user(format!("cannot show {}: {error}", shown.display()))
            })?;
            let inside = Path::new(SHOWN).join(host.file_name().unwrap_or_default());
            Ok(Mount::read_only(&host, inside))
        };
        Ok(Self {
            command: command.to_owned(),
            shown: show.iter().map(mount).collect::<Result<_>>()?,
        })
    }
}

impl Builder for CommandBuilder {
    fn name(&self) -> String {
        self.command.clone()
    }

    fn mounts(&self) -> Vec<Mount> {
        self.shown.clone()
    }

    fn turn(&self, turn: usize, prompt: &str) -> Vec<String> {
        let turn = turn.to_string();
        ["/bin/sh", "-c", &self.command, "builder", prompt, &turn]
            .map(str::to_owned)
            .to_vec()
    }
}
