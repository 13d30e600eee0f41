//! `pipeline man`: one page with every subcommand.

use std::io::Write;

use clap::CommandFactory;

use super::{Cli, ExitCode, output};
use crate::stages::Result;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: &Args) -> Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help")
    {
        let name = format!("pipeline-{}", subcommand.get_name());
        let subcommand = subcommand.clone().display_name(name.clone());
        writeln!(page, ".SH {}", name.to_uppercase())?;
        let part = clap_mangen::Man::new(subcommand);
        part.render_description_section(&mut page)?;
        part.render_options_section(&mut page)?;
    }
    output::print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::Done)
}
