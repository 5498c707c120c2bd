//! `scripts/soak`: normal operation for hours, to find leaks. IO.
#![allow(clippy::print_stdout)] // What a program is for.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amber_chaos::soak::{Plan, run};
use clap::Parser;

/// Run a mediator in normal operation, and check that memory and descriptors do not grow:
/// docs/reliability.md
#[derive(Parser)]
struct Options {
    /// Duration, such as 90s, 30m or 2h
    #[arg(long = "for", value_parser = amber_chaos::duration, default_value = "30m")]
    duration: Duration,
    /// Interval between samples
    #[arg(long, value_parser = amber_chaos::duration, default_value = "10s")]
    every: Duration,
    /// Write each sample to this file, as one JSON object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let report = run(&Plan {
        amber: std::env::current_exe()?.with_file_name("amber"),
        duration: options.duration,
        every: options.every,
        json: options.json,
        seed: options.seed,
    })?;
    println!("{report}");
    Ok(match report.broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
