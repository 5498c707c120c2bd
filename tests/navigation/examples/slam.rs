//! Measures SLAM: `cargo run --release -p amber-scenarios --example slam -- --help`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_map::{Point, Pose, Segment, Walls};
use amber_navigation::location::{Location, LocationMap};
use amber_navigation::slam::quality::{Quality, seen_from};
use amber_navigation::slam::{Config, Counters, Slam};
use amber_scenarios::{Arrival, Course, Drive, MOUNT, Scenario, Score, Summary};
use clap::Parser;

use self::common::{map, measured};

mod common;

/// The tours, each with the errors of one scenario.
const SCENARIOS: [&str; 5] = [
    "tracking",
    "tracking, no bias",
    "tracking, white noise",
    "20 % short beams",
    "track 20 % too small",
];

/// Builds maps in simulated drives by hand, compares them with the truth, and prints a table.
#[derive(Parser)]
struct Options {
    /// A map with nodes [default: the flat of `amber demo`]
    #[arg(long, value_name = "FILE.roson")]
    map: Option<PathBuf>,
    /// Walls are as thick as on the map, not lines
    #[arg(long)]
    faces: bool,
    /// The number of tours per scenario
    #[arg(long, value_name = "N", default_value_t = 20)]
    seeds: u64,
    /// The length of a tour, simulated
    #[arg(long, value_name = "S", default_value_t = 180)]
    seconds: u64,
    /// Only the scenario with this name, or those with this text in their names
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Adds a line per tour
    #[arg(long)]
    details: bool,
    /// Draws the truth and the map of the last tour
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<String>,
}

fn main() -> ExitCode {
    measured(measure(&Options::parse()))
}

/// One tour, with the map that it gave.
struct Built {
    slam: Slam,
    walls: Vec<Segment>,
    quality: Quality,
    /// The largest error of a pose while driving, and its mean square.
    live_max_m: f64,
    live_squares: Vec<f64>,
    scans: Vec<Duration>,
    tasks: Vec<Duration>,
    walls_took: Duration,
}

fn measure(options: &Options) -> Result<(), String> {
    let map = map(options.map.as_deref())?;
    let walls = if options.faces {
        map.faces()
    } else {
        map.walls.clone()
    };
    let course = Course::new(&map, walls).ok_or("the map has no nodes to drive to")?;
    println!(
        "tour: {:.1} m; {} drives of {} s per scenario",
        course.length_m(),
        options.seeds,
        options.seconds
    );
    println!(
        "{:<22} {:>5} {:>5} {:>5} {:>6} {:>6} {:>7} | {:>5} {:>5} | {:>5} {:>5} {:>6} {:>5} | {:>5} {:>6} {:>6} {:>5} | {:>5} {:>5} {:>5}",
        "scenario",
        "rms",
        "worst",
        "p95",
        "miss",
        "wrong",
        "passed",
        "live",
        "max",
        "loc",
        "worst",
        "max",
        "found",
        "ms",
        "max ms",
        "task",
        "cpu",
        "keys",
        "loops",
        "false"
    );
    let is_exact = SCENARIOS.contains(&options.only.as_str());
    let is_wanted = |name: &&&str| match is_exact {
        true => **name == options.only,
        false => name.contains(&options.only),
    };
    for name in SCENARIOS.iter().filter(is_wanted) {
        let scenario = Scenario::named(name).ok_or(format!("no scenario {name}"))?;
        run(&course, &scenario, options)?;
    }
    Ok(())
}

