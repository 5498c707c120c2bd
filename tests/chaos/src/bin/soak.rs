//! `scripts/soak`: everyday life for hours, and whether anything grows. IO.
#![allow(clippy::print_stdout)] // What a program is for.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amber_chaos::soak::{Plan, run};
use clap::Parser;

/// Runs a mediator in everyday life, and looks whether memory or descriptors grow:
/// docs/reliability.md
#[derive(Parser)]
struct Options {
    /// How long, such as 90s, 30m or 2h
    #[arg(long = "for", value_parser = amber_chaos::duration, default_value = "30m")]
    duration: Duration,
    /// How often it is looked at
    #[arg(long, value_parser = amber_chaos::duration, default_value = "10s")]
    every: Duration,
    /// Write each look to this file, as one JSON object in a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where everything random comes from
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
