//! Measures the drivers that move the robot, on the simulated robot with a virtual clock.
//!
//! ```sh
//! cargo run --release -p amber-navigation --example driving
//! cargo run --release -p amber-navigation --example driving -- 2 100   # fewer seeds and runs
//! ```

#![allow(clippy::print_stdout)]

#[allow(dead_code)]
#[path = "../tests/driving/avoid.rs"]
mod avoid;
#[path = "../tests/driving/goto.rs"]
mod goto;
#[path = "../tests/driving/robot.rs"]
mod robot;
#[path = "../tests/driving/routes.rs"]
mod routes;

use std::time::Duration;

use amber_map::{Map, MapPose, Point, Pose};

use avoid::Obstacle;
use goto::{Incident, Run, drive, follow, lab, targets};
use robot::{Noise, SHEET};

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|number| number.parse().ok());
    let seeds = numbers.next().unwrap_or(20);
    let runs = numbers.next().unwrap_or(1000);
    drive_to_point(seeds);
    trajectory(seeds);
    monitor(runs);
}

/// Figures of section 3.4.
fn drive_to_point(seeds: u64) {
    println!("DriveToPoint, {seeds} seeds each");
    let flat = Map::flat();
    let route = targets(&routes::FLAT);
    let report = |name: &str, run: &dyn Fn(u64) -> Run| {
        let runs: Vec<Run> = (0..seeds).map(run).collect();
        let all: Vec<usize> = runs.iter().map(|run| run.visited).collect();
        let contacts: u64 = runs.iter().map(|run| run.contacts).sum();
        let least = |value: fn(&Run) -> f64| runs.iter().map(value).fold(f64::INFINITY, f64::min);
        let most = |value: fn(&Run) -> f64| runs.iter().map(value).fold(0.0, f64::max);
        println!(
            "  {name}: visited {} to {}, {contacts} contacts, clearance {:.0} mm, time {:.1} to {:.1} s, \
             {:.2} m, slowest mean {:.3} m/s, stopped within {:.2} s, skipped {} after {:.1} s",
            all.iter().min().unwrap_or(&0),
            all.iter().max().unwrap_or(&0),
            least(|run| run.clearance_m) * 1000.0,
            least(|run| run.time_s),
            most(|run| run.time_s),
            least(|run| run.way_m),
            least(|run| run.way_m / run.time_s),
            most(|run| run.stop_s.unwrap_or_default()),
            runs.iter().map(|run| run.skipped).max().unwrap_or_default(),
            most(|run| run.skipped_s.unwrap_or_default()),
        );
    };
    let walls = flat.faces();
    let start = flat.robots[0];
    let at = Duration::from_secs(6);
    let bedroom = Pose::from(MapPose::new(5.5, 1.3, 1.0));
    for (name, incident) in [
        ("flat", Incident::None),
        ("flat, kidnapped", Incident::Kidnap(at, bedroom)),
        ("flat, box on the path", Incident::Box(at, 0.8)),
    ] {
        report(name, &|seed| {
            drive(&walls, start, &route, incident, SHEET, seed, 300)
        });
    }
    for (name, incident) in [
        ("flat, laser off", Incident::LaserOff(at)),
        ("flat, pose off", Incident::PoseOff(at)),
        ("flat, targets cleared", Incident::Cleared(at)),
    ] {
        report(name, &|seed| {
            drive(&walls, start, &route, incident, SHEET, seed, 12)
        });
    }
    let (Some(lab), Some(rooms)) = (lab("MazeRoboLabFullMap"), lab("MazeRoboLabSplitIntoRooms8"))
    else {
        println!("  SKIP lab: ../shared/maps does not exist");
        return;
    };
    let lines = &lab.walls;
    for (name, route) in [
        ("basic", targets(&routes::BASIC)),
        ("unavailable", targets(&routes::UNAVAILABLE)),
    ] {
        let start = goto::start_at(lines, route[0].at);
        report(name, &|seed| {
            drive(lines, start, &route, Incident::None, SHEET, seed, 300)
        });
    }
    let tour = tour(&rooms);
    let start = goto::start_at(&rooms.walls, tour[0].at);
    let lines = &rooms.walls;
    report(&format!("tour of {} places", tour.len()), &|seed| {
        drive(lines, start, &tour, Incident::None, SHEET, seed, 300)
    });
    // As with a joystick and the full guard.
    let guarded = goto::Config {
        collision: amber_navigation::collision::Config::new(Pose::default()),
        ..goto::Config::new(Pose::default())
    };
    report("tour with speed limit near walls", &|seed| {
        goto::drive_with(
            guarded,
            lines,
            start,
            &tour,
            Incident::None,
            SHEET,
            seed,
            300,
        )
    });
    let carried = goto::start_at(lines, tour[tour.len() / 2].at);
    report("tour, kidnapped", &|seed| {
        drive(
            lines,
            start,
            &tour,
            Incident::Kidnap(at, carried),
            SHEET,
            seed,
            300,
        )
    });
}

/// All rooms of a map, always the nearest one next, and back.
fn tour(map: &Map) -> Vec<goto::Target> {
    let planner = amber_navigation::planner::Planner::new(Default::default(), &map.walls);
    let planner = planner.expect("a map of usual size");
    let mut rest = map.nodes.clone();
    let mut tour: Vec<Point> = vec![rest.remove(0)];
    while let Some(last) = tour.last().copied() {
        let way = |to: &Point| {
            planner
                .plan(last, *to, 0.25, &[])
                .map(|path| path.length_m())
        };
        let nearest = (0..rest.len())
            .filter_map(|index| Some((way(&rest[index]).ok()?, index)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, index)) = nearest else {
            break;
        };
        tour.push(rest.remove(index));
    }
    tour.push(tour[0]);
    let target = |at| goto::Target { at, radius_m: 0.25 };
    tour.into_iter().map(target).collect()
}

