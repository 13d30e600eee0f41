//! The `pipeline` program.

use std::process::ExitCode;

use doc2harness::adapters::sandbox::{INIT_ARGUMENT, init_main};

fn main() -> ExitCode {
    // First of all, so that a cell starts in milliseconds.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == INIT_ARGUMENT) {
        init_main(arguments);
    }
    doc2harness::cli::main().into()
}
