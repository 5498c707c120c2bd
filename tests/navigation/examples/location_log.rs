//! Writes the measurements of a simulated drive to a file, for a comparison with other programs:
//! `cargo run --release -p amber-scenarios --example location_log -- --help`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amber_navigation::location::Location;
use amber_navigation::scan::{Echo, Scan};
use amber_scenarios::{Arrival, Course, Drive, MOUNT, Scenario, Summary};
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};

use self::common::{map, measured};

mod common;

/// Writes what the scanner and the wheels of a simulated robot measure on a tour, with the true poses,
/// and measures Amber's localization on it.
///
/// Each line of the file is a JSON object: first the walls, the pose of the scanner on the robot and
/// the effective track; then `wheels` (left and right, m/s) and `scan` (distances in metres, null where
/// nothing is measured) in the order of their arrival. A scan has the true pose in its middle. Metres,
/// radians counter-clockwise, seconds.
#[derive(Parser)]
struct Options {
    /// The file to write
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// A map with rooms [default: the flat of `amber demo`]
    #[arg(long, value_name = "FILE.roson")]
    map: Option<PathBuf>,
    /// The scenario, as in `scripts/bench nav --list`
    #[arg(long, value_name = "NAME", default_value = "tracking")]
    scenario: String,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Amber uses this many particles, instead of as many as it needs
    #[arg(long, value_name = "N")]
    particles: Option<usize>,
}

fn main() -> ExitCode {
    measured(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    let map = map(options.map.as_deref())?;
    let course = Course::new(&map, map.walls.clone()).ok_or("the map has no nodes to drive to")?;
    let scenario = Scenario::named(&options.scenario);
    let scenario = scenario.ok_or(format!("no scenario {}", options.scenario))?;
    let drive = Drive::new(&course, &scenario, options.seed);
    let text = log(&course, &drive);
    let path = options.output.display();
    fs::write(&options.output, text).map_err(|error| format!("{path}: {error}"))?;

    let mut config = amber_scenarios::config(&scenario, options.seed);
    if let Some(count) = options.particles {
        (config.size.min, config.size.max) = (count, count);
    }
    let mut times = Vec::new();
    let update = |location: &mut Location, now| {
        let start = processor_time();
        let estimate = location.update(now);
        times.push(processor_time() - start);
        estimate
    };
    let score = amber_scenarios::run(&course, &scenario, config, options.seed, update);
    let sum = Summary::new(&[score]);
    let mean_ms = times.iter().sum::<Duration>().as_secs_f64() * 1000.0 / times.len() as f64;
    println!(
        "Amber: rms {:.1} mm, p95 {:.1} mm, heading p95 {:.2} deg, {mean_ms:.2} ms per update",
        sum.rms_mm, sum.p95_mm, sum.heading_p95_deg
    );
    Ok(())
}

fn log(course: &Course, drive: &Drive) -> String {
    let walls = course.walls.iter().map(|wall| {
        let (from, to) = (wall.from, wall.to);
        format!("[{},{},{},{}]", from.x, from.y, to.x, to.y)
    });
    let walls: Vec<String> = walls.collect();
    let start = drive.pose_at(Duration::ZERO);
    let mut text = format!(
        "{{\"walls\":[{}],\"scanner\":[{},{},{}],\"track\":0.42,\"start\":[{},{},{}]}}\n",
        walls.join(","),
        MOUNT.at.x,
        MOUNT.at.y,
        MOUNT.heading,
        start.at.x,
        start.at.y,
        start.heading,
    );
    for (_, arrival) in drive.arrivals() {
        let line = match arrival {
            Arrival::Wheels(time, wheels) => format!(
                "{{\"time\":{:.4},\"wheels\":[{},{}]}}",
                time.as_secs_f64(),
                wheels.left_m_s(),
                wheels.right_m_s()
            ),
            Arrival::Scan(scan) => scan_line(scan, drive),
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

fn scan_line(scan: &Scan, drive: &Drive) -> String {
    let truth = drive.pose_at(scan.middle());
    let distances = scan.beams.iter().map(|beam| match beam.echo {
        Echo::At(distance_m) => format!("{distance_m:.3}"),
        _ => "null".to_owned(),
    });
    let distances: Vec<String> = distances.collect();
    let angle = |index: usize| scan.beams.get(index).map_or(0.0, |beam| beam.angle_rad);
    format!(
        "{{\"time\":{:.4},\"beam_time\":{:.9},\"first\":{:.6},\"step\":{:.9},\
         \"truth\":[{:.5},{:.5},{:.6}],\"scan\":[{}]}}",
        scan.start.as_secs_f64(),
        scan.beam_time.as_secs_f64(),
        angle(0),
        angle(1) - angle(0),
        truth.at.x,
        truth.at.y,
        truth.heading,
        distances.join(",")
    )
}

/// The CPU time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
