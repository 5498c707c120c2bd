//! Measures the localization: `cargo run --release -p amber-navigation --example location -- --help`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::env;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_map::Map;
use amber_navigation::scenario::{self, Course, Scenario, Score, Summary};

const HELP: &str = "\
Measures the localization in simulated drives and prints a table.

Usage: location [--map FILE.roson | --floor] [--faces] [--seeds N] [--only TEXT] [--repeat N]

  --map FILE   a map with nodes; without it, the flat of `amber demo`
  --floor      a generated office floor of 50 m x 36 m
  --faces      walls have the thickness of the map; without it, they are lines
  --seeds N    the number of runs per scenario (default: 20)
  --only TEXT  only scenarios with this text in their names
  --repeat N   repeats each run, which gives the same results, and takes the shortest time of each
               update: on a busy machine, others cannot disturb all of them (default: 1)";

struct Options {
    map: Option<String>,
    floor: bool,
    faces: bool,
    seeds: u64,
    only: String,
    repeat: usize,
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
        floor: false,
        faces: false,
        seeds: 20,
        only: String::new(),
        repeat: 1,
    };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--help" => return Ok(None),
            "--map" => options.map = Some(value()?),
            "--floor" => options.floor = true,
            "--repeat" => {
                options.repeat = value()?.parse().map_err(|_| "--repeat needs a number")?;
            }
            "--faces" => options.faces = true,
            "--seeds" => options.seeds = value()?.parse().map_err(|_| "--seeds needs a number")?,
            "--only" => options.only = value()?,
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
        None if options.floor => scenario::office_floor(),
        None => Map::flat(),
    };
    let walls = if options.faces {
        map.faces()
    } else {
        map.walls.clone()
    };
    let course = Course::new(&map, walls).ok_or("the map has no nodes to drive to")?;
    println!(
        "tour: {:.1} m, {} runs of 50 s per scenario",
        course.length_m(),
        options.seeds
    );
    println!(
        "{:<24} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} | {:>5} {:>5} {:>5} {:>5} | {:>5} {:>5} | {:>5} {:>6} {:>5} {:>6}",
        "scenario",
        "rms",
        "p95",
        "max",
        "worst",
        "deg95",
        "jumps",
        "found",
        "med s",
        "max s",
        "<3 s",
        "<4 s",
        "p 5%",
        "false",
        "ms",
        "max ms",
        "parts",
        "kB"
    );
    for scenario in Scenario::ALL
        .iter()
        .filter(|scenario| scenario.name.contains(&options.only))
    {
        let mut times: Vec<Duration> = Vec::new();
        let mut scores = Vec::new();
        for seed in 1..=options.seeds {
            let mut shortest: Vec<Duration> = Vec::new();
            for _ in 0..options.repeat.max(1) {
                let (score, measured) = timed(&course, scenario, seed);
                if shortest.is_empty() {
                    scores.push(score);
                    shortest = measured;
                } else {
                    let pairs = shortest.iter_mut().zip(measured);
                    pairs.for_each(|(shortest, other)| *shortest = other.min(*shortest));
                }
            }
            times.extend(shortest);
        }
        print(
            scenario,
            &Summary::new(&scores),
            &times,
            scores.iter().map(|score| score.bytes).max(),
        );
    }
    Ok(())
}

/// One run, and how long each update took.
fn timed(course: &Course, scenario: &Scenario, seed: u64) -> (Score, Vec<Duration>) {
    let mut times = Vec::new();
    let config = scenario::config(scenario, seed);
    let score = scenario::run(course, scenario, config, seed, |location, now| {
        let start = Instant::now();
        let estimate = location.update(now);
        times.push(start.elapsed());
        estimate
    });
    (score, times)
}

fn print(scenario: &Scenario, sum: &Summary, times: &[Duration], bytes: Option<usize>) {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let mean_ms = times.iter().copied().map(ms).sum::<f64>() / times.len().max(1) as f64;
    let max_ms = times.iter().copied().map(ms).fold(0.0, f64::max);
    let (median_s, max_s) = if scenario.search_starts().is_some() {
        let median = sum.search_s.get(sum.search_s.len() / 2).copied();
        (
            median.unwrap_or(f64::NAN),
            sum.search_s.last().copied().unwrap_or(f64::NAN),
        )
    } else {
        (f64::NAN, f64::NAN)
    };
    println!(
        "{:<24} {:>5.1} {:>5.1} {:>5.0} {:>5.1} {:>5.2} {:>5} {:>5} | {:>5.1} {:>5.1} {:>4.0}% {:>4.0}% | {:>5.2} {:>4.1}% | {:>5.2} {:>6.2} {:>5.0} {:>6}",
        scenario.name,
        sum.rms_mm,
        sum.p95_mm,
        sum.max_mm,
        sum.worst_run_mm,
        sum.heading_p95_deg,
        sum.jumps,
        format!("{}/{}", sum.found, sum.runs),
        median_s,
        max_s,
        sum.found_within(3.0) * 100.0,
        sum.found_within(4.0) * 100.0,
        sum.quality_p05,
        sum.wrong_and_sure * 100.0,
        mean_ms,
        max_ms,
        sum.particles,
        bytes.unwrap_or_default() / 1024
    );
}
