//! `pipeline completions SHELL`.

use clap::CommandFactory;

use super::{Cli, ExitCode, output};
use crate::stages::Result;

#[derive(Debug, clap::Args)]
pub struct Args {
    shell: clap_complete::Shell,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pipeline", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::Done)
}