fn run(course: &Course, scenario: &Scenario, options: &Options) -> Result<(), String> {
    let mut all = Vec::new();
    let mut scores = Vec::new();
    for seed in 1..=options.seeds {
        let length = Duration::from_secs(options.seconds);
        let tour = Scenario {
            length,
            ..*scenario
        };
        let built = build(&course.by_hand(seed), &tour, seed);
        // Another drive, without the errors of steering, in the new map.
        let moved: Vec<Segment> = built
            .walls
            .iter()
            .map(|wall| Segment {
                from: built.quality.frame.global(wall.from),
                to: built.quality.frame.global(wall.to),
            })
            .collect();
        let config = amber_scenarios::config(scenario, seed);
        let inside: Vec<Point> = built
            .slam
            .poses()
            .iter()
            .map(|pose| built.quality.frame.global(pose.at))
            .collect();
        let field = LocationMap::from_walls(&moved, &inside, config.cell_m, config.limit_m());
        if let Ok(field) = field {
            scores.push(amber_scenarios::run_in(
                field,
                course,
                scenario,
                config,
                seed + 1000,
                Location::update,
            ));
        }
        if options.details {
            print_tour(seed, &built, scores.last());
        }
        all.push(built);
    }
    print(scenario, &all, &Summary::new(&scores));
    if let (Some(path), Some(built)) = (&options.picture, all.last()) {
        fs::write(path, picture(course, built)).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn build(course: &Course, scenario: &Scenario, seed: u64) -> Built {
    let drive = Drive::new(course, scenario, seed);
    let mut config = Config::new(MOUNT);
    config.track_m *= scenario.track;
    let mut slam = Slam::new(config);
    let (mut scans, mut tasks, mut live) = (Vec::new(), Vec::new(), Vec::new());
    let mut first: Option<Pose> = None;
    let mut next_task = Duration::from_secs(5);
    for (now, arrival) in drive.arrivals() {
        match arrival {
            Arrival::Wheels(time, wheels) => slam.handle_wheels(*time, *wheels),
            Arrival::Scan(scan) => {
                let scan = scan.clone();
                let start = Instant::now();
                let added = slam.add_scan(scan);
                scans.push(start.elapsed());
                if let Some(added) = added {
                    let truth = drive.pose_at(added.time);
                    let frame = *first.get_or_insert(truth);
                    live.push(frame.global(added.pose.at).minus(truth.at).length());
                }
            }
        }
        if *now >= next_task {
            next_task = *now + Duration::from_secs(5);
            let start = Instant::now();
            if let Some(task) = slam.task() {
                slam.apply(task.run());
            }
            tasks.push(start.elapsed());
        }
    }
    let start = Instant::now();
    slam.finish();
    tasks.push(start.elapsed());
    let start = Instant::now();
    let walls = slam.walls();
    let walls_took = start.elapsed();
    let truth = Walls::new(course.walls.clone());
    let poses = (0..scenario.length.as_millis() as u64 / 500)
        .map(|step| drive.pose_at(Duration::from_millis(step * 500)));
    let seen = seen_from(&truth, poses);
    let quality = Quality::new(&walls, &course.walls, &seen, first.unwrap_or_default());
    Built {
        slam,
        walls,
        quality,
        live_max_m: live.iter().copied().fold(0.0, f64::max),
        live_squares: live.iter().map(|error_m| error_m * error_m).collect(),
        scans,
        tasks,
        walls_took,
    }
}

/// A map is good if its walls are within 30 mm rms, and few are missing or wrong.
fn is_good(quality: &Quality) -> bool {
    quality.rms_m <= 0.03 && quality.missing <= 0.03 && quality.wrong <= 0.03
}

fn print(scenario: &Scenario, all: &[Built], location: &Summary) {
    let mean = |value: &dyn Fn(&Built) -> f64| {
        all.iter().map(value).sum::<f64>() / all.len().max(1) as f64
    };
    let max = |value: &dyn Fn(&Built) -> f64| all.iter().map(value).fold(0.0, f64::max);
    let ms = |time: &Duration| time.as_secs_f64() * 1000.0;
    let scans: Vec<f64> = all
        .iter()
        .flat_map(|built| built.scans.iter().map(ms))
        .collect();
    let mean_ms = scans.iter().sum::<f64>() / scans.len().max(1) as f64;
    let tasks_s = mean(&|built| built.tasks.iter().sum::<Duration>().as_secs_f64());
    let simulated_s = scans.len() as f64 / all.len().max(1) as f64 * 0.1;
    let scans_s = mean(&|built| built.scans.iter().sum::<Duration>().as_secs_f64());
    let squares: Vec<f64> = all
        .iter()
        .flat_map(|built| built.live_squares.iter().copied())
        .collect();
    let live_mm = 1000.0 * (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt();
    let passed = all.iter().filter(|built| is_good(&built.quality)).count();
    let counters =
        |value: &dyn Fn(&Counters) -> u64| mean(&|built| value(&built.slam.counters()) as f64);
    println!(
        "{:<22} {:>5.1} {:>5.1} {:>5.1} {:>5.1}% {:>5.1}% {:>7} | {:>5.1} {:>5.0} | {:>5.1} {:>5.1} {:>6.0} {:>5} | {:>5.2} {:>6.1} {:>6.0} {:>4.1}% | {:>5.0} {:>5.0} {:>5.1}",
        scenario.name,
        1000.0 * (mean(&|built| built.quality.rms_m.powi(2))).sqrt(),
        1000.0 * max(&|built| built.quality.rms_m),
        1000.0 * mean(&|built| built.quality.p95_m),
        100.0 * max(&|built| built.quality.missing),
        100.0 * max(&|built| built.quality.wrong),
        format!("{passed}/{}", all.len()),
        live_mm,
        1000.0 * max(&|built| built.live_max_m),
        location.rms_mm,
        location.worst_run_mm,
        location.max_mm,
        format!("{}/{}", location.found, location.runs),
        mean_ms,
        scans.iter().copied().fold(0.0, f64::max),
        max(&|built| built.tasks.iter().map(ms).fold(0.0, f64::max)),
        100.0 * (scans_s + tasks_s) / simulated_s,
        mean(&|built| built.slam.keys().len() as f64),
        counters(&|counters| counters.loops),
        counters(&|counters| counters.loops_false),
    );
}

/// One line for a tour.
fn print_tour(seed: u64, built: &Built, location: Option<&Score>) {
    let quality = &built.quality;
    let sum = Summary::new(&location.cloned().into_iter().collect::<Vec<_>>());
    println!(
        "  seed {seed}: rms {:.1} p95 {:.1} miss {:.2}% wrong {:.2}% walls {} ({:.1} m) in {:.0} ms; live max {:.0}; location rms {:.1} found {}; {:?}",
        1000.0 * quality.rms_m,
        1000.0 * quality.p95_m,
        100.0 * quality.missing,
        100.0 * quality.wrong,
        built.walls.len(),
        quality.length_m,
        built.walls_took.as_secs_f64() * 1000.0,
        1000.0 * built.live_max_m,
        sum.rms_mm,
        sum.found,
        built.slam.counters(),
    );
}

/// The true walls grey and wide, the map red, the way blue.
fn picture(course: &Course, built: &Built) -> String {
    let scale = 100.0;
    let frame = built.quality.frame;
    let line = |a: Point, b: Point, colour: &str, width: f64| {
        format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n",
            a.x * scale,
            -a.y * scale,
            b.x * scale,
            -b.y * scale
        )
    };
    let mut svg =
        String::from("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-50 -50 900 900\">\n");
    for wall in &course.walls {
        svg += &line(wall.from, wall.to, "#bbbbbb", 5.0);
    }
    for pair in built.slam.poses().windows(2) {
        svg += &line(
            frame.global(pair[0].at),
            frame.global(pair[1].at),
            "#4060c0",
            1.0,
        );
    }
    for wall in &built.walls {
        svg += &line(
            frame.global(wall.from),
            frame.global(wall.to),
            "#d02020",
            1.5,
        );
    }
    svg + "</svg>\n"
}
