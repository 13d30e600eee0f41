//! `pipeline certify`.

use super::{ExitCode, Output};
use crate::stages::{Context, Failure, Result};

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: Args, _context: &Context, _output: &Output) -> Result<ExitCode> {
    Err(Failure::user("not built yet"))
}
