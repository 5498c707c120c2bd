//! The binary `amber`: picks the verb. IO.

use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    cli::run()
}
