//! Localization in simulated drives. The seeds are fixed, so each run gives the same result. `scripts/bench
//! nav` measures more of them; docs/notes/location.md has the figures.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use amber_map::Map;
use amber_navigation::location::Location;
use amber_scenarios::{Course, Scenario, Summary};

fn flat() -> Course {
    let map = Map::flat();
    Course::new(&map, map.faces()).unwrap()
}

/// The same flat with walls that are lines.
fn flat_of_lines() -> Course {
    let map = Map::flat();
    Course::new(&map, map.walls.clone()).unwrap()
}

/// The map of the original laboratory, if it lies beside the repository.
fn laboratory() -> Option<Course> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maps");
    let path = folder.join("MazeRoboLabSplitIntoRooms8.roson");
    let Ok(text) = fs::read_to_string(&path) else {
        let _ = writeln!(io::stderr(), "SKIP maps: {} does not exist", path.display());
        return None;
    };
    let map = Map::parse(&text).unwrap();
    Course::new(&map, map.walls.clone())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn drive(course: &Course, scenario: Scenario, seeds: u64) -> Summary {
    let run = |seed| {
        let config = amber_scenarios::config(&scenario, seed);
        amber_scenarios::run(course, &scenario, config, seed, Location::update)
    };
    Summary::new(&(1..=seeds).map(run).collect::<Vec<_>>())
}

fn short(name: &str) -> Scenario {
    let scenario = Scenario::named(name).unwrap();
    Scenario {
        length: seconds(6),
        kidnap_at: scenario.kidnap_at.map(|_| seconds(2)),
        ..scenario
    }
}

#[track_caller]
fn assert_tracks(sum: &Summary, max_rms_mm: f64) {
    assert_eq!((sum.found, sum.jumps), (sum.runs, 0), "{sum:?}");
    assert!(sum.rms_mm <= max_rms_mm, "{sum:?}");
    assert!(sum.heading_p95_deg <= 1.5, "{sum:?}");
    assert_eq!(sum.wrong_and_sure, 0.0, "{sum:?}");
}

#[test]
fn tracking_is_exact_to_millimetres() {
    let scenario = short("tracking, white noise");
    assert_tracks(&drive(&flat_of_lines(), scenario, 2), 5.0);
    // The far sides of thick walls mislead the first estimates after a rough start.
    assert_tracks(&drive(&flat(), scenario, 2), 15.0);
}

#[test]
fn short_beams_and_a_wrong_track_do_little_harm() {
    assert_tracks(&drive(&flat(), short("20 % short beams"), 1), 20.0);
    assert_tracks(&drive(&flat(), short("track 20 % too small"), 1), 20.0);
}

#[test]
fn changed_walls_do_not_lose_the_robot() {
    assert_tracks(&drive(&flat(), short("2 walls missing, 1 box"), 2), 40.0);
}

#[test]
fn a_robot_that_starts_anywhere_finds_itself() {
    let sum = drive(&flat(), short("global start"), 2);
    assert_eq!(sum.found_within(5.0), 1.0, "{sum:?}");
}

#[test]
fn a_kidnapped_robot_finds_itself() {
    let sum = drive(&flat(), short("kidnap"), 2);
    assert_eq!(sum.found_within(4.0), 1.0, "{sum:?}");
    assert!(sum.quality_p05 > 0.1, "{sum:?}");
}

#[test]
fn the_laboratory_is_no_harder() {
    let Some(course) = laboratory() else { return };
    assert!(
        (9.0..14.0).contains(&course.length_m()),
        "{}",
        course.length_m()
    );
    assert_tracks(&drive(&course, short("tracking, white noise"), 1), 5.0);
    let sum = drive(&course, short("kidnap"), 2);
    assert_eq!(sum.found_within(4.0), 1.0, "{sum:?}");
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let course = flat();
    let scenario = Scenario {
        length: seconds(3),
        ..short("global, 20 % short")
    };
    let estimates = |seed| {
        let mut all = Vec::new();
        let config = amber_scenarios::config(&scenario, seed);
        amber_scenarios::run(&course, &scenario, config, 7, |location, now| {
            let estimate = location.update(now);
            all.push((estimate, location.particles().to_vec()));
            estimate
        });
        all
    };
    let first = estimates(1);
    assert!(first.len() > 20);
    assert!(first == estimates(1));
    assert!(first != estimates(2));
}
