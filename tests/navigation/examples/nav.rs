//! Measures the navigation: `scripts/bench nav --help`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_map::Map;
use amber_scenarios::matrix::{Case, Maps, cases};
use rustix::time::{ClockId, clock_gettime};

const HELP: &str = "\
Measures the drivers of navigation in simulated runs, and prints a table.

Usage: scripts/bench nav [--quick] [--seeds N] [--only TEXT]... [--maps FOLDER] [--list]

  --quick        one seed per line: only checks in seconds that everything works
  --seeds N      the number of seeds per line (default: as in docs/navigation.md)
  --only TEXT    only lines with this text in the names of driver and scenario; all texts, if several
  --maps FOLDER  the maps of the original laboratory, MazeRoboLab*.roson (default: ../shared/maps);
                 without them, their lines are left out
  --list         prints the names of the lines

The same seeds give the same figures, except times. Times are CPU times, not wall-clock times,
so other programs matter little.";

#[derive(Default)]
struct Options {
    quick: bool,
    seeds: Option<u64>,
    only: Vec<String>,
    maps: Option<PathBuf>,
    list: bool,
}

fn main() -> ExitCode {
    match options() {
        Ok(None) => println!("{HELP}"),
        Ok(Some(options)) => measure(&options),
        Err(error) => {
            eprintln!("error: {error}\nhint: --help shows the options");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn options() -> Result<Option<Options>, String> {
    let mut options = Options::default();
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--quick" => options.quick = true,
            "--list" => options.list = true,
            "--only" => options.only.push(value()?),
            "--maps" => options.maps = Some(value()?.into()),
            "--seeds" => {
                let number = value()?.parse().map_err(|_| "--seeds needs a number")?;
                options.seeds = Some(number);
            }
            _ => return Err(format!("unknown option {argument}")),
        }
    }
    Ok(Some(options))
}

fn measure(options: &Options) {
    let folder = options
        .maps
        .clone()
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maps"));
    let map = |name: &str| {
        let text = fs::read_to_string(folder.join(format!("{name}.roson"))).ok()?;
        Map::parse(&text).ok()
    };
    let maps = Maps {
        flat: Map::flat(),
        lab: map("MazeRoboLabFullMap"),
        rooms: map("MazeRoboLabSplitIntoRooms8"),
    };
    if maps.lab.is_none() || maps.rooms.is_none() {
        eprintln!("warning: no maps of the laboratory in {}", folder.display());
    }
    let is_wanted = |case: &Case<'_>| {
        let name = format!("{} {}", case.driver, case.name);
        options.only.iter().all(|text| name.contains(text))
    };
    let cases: Vec<Case<'_>> = cases(&maps, processor_time)
        .into_iter()
        .filter(is_wanted)
        .collect();
    if options.list {
        for case in &cases {
            println!("{} {}", case.driver, case.name);
        }
        return;
    }
    println!("| driver | scenario | seeds | goal | measured | met |");
    println!("|---|---|---|---|---|---|");
    let (mut met, start) = (0, Instant::now());
    for (index, case) in cases.iter().enumerate() {
        let usual = if options.quick { 1 } else { case.seeds };
        let seeds = options.seeds.unwrap_or(usual);
        let begin = Instant::now();
        let result = case.measure(seeds);
        met += usize::from(result.is_met);
        println!(
            "| {} | {} | {seeds} | {} | {} | {} |",
            case.driver,
            case.name,
            case.goal,
            result.text,
            if result.is_met { "yes" } else { "**no**" }
        );
        let took_s = begin.elapsed().as_secs_f64();
        eprintln!("{} of {}: {took_s:.1} s", index + 1, cases.len());
    }
    let all_s = start.elapsed().as_secs_f64();
    eprintln!("{met} of {} goals met, {all_s:.0} s", cases.len());
}

/// The CPU time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
