//! The `pipeline` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    doc2harness::cli::main().into()
}
