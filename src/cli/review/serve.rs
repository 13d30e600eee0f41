//! `pipeline review serve`.

use super::super::{ExitCode, Output};
use super::git_name;
use crate::domain::visible::visible_line;
use crate::stages::{Context, Failure, Result};
use crate::web;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Who decides, once for each reviewer; git's user.name unless said
    #[arg(long, value_name = "NAME", env = "PIPELINE_REVIEWER")]
    by: Vec<String>,
    /// Let every reviewer read everything, without a sight of what others decided
    #[arg(long)]
    blind: bool,
    /// The port on 127.0.0.1; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 8642)]
    port: u16,
}

pub(super) fn run(args: Args, context: &Context, output: &Output) -> Result<ExitCode> {
    let mut readers = match args.by.is_empty() {
        true => git_name().into_iter().collect(),
        false => args.by,
    };
    readers.retain(|name| !name.trim().is_empty());
    if readers.is_empty() {
        return Err(Failure::user("nobody knows who decides")
            .hint("add --by NAME, or set PIPELINE_REVIEWER, or git config user.name"));
    }
    let config = web::Config {
        readers,
        blind: args.blind,
        port: args.port,
        now: super::super::now,
    };
    web::serve(context.project.clone(), config, |addresses| {
        output.result(&addresses, |addresses| {
            let line = |one: &web::Address| format!("{}  {}", visible_line(&one.reader), one.url);
            addresses.iter().map(line).collect::<Vec<_>>().join("\n")
        })
    })?;
    Ok(ExitCode::Done)
}
