//! Maps of simulated drives through the flat.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::f64::consts::FRAC_PI_2;
use std::ops::Range;
use std::time::Duration;

use amber_map::{Map, Point, Walls};
use amber_navigation::planner;
use amber_navigation::slam::quality::{Quality, seen_from};
use amber_navigation::slam::recording::Recording;
use amber_navigation::slam::{Config, Slam};
use amber_scenarios::furnished::furnished;
use amber_scenarios::{Arrival, Course, Drive, MOUNT, Scenario};

/// A drive through the flat by hand, with the errors of a scenario.
fn drive(scenario: &str, seconds: u64, seed: u64) -> (Course, Drive) {
    let map = Map::flat();
    let course = Course::new(&map, map.faces()).unwrap();
    let scenario = Scenario {
        length: Duration::from_secs(seconds),
        ..Scenario::named(scenario).unwrap()
    };
    let drive = Drive::new(&course.by_hand(seed), &scenario, seed);
    (course, drive)
}

/// With all errors.
fn biased(seconds: u64, seed: u64) -> (Course, Drive) {
    drive("tracking, bias 10 mm", seconds, seed)
}

/// The same colour everywhere.
fn unbiased(seconds: u64) -> Drive {
    drive("tracking, no bias", seconds, 1).1
}

fn built(drive: &Drive) -> Slam {
    let mut slam = Slam::new(Config::new(MOUNT));
    for (_, arrival) in drive.arrivals() {
        match arrival {
            Arrival::Wheels(time, wheels) => slam.handle_wheels(*time, *wheels),
            Arrival::Scan(scan) => {
                slam.add_scan(scan.clone());
            }
        }
    }
    slam.finish();
    slam
}

#[test]
fn a_short_drive_gives_walls_within_3_cm() {
    let (course, drive) = biased(10, 1);
    let slam = built(&drive);
    let poses = (0..10).map(|second| drive.pose_at(Duration::from_secs(second)));
    let seen = seen_from(&Walls::new(course.walls.clone()), poses);
    let start = drive.pose_at(slam.keys()[0].time);
    let quality = Quality::new(&slam.walls(), &course.walls, &seen, start);
    assert!(quality.rms_m < 0.03, "{quality:?}");
    assert!(
        quality.wrong < 0.05 && quality.missing < 0.25,
        "{quality:?}"
    );
    assert_eq!(slam.counters().unmatched, 0);
}

#[test]
fn the_same_measurements_give_the_same_bytes() {
    let (_, drive) = biased(5, 2);
    let (a, b) = (built(&drive), built(&drive));
    assert_eq!(a.map("flat").to_roson(), b.map("flat").to_roson());
    assert_eq!(a.chart(0.05), b.chart(0.05));
    assert_eq!(a.poses(), b.poses());
}

/// Adds all measurements except those in a time.
fn recorded(drive: &Drive, lost: Range<f64>) -> Recording {
    let mut recording = Recording::new(Config::new(MOUNT), Some(planner::Config::default()));
    for (now, arrival) in drive.arrivals() {
        if lost.contains(&now.as_secs_f64()) {
            continue;
        }
        match arrival {
            Arrival::Wheels(time, wheels) => recording.handle_wheels(*time, *wheels),
            Arrival::Scan(scan) => {
                recording.handle_scan(scan.clone());
            }
        }
        if let Some(work) = recording.work(*now) {
            assert!(recording.work(*now).is_none(), "one work at a time");
            recording.apply(&work.run());
        }
    }
    recording
}

#[test]
fn a_finished_map_is_parallel_to_its_axes_and_starts_at_the_origin() {
    let drive = unbiased(8);
    let recording = recorded(&drive, 0.0..0.0);
    let progress = recording.progress();
    assert!(
        progress.free_m2 > 3.0 && progress.way_m > 1.0,
        "{progress:?}"
    );
    let finished = recording.finish("flat", 0.05).unwrap();
    let turns = finished.map.walls.iter().map(|wall| {
        let way = wall.to.minus(wall.from);
        let quarters = way.y.atan2(way.x) / FRAC_PI_2;
        way.length() * (quarters - quarters.round()).abs()
    });
    let all_m: f64 = (finished.map.walls.iter())
        .map(|wall| wall.to.minus(wall.from).length())
        .sum();
    assert!(
        turns.sum::<f64>() < 0.05 * all_m,
        "{:?}",
        finished.map.walls
    );
    assert_eq!(finished.map.robots[0].at, Point::default());
    let text = finished.map.to_roson();
    assert_eq!(
        Map::parse(&text).unwrap().walls.len(),
        finished.map.walls.len()
    );
    // The map is turned in the direction of the flat, or by quarters of a turn.
    let start = finished.map.robots[0].heading;
    let truth = drive.pose_at(Duration::from_millis(100)).heading;
    let quarters = (start - truth) / FRAC_PI_2;
    assert!(
        (quarters - quarters.round()).abs() < 0.05,
        "{start} {truth}"
    );
}

/// Chairs, shelves, plants, glass, an uneven floor, and people who walk about.
#[test]
fn in_furnished_rooms_the_walls_of_a_map_locate_as_well_as_its_grid() {
    let map = Map::flat();
    let course = Course::new(&map, map.faces()).unwrap();
    let found = furnished(&course, 1).unwrap();
    assert!(
        found.segments > found.walls + 0.03,
        "there is more than walls: {found:?}"
    );
    assert!(found.segments > 0.9, "{found:?}");
    assert!(found.roson.good > 0.9, "{found:?}");
    assert!(found.roson.good > found.grid.good - 0.03, "{found:?}");
    assert!(found.bytes < 32_000, "{found:?}");
}

#[test]
fn a_robot_that_stands_gets_a_survey_when_it_is_wanted() {
    let mut recording = recorded(&unbiased(6), 0.0..0.0);
    let later = Duration::from_secs(60);
    if let Some(work) = recording.work(later) {
        recording.apply(&work.run());
    }
    assert!(recording.work(2 * later).is_none(), "nothing is new");
    recording.set_survey(None);
    assert!(recording.work(3 * later).is_none());
    recording.set_survey(Some(planner::Config::default()));
    let worked = recording.work(4 * later).unwrap().run();
    assert!(worked.survey.is_some());
    recording.apply(&worked);
    assert!(recording.work(5 * later).is_none(), "one is enough");
}

#[test]
fn missing_measurements_are_counted() {
    let progress = recorded(&unbiased(6), 2.0..3.5).progress();
    for gaps in [progress.scan_gaps, progress.wheels_gaps] {
        assert_eq!(gaps.count, 1, "{gaps:?}");
        let longest_s = gaps.longest.as_secs_f64();
        assert!((1.4..1.8).contains(&longest_s), "{gaps:?}");
    }
}
