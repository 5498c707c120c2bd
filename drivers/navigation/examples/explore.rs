//! Measures exploration: `cargo run --release -p amber-navigation --example explore -- --help`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::path::PathBuf;
use std::process::ExitCode;

use amber_navigation::explore::State;
use amber_navigation::scenario::exploring;
use clap::Parser;

use self::common::{map, measured};

mod common;

/// Lets a simulated robot explore, compares its map with the truth, and prints a line per run.
#[derive(Parser)]
struct Options {
    /// A map with a start [default: the flat of `amber demo`]
    #[arg(long, value_name = "FILE.roson")]
    map: Option<PathBuf>,
    /// Walls are lines, not as thick as on the map
    #[arg(long)]
    lines: bool,
    /// The number of runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    first: u64,
    /// The longest run, simulated
    #[arg(long, value_name = "S", default_value_t = 600)]
    seconds: u64,
}

fn main() -> ExitCode {
    measured(measure(&Options::parse()))
}

fn measure(options: &Options) -> Result<(), String> {
    let map = map(options.map.as_deref())?;
    let walls = if options.lines {
        map.walls.clone()
    } else {
        map.faces()
    };
    let start = exploring::start(&map, &walls).ok_or("the map has no place to start")?;
    println!(
        "{:>4} {:>8} {:>6} {:>6} {:>7} {:>6} {:>8} {:>8} {:>6} {:>6} {:>6} {:>8} {:>8}",
        "seed",
        "end",
        "time s",
        "way m",
        "found %",
        "rms mm",
        "missing%",
        "wrong %",
        "live",
        "loops",
        "skips",
        "contacts",
        "clear mm",
    );
    for seed in options.first..options.first + options.seeds {
        let run = exploring::explore(&walls, start, seed, options.seconds);
        let run = run.ok_or("the robot cannot start")?;
        let end = match run.end {
            State::Waiting => "waiting",
            State::Exploring => "going on",
            State::Returning => "on way",
            State::Finished => "finished",
            State::NotReturned => "not home",
        };
        println!(
            "{seed:>4} {:>8} {:>6.0} {:>6.1} {:>7.1} {:>6.1} {:>8.1} {:>8.1} {:>6.0} {:>6} {:>6} {:>8} {:>8.0}",
            end,
            run.time_s,
            run.way_m,
            100.0 * run.found,
            1000.0 * run.quality.rms_m,
            100.0 * run.quality.missing,
            100.0 * run.quality.wrong,
            1000.0 * run.live_max_m,
            run.loops,
            run.skipped.len(),
            run.contacts,
            1000.0 * run.clearance_m,
        );
        for (at, why) in run.skipped {
            println!("     skipped x {:.2} m, y {:.2} m: {why}", at.x, at.y);
        }
    }
    Ok(())
}
