//! The binary `amber`: picks the verb. IO.

use std::process::ExitCode;

use clap::Parser;

mod cli;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
