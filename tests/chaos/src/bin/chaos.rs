//! `scripts/chaos`: trouble for minutes, and a verdict. IO.
#![allow(clippy::print_stdout)] // What a program is for.

use std::process::ExitCode;
use std::time::Duration;

use amber_chaos::chaos::{Plan, run};
use anyhow::Context;
use clap::Parser;

/// Makes trouble for a mediator with real processes, and checks that its
/// promises hold: docs/reliability.md
#[derive(Parser)]
struct Options {
    /// How long, such as 90s, 30m or 2h
    #[arg(long = "for", value_parser = amber_chaos::duration, default_value = "3m")]
    duration: Duration,
    /// Where everything random comes from; a failure says which it was
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let this = std::env::current_exe()?;
    let report = run(&Plan {
        amber: this.with_file_name("amber"),
        seed: options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        duration: options.duration,
    })
    .context("chaos could not be made")?;
    println!("{report}");
    Ok(match report.broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
