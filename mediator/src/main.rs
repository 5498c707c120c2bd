//! The binary `amber`: runs the chosen command. IO.

use std::process::ExitCode;

#[cfg(all(feature = "cli", not(target_os = "linux")))]
compile_error!(
    "mediator and drivers need Linux; for the commands that are clients, build with \
     `--no-default-features --features client`"
);

mod cli;

fn main() -> ExitCode {
    cli::run()
}
