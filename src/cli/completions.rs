//! `pipeline completions SHELL`.

use clap::CommandFactory;

use super::{Cli, ExitCode};
use crate::stages::Result;

#[derive(Debug, clap::Args)]
pub struct Args {
    shell: clap_complete::Shell,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "pipeline",
        &mut std::io::stdout(),
    );
    Ok(ExitCode::Done)
}
