//! Measures exploration: `cargo run --release -p amber-navigation --example explore -- --help`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::env;
use std::fs;
use std::process::ExitCode;

use amber_map::Map;
use amber_navigation::explore::State;
use amber_navigation::scenario::exploring;

const HELP: &str = "\
Lets a simulated robot explore, compares its map with the truth, and prints a line per run.

Usage: explore [--map FILE.roson] [--lines] [--seeds N] [--first N] [--seconds N]

  --map FILE   a map with a start; without it, the flat of `amber demo`
  --lines      walls are lines; without it, they have the thickness of the map
  --seeds N    the number of runs (default: 20)
  --first N    the first seed (default: 1)
  --seconds N  the longest run, simulated (default: 600)";

struct Options {
    map: Option<String>,
    lines: bool,
    seeds: u64,
    first: u64,
    seconds: u64,
}

fn main() -> ExitCode {
    let measured = options().and_then(|options| match options {
        Some(options) => measure(&options),
        None => {
            println!("{HELP}");
            Ok(())
        }
    });
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\nhint: --help shows the options");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Option<Options>, String> {
    let mut options = Options {
        map: None,
        lines: false,
        seeds: 20,
        first: 1,
        seconds: 600,
    };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| {
            text.parse::<u64>()
                .map_err(|_| format!("{text:?} is not a number"))
        };
        match argument.as_str() {
            "--help" => return Ok(None),
            "--map" => options.map = Some(value()?),
            "--lines" => options.lines = true,
            "--seeds" => options.seeds = number(value()?)?,
            "--first" => options.first = number(value()?)?,
            "--seconds" => options.seconds = number(value()?)?,
            _ => return Err(format!("unknown option {argument}")),
        }
    }
    Ok(Some(options))
}

fn measure(options: &Options) -> Result<(), String> {
    let map = match &options.map {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            Map::parse(&text).map_err(|error| format!("{path}: {error}"))?
        }
        None => Map::flat(),
    };
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
