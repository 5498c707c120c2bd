//! `scripts/chaos`: injects faults for minutes, and reports a verdict. IO.
#![allow(clippy::print_stdout)] // What a program is for.

use std::process::ExitCode;
use std::time::Duration;

use amber_chaos::chaos::{Plan, run};
use anyhow::Context;
use clap::Parser;

/// Inject faults into a mediator with real processes, and check that its promises hold:
/// docs/reliability.md
#[derive(Parser)]
struct Options {
    /// Duration, such as 90s, 30m or 2h
    #[arg(long = "for", value_parser = amber_chaos::duration, default_value = "3m")]
    duration: Duration,
    /// Seed of all random choices; a failure reports it
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
    .context("the chaos test could not run")?;
    println!("{report}");
    Ok(match report.broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