/// Figures of section 5.4.
fn trajectory(seeds: u64) {
    println!("PidFollowTrajectory, {seeds} seeds each: the worst run");
    let exact = Noise {
        outliers: 0.0,
        pose_m: 0.0,
        heading_rad: 0.0,
    };
    for (name, corners) in [("small", &routes::SMALL), ("large", &routes::LARGE)] {
        for (what, track_m, noise) in [
            ("true pose", 0.42, exact),
            ("noise 20 mm, 0.6 deg", 0.42, SHEET),
            ("noise, track 0.33 m", 0.33, SHEET),
            ("noise, track 0.525 m", 0.525, SHEET),
        ] {
            let runs: Vec<_> = (0..seeds)
                .map(|seed| follow(corners, 0.1, track_m, noise, seed))
                .collect();
            let most =
                |value: fn(&goto::Tracking) -> f64| runs.iter().map(value).fold(0.0, f64::max);
            let finished = runs.iter().filter(|run| run.finished).count();
            println!(
                "  {name}, {what}: {finished} of {seeds} finished, rms {:.0} mm, max {:.0} mm, \
                 end {:.0} mm, time {:.1} s = {:.2} x length / 0.35",
                most(|run| run.rms_m) * 1000.0,
                most(|run| run.max_m) * 1000.0,
                most(|run| run.end_m) * 1000.0,
                most(|run| run.time_s),
                most(|run| run.time_s / run.length_m * 0.35),
            );
        }
    }
}

/// Figures of sections 4.4 and 6.4.
fn monitor(runs: u64) {
    println!("Collision monitor, {runs} runs each, 0.2 to 0.7 m/s");
    for obstacle in [
        Obstacle::Wall,
        Obstacle::Post,
        Obstacle::SlantedWall,
        Obstacle::Appears(0.6),
        Obstacle::Appears(0.5),
    ] {
        let results: Vec<_> = (0..runs)
            .map(|seed| {
                let speed_m_s = 0.2 + 0.5 * (seed as f64 / runs as f64);
                (speed_m_s, avoid::approach(obstacle, speed_m_s, seed))
            })
            .collect();
        let contacts: u64 = results.iter().map(|(_, run)| run.contacts).sum();
        let moving = results.iter().filter(|(_, run)| !run.stopped).count();
        let slow = results.iter().filter(|(speed, _)| *speed <= 0.4);
        let mut stops: Vec<f64> = slow.map(|(_, run)| run.stop_m * 1000.0).collect();
        stops.sort_by(f64::total_cmp);
        let all = results.iter().map(|(_, run)| run.stop_m * 1000.0);
        let nearest = all.fold(f64::INFINITY, f64::min);
        let worst = results.iter().map(|(_, run)| run.worst).max();
        let mean: Duration = results.iter().map(|(_, run)| run.mean).sum();
        println!(
            "  {obstacle:?}: {contacts} contacts, {moving} not stopped; \
             stop distance up to 0.4 m/s {:.0} to {:.0} mm, all {nearest:.0} mm; \
             CPU mean {:?}, worst {:?}",
            stops.first().copied().unwrap_or_default(),
            stops.last().copied().unwrap_or_default(),
            mean / runs.max(1) as u32,
            worst.unwrap_or_default(),
        );
    }
    let few = (runs / 50).max(1);
    for gap_m in [0.02, 0.04, 0.06, 0.1] {
        let results: Vec<_> = (0..few)
            .map(|seed| avoid::along_wall(gap_m, seed))
            .collect();
        let slowest = results.iter().fold(f64::INFINITY, |a, b| a.min(b.0));
        let contacts: u64 = results.iter().map(|run| run.1).sum();
        println!("  along a wall at {gap_m} m: {slowest:.3} m/s, {contacts} contacts");
    }
    for offset_m in [0.0, 0.02, 0.04] {
        let results: Vec<_> = (0..few).map(|seed| avoid::gate(offset_m, seed)).collect();
        let slowest = results.iter().fold(f64::INFINITY, |a, b| a.min(b.0));
        let contacts: u64 = results.iter().map(|run| run.1).sum();
        println!(
            "  gate of 0.51 m, {offset_m} m off centre: {slowest:.3} m/s, {contacts} contacts"
        );
    }
    let worst = |run: fn(u64) -> Duration| (0..few).map(run).max().unwrap_or_default();
    println!("  silent client: {:?} to zero", worst(avoid::silence));
    println!("  laser off: {:?} to zero", worst(avoid::laser_off));
    println!("  blocked wheels: {:?} to the report", worst(avoid::stuck));
    let map = Map::flat();
    let results: Vec<_> = (0..few)
        .map(|seed| avoid::random_driver(&map.faces(), map.robots[0], 60, seed))
        .collect();
    let contacts: u64 = results.iter().map(|run| run.0).sum();
    let clearance_m = results.iter().fold(f64::INFINITY, |a, b| a.min(b.1));
    let way_m: f64 = results.iter().map(|run| run.2).sum();
    println!(
        "  random driver in the flat: {contacts} contacts in {few} min, {way_m:.0} m, clearance {clearance_m:.3} m"
    );
}
