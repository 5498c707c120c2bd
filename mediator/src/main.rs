//! The binary `amber`: runs the chosen command. IO.

use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    cli::run()
}
