use amber_map::{Map, Walls};
use amber_navigation::kinematics::{SkidSteer, Twist};
use amber_navigation::scan::{Beam, Echo};

use super::*;

const START: Pose = Pose::new(3.5, -2.6, 0.3);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn flat() -> LocationMap {
    let map = Map::flat();
    LocationMap::from_walls(&map.faces(), &map.nodes, 0.02, 0.5).unwrap()
}

fn tracker() -> Tracker {
    Tracker::new(
        Config::new(Pose::default()),
        geometry::Config::new(Pose::default()),
    )
}

/// A robot that turns on the spot in the flat, with exact sensors.
struct Robot {
    walls: Walls,
    now_ms: u64,
    turn_rad_s: f64,
    heading: f64,
}

impl Robot {
    fn new(turn_rad_s: f64) -> Self {
        Self {
            walls: Walls::new(Map::flat().faces()),
            now_ms: 0,
            turn_rad_s,
            heading: START.heading,
        }
    }

    fn pose(&self) -> Pose {
        Pose {
            at: START.at,
            heading: self.heading,
        }
    }

    /// 100 ms with wheel speeds at 20 Hz and a scan at the end.
    fn step(&mut self, tracker: &mut Tracker, has_wheels: bool) {
        let wheels = SkidSteer::default().wheels(Twist::new(0.0, self.turn_rad_s));
        for _ in 0..2 {
            self.now_ms += 50;
            self.heading += self.turn_rad_s * 0.05;
            if has_wheels {
                tracker.handle_wheels(ms(self.now_ms), wheels);
            }
        }
        let beams = (-120..=120).map(|degree: i32| {
            let angle_rad = f64::from(degree).to_radians();
            let distance_m = self.walls.cast(START.at, self.heading + angle_rad, 5.6);
            Beam {
                angle_rad,
                echo: distance_m.map_or(Echo::Nothing, Echo::At),
            }
        });
        tracker.handle_scan(Scan {
            start: ms(self.now_ms),
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        });
        // The filter waits 100 ms for wheel speeds.
        let now = tracker
            .next_timeout()
            .map_or(ms(self.now_ms), |due| due.max(ms(self.now_ms)));
        tracker.update(now);
    }
}

fn error_m(report: &Report, pose: Pose) -> f64 {
    report.estimate.map_or(f64::INFINITY, |estimate| {
        estimate.pose.at.minus(pose.at).length()
    })
}

#[test]
fn without_a_map_there_is_no_estimate() {
    let mut tracker = tracker();
    let mut robot = Robot::new(0.0);
    for _ in 0..5 {
        robot.step(&mut tracker, true);
    }
    let report = tracker.report();
    assert!(!report.has_map && report.estimate.is_none());
    assert_eq!(report.last_wheels, Some(ms(500)));
    assert_eq!(tracker.next_timeout(), None);
}

#[test]
fn the_robot_finds_itself_and_a_new_map_starts_again() {
    let mut tracker = tracker();
    tracker.handle_map(flat());
    let mut robot = Robot::new(0.4);
    robot.step(&mut tracker, true);
    let first = tracker.report();
    assert!(
        first.undecided_since.is_some() && first.injected > 0.0,
        "{first:?}"
    );
    for _ in 0..40 {
        robot.step(&mut tracker, true);
    }
    let report = tracker.report();
    assert!(error_m(&report, robot.pose()) < 0.05, "{report:?}");
    let estimate = report.estimate.unwrap();
    assert!(estimate.decided && estimate.quality > 0.9, "{estimate:?}");
    assert_eq!((report.undecided_since, report.counts.scans), (None, 41));

    tracker.handle_map(flat());
    assert_eq!(tracker.report().estimate, None);
    robot.step(&mut tracker, true);
    assert_eq!(tracker.report().counts.scans, 42);
}

#[test]
fn scans_alone_keep_the_pose_of_a_slow_robot() {
    let mut tracker = tracker();
    tracker.handle_map(flat());
    let mut robot = Robot::new(0.1);
    for _ in 0..30 {
        robot.step(&mut tracker, true);
    }
    for _ in 0..30 {
        robot.step(&mut tracker, false);
    }
    let report = tracker.report();
    assert!(error_m(&report, robot.pose()) < 0.1, "{report:?}");
    assert_eq!(report.last_wheels, Some(ms(3000)));
}

#[test]
fn the_same_seed_gives_the_same_estimates() {
    let run = || {
        let mut tracker = tracker();
        tracker.handle_map(flat());
        let mut robot = Robot::new(0.4);
        for _ in 0..10 {
            robot.step(&mut tracker, true);
        }
        tracker.report()
    };
    assert_eq!(run(), run());
}

/// A marker whose place in the file is wrong gives the same wrong pose again and again.
#[test]
fn wrong_poses_of_markers_never_become_the_known_one() {
    let ways = [
        (0.6, 0.0, 0.0),
        (0.0, 0.8, 0.3),
        (2.0, 1.6, 1.7),
        (0.0, 0.0, 1.0),
    ];
    for (x, y, turn) in ways {
        for turn_rad_s in [0.0, 0.4] {
            let (mut tracker, mut robot) = (tracker(), Robot::new(turn_rad_s));
            tracker.handle_map(flat());
            let mut known = 0;
            for step in 0..150 {
                if step % 2 == 0 {
                    let truth = robot.pose();
                    let at = truth.at.plus(amber_map::Point::new(x, y));
                    let heading = truth.heading + turn;
                    let wrong = Pose { at, heading };
                    tracker.handle_external(ms(robot.now_ms), wrong, 0.05, 0.035);
                }
                robot.step(&mut tracker, true);
                let report = tracker.report();
                if report.estimate.is_some_and(|estimate| estimate.decided) {
                    let error_m = error_m(&report, robot.pose());
                    assert!(
                        error_m < 0.3,
                        "{x} {y} {turn} {turn_rad_s} {step}: {error_m}"
                    );
                    known += 1;
                }
            }
            assert!(known > 20, "{x} {y} {turn} {turn_rad_s}: {known}");
        }
    }
}

#[test]
fn right_poses_of_markers_agree_with_the_scans() {
    let (mut tracker, mut robot) = (tracker(), Robot::new(0.2));
    tracker.handle_map(flat());
    for _ in 0..60 {
        let truth = robot.pose();
        tracker.handle_external(ms(robot.now_ms), truth, 0.05, 0.035);
        robot.step(&mut tracker, true);
    }
    let report = tracker.report();
    assert!(report.estimate.unwrap().decided);
    assert!(error_m(&report, robot.pose()) < 0.1);
}
