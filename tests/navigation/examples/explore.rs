//! Measures exploration: `cargo run --release -p amber-scenarios --example explore -- --help`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;

use amber_map::{Pose, wrap};
use amber_navigation::explore::State;
use amber_scenarios::Scanner;
use amber_scenarios::exploring::{self, Moment};
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
    /// The scanner, such as LD19 or "A1, 1°"
    #[arg(long, value_name = "NAME", default_value = "URG-04LX")]
    scanner: String,
    /// Print the decisions of the last S seconds of each run
    #[arg(long, value_name = "S")]
    trace: Option<f64>,
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
    let scanner = Scanner::all().find(|scanner| scanner.name() == options.scanner);
    let scanner = scanner.ok_or_else(|| {
        let names: Vec<_> = Scanner::all().map(Scanner::name).collect();
        format!(
            "no scanner {}: there are {}",
            options.scanner,
            names.join("; ")
        )
    })?;
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
        let mut moments = VecDeque::new();
        let watch = |moment: Moment| {
            let Some(trace_s) = options.trace else {
                return;
            };
            let from_s = moment.time_s - trace_s;
            while (moments.front()).is_some_and(|old: &Moment| old.time_s < from_s) {
                moments.pop_front();
            }
            moments.push_back(moment);
        };
        let seconds = options.seconds;
        let run = exploring::explore_watched(&walls, start, scanner, seed, seconds, watch);
        let run = run.ok_or("the robot cannot start")?;
        moments.iter().for_each(print_moment);
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

/// The pose of the truth, the error of the pose on the map, and the decision.
fn print_moment(moment: &Moment) {
    let degrees = |pose: Pose| wrap(pose.heading).to_degrees();
    let error = moment.believed.map_or_else(String::new, |(pose, truth)| {
        format!(
            "{:.0} mm {:.1} deg",
            1000.0 * pose.at.minus(truth.at).length(),
            wrap(pose.heading - truth.heading).to_degrees()
        )
    });
    let goal = moment.goal.map_or_else(String::new, |goal| {
        format!("to {:.2} {:.2}", goal.x, goal.y)
    });
    println!(
        "{:8.2} s x {:.3} y {:.3} {:6.1} deg, off by {error}, clear {:3.0} mm, {:?} {:?} {goal}: \
         wheels {:4.0} {:4.0} mm/s, {} ({:.2})",
        moment.time_s,
        moment.truth.at.x,
        moment.truth.at.y,
        degrees(moment.truth),
        1000.0 * moment.clearance_m,
        moment.state,
        moment.driving,
        1000.0 * moment.decision.wheels.left_m_s(),
        1000.0 * moment.decision.wheels.right_m_s(),
        moment.decision.reason,
        moment.decision.scale,
    );
}
