//! Makes a map from a recorded drive, with the code of a map that grows. PURE.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use amber_driver::devices::mapping::{Progress, SavedMap, StartMap};
use amber_map::tiles::Tiles;
use amber_map::{Occupancy, Pose};
use amber_navigation::kinematics::{Twist, Wheels};
use amber_navigation::odometry::MEMORY;
use amber_navigation::scan;
use amber_navigation::slam::recording::Recording;
use amber_proto::robot::Shape;
use amber_values::{Scan, WheelSpeeds};

use super::answer::{self, Growth};
use super::board::Board;
use super::mapper::Report;
use super::pilot::MAX_SPEED_MM_S;
use super::{Course, Options, Settings};
use crate::options::OptionsError;
use crate::robot_file::RobotFile;
use crate::sources::RobotClock;

/// Measurements may be older than the first one of the log.
const BEFORE: Duration = Duration::from_secs(10);
/// From one odometry pose to the next one, the speed is the same. It begins this long after the former.
const NEXT: Duration = Duration::from_micros(1);
/// It is noted this often: one sample of the speed holds for a short time only.
const AGAIN: Duration = Duration::from_millis(250);

/// A map that grows from a recorded drive.
#[derive(Debug)]
pub struct LogMap {
    course: Course,
    recording: Recording,
    clock: RobotClock,
    /// The time of the log that counts as zero.
    start: Option<SystemTime>,
    /// The time of the newest measurement.
    time: Duration,
    last_scan: Option<Scan>,
    /// The last pose of a log of poses, and its time.
    odometry: Option<(Duration, Pose)>,
    board: Board,
    report: Report,
}

/// A finished map.
#[derive(Clone, Debug)]
pub struct LoggedMap {
    /// What was made.
    pub saved: SavedMap,
    pub grid: Occupancy,
    /// The `.roson` file.
    pub roson: String,
}

impl LogMap {
    /// A map with these settings. `shape` is what the robot said of itself during the drive.
    ///
    /// # Errors
    /// A value is invalid, or neither says where the laser is.
    pub fn new(start: &StartMap, shape: Option<&Shape>) -> Result<Self, OptionsError> {
        let wanted = Settings(Options::default()).wanted(start)?;
        let setup = match shape {
            Some(shape) => wanted.robot.setup_with(RobotFile::from(shape))?,
            None => wanted.robot.setup()?,
        };
        let course = wanted.course(setup);
        let recording = Recording::new(course.slam, None).checking(course.geometry());
        let report = Report {
            progress: recording.progress(),
            pose: None,
            survey: None,
            tiles: Arc::new(Tiles::new(0)),
            found: Vec::new(),
        };
        Ok(Self {
            course,
            recording,
            clock: RobotClock::default(),
            start: None,
            time: Duration::ZERO,
            last_scan: None,
            odometry: None,
            board: Board::default(),
            report,
        })
    }

    /// A scan that arrived at this time of the log. One that comes again counts once.
    pub fn handle_scan(&mut self, arrived: SystemTime, scan: &Scan) {
        if self.last_scan.as_ref() == Some(scan) {
            return;
        }
        let age = self.clock.age(scan.timestamp_ms(), arrived);
        let end = self.since_start(arrived).saturating_sub(age);
        let read = scan::Scan::from_values(scan, end, &self.course.setup.scanner);
        self.last_scan = Some(scan.clone());
        let added = self.recording.handle_scan(read);
        self.report.pose = added.or(self.report.pose);
        self.time = self.time.max(end);
        // What another thread does while the robot drives.
        if let Some(work) = self.recording.work(self.time) {
            let worked = work.run();
            self.recording.apply(&worked);
        }
        self.report.progress = self.recording.progress();
    }

    /// Wheel speeds that were measured at this time of the log.
    pub fn handle_wheels(&mut self, measured: SystemTime, speeds: WheelSpeeds) {
        let time = self.since_start(measured);
        match speeds.fastest_mm_s() > MAX_SPEED_MM_S {
            true => self.board.invalid_speeds += 1,
            false => self.recording.handle_wheels(time, Wheels::from(speeds)),
        }
    }

    /// Where the robot was at this time of the log, by its wheels alone.
    pub fn handle_odometry(&mut self, measured: SystemTime, pose: Pose) {
        let time = self.since_start(measured);
        let Some((before, last)) = self.odometry else {
            self.odometry = Some((time, pose));
            return;
        };
        let way = last.local_pose(pose);
        let Some(passed) = time.checked_sub(before).filter(|passed| *passed > 2 * NEXT) else {
            return;
        };
        self.odometry = Some((time, pose));
        let seconds = passed.as_secs_f64();
        // The arc between the two: its chord points in the middle direction.
        let chord = way.at.length() * way.at.turned(-way.heading / 2.0).x.signum();
        let half = way.heading / 2.0;
        let arc = if half.abs() < 1e-6 {
            chord
        } else {
            chord * half / half.sin()
        };
        let twist = Twist::new(arc / seconds, way.heading / seconds);
        let wheels = self.course.setup.collision.drive.wheels(twist);
        let fastest_mm_s = 1000.0 * wheels.fastest_m_s();
        if fastest_mm_s > f64::from(MAX_SPEED_MM_S) {
            self.board.invalid_speeds += 1;
            return;
        }
        // What happened before is forgotten in any case.
        let mut noted = (before + NEXT).max(time.saturating_sub(MEMORY));
        while noted < time {
            self.recording.handle_wheels(noted, wheels);
            noted += AGAIN;
        }
        self.recording.handle_wheels(time, wheels);
    }

    /// How far the map is. Its time is that of the drive.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let time = self.time.saturating_sub(BEFORE);
        answer::progress(&self.report, &self.board, Growth::Grows, time)
    }

    /// Finishes the map. The grid has cells of this size, in metres.
    ///
    /// # Errors
    /// There are no usable scans, or the area is too large for the cells.
    pub fn finish(self, name: &str, cell_m: f64) -> Result<LoggedMap, String> {
        let progress = self.progress();
        let finished = self.recording.finish(name, cell_m);
        let finished = finished.map_err(|error| format!("there is no map: {error}"))?;
        // No program reads a .roson file without walls.
        if finished.walls == 0 {
            return Err("the map has no walls: the drive is too short".into());
        }
        let missing = answer::missing(&finished.progress, 0, &self.board);
        let saved = SavedMap {
            progress: Some(Progress {
                scan: None,
                path: None,
                ..progress
            }),
            ..answer::saved(&finished, missing)
        };
        Ok(LoggedMap {
            saved,
            roson: finished.map.to_roson(),
            grid: finished.occupancy,
        })
    }

    fn since_start(&mut self, time: SystemTime) -> Duration {
        let start = *self
            .start
            .get_or_insert_with(|| time.checked_sub(BEFORE).unwrap_or(SystemTime::UNIX_EPOCH));
        time.duration_since(start).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use amber_map::{Map, Walls};

    use super::*;

    const START: Pose = Pose::new(1.4, -1.06, -std::f64::consts::FRAC_PI_2);

    fn at(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_000 + ms)
    }

    fn settings() -> StartMap {
        StartMap {
            laser_offset: Some(100.0),
            ..StartMap::default()
        }
    }

    /// What the laser sees from here.
    fn scan(walls: &Walls, robot: Pose, ms: u64) -> Scan {
        let laser = robot.global_pose(Pose::new(0.1, 0.0, 0.0));
        let angles: Vec<f64> = (-120..=120).map(f64::from).collect();
        let distances = angles.iter().map(|angle_deg| {
            let direction = laser.heading - angle_deg.to_radians();
            let distance_m = walls.cast(laser.at, direction, 5.6);
            distance_m.map_or(0, |distance_m| (distance_m * 1000.0).round() as i32)
        });
        let distances: Vec<i32> = distances.collect();
        Scan::new(&angles, &distances, Some(1_800_000_000_000 + ms as i64)).unwrap()
    }

    /// The robot turns once on the spot, in 20 s.
    fn turn(mut each: impl FnMut(u64, Pose)) {
        for step in 0..200_u64 {
            let turned = step as f64 / 200.0 * std::f64::consts::TAU;
            each(
                step * 100,
                Pose {
                    heading: START.heading + turned,
                    ..START
                },
            );
        }
    }

    fn check(map: LogMap, scans: u64) -> SavedMap {
        let made = map.finish("log", 0.05).unwrap();
        assert!(made.saved.area() > 5.0, "{:?}", made.saved);
        assert!(made.saved.walls() > 5, "{:?}", made.saved);
        assert_eq!(made.saved.missing, [""; 0]);
        assert_eq!(made.saved.progress.as_ref().unwrap().scans(), scans);
        assert!(made.roson.contains("\"log\""));
        made.saved
    }

    #[test]
    fn scans_and_wheel_speeds_make_a_map() {
        let walls = Walls::new(Map::flat().faces());
        let mut map = LogMap::new(&settings(), None).unwrap();
        let wheels = map.course.setup.collision.drive;
        let turning = wheels.wheels(Twist::new(0.0, std::f64::consts::TAU / 20.0));
        turn(|ms, robot| {
            map.handle_wheels(at(ms), turning.into());
            let scan = scan(&walls, robot, ms);
            map.handle_scan(at(ms + 10), &scan);
            // An answer to somebody else.
            map.handle_scan(at(ms + 11), &scan);
        });
        assert_eq!(check(map, 200).wrong, [""; 0]);
    }

    #[test]
    fn a_laser_upside_down_is_found_in_a_log() {
        let walls = Walls::new(Map::flat().faces());
        let drive = |mut map: LogMap| {
            let wheels = map.course.setup.collision.drive;
            let turning = wheels.wheels(Twist::new(0.0, std::f64::consts::TAU / 20.0));
            turn(|ms, robot| {
                map.handle_wheels(at(ms), turning.into());
                let seen = scan(&walls, robot, ms);
                let angles: Vec<f64> = seen.points().iter().map(|it| it.angle_deg).collect();
                let mirrored = seen.points().iter().rev().map(|it| it.distance_mm);
                let mirrored: Vec<i32> = mirrored.collect();
                let scan = Scan::new(&angles, &mirrored, seen.timestamp_ms()).unwrap();
                map.handle_scan(at(ms + 10), &scan);
            });
            map.finish("log", 0.05).unwrap().saved
        };
        let saved = drive(LogMap::new(&settings(), None).unwrap());
        let [wrong] = &saved.wrong[..] else {
            panic!("{saved:?}");
        };
        assert!(wrong.contains("upside down"), "{wrong}");
        assert_eq!(saved.lines, ["laser_mirrored = true"]);
        let corrected = StartMap {
            laser_mirrored: Some(true),
            ..settings()
        };
        let saved = drive(LogMap::new(&corrected, None).unwrap());
        assert_eq!(saved.wrong, [""; 0]);
    }

    #[test]
    fn poses_of_the_wheels_do_as_well() {
        let walls = Walls::new(Map::flat().faces());
        let mut map = LogMap::new(&settings(), None).unwrap();
        turn(|ms, robot| {
            map.handle_odometry(at(ms), Pose::default().global_pose(robot));
            map.handle_scan(at(ms + 10), &scan(&walls, robot, ms));
        });
        // Before the second pose, nothing is known of the motion.
        let _ = check(map, 199);
    }

    #[test]
    fn a_log_with_one_scan_each_four_seconds_does_as_well() {
        let walls = Walls::new(Map::flat().faces());
        let mut map = LogMap::new(&settings(), None).unwrap();
        turn(|ms, robot| {
            if ms % 4000 == 0 {
                map.handle_odometry(at(ms), robot);
                map.handle_scan(at(ms), &scan(&walls, robot, ms));
            }
        });
        // The robot has turned by 72 degrees from one scan to the next. One sample of its speed once
        // held for half a second, and then nothing was known of its motion.
        let counters = map.recording.progress().counters;
        assert_eq!((counters.scans, counters.unmatched), (4, 0));
        // The last scan waits for the motion after it.
        let turned = map.report.pose.unwrap().pose.heading;
        let error = amber_map::wrap(turned - 0.6 * std::f64::consts::TAU);
        assert!(error.abs() < 0.05, "{turned}");
    }

    #[test]
    fn the_position_of_the_laser_comes_from_the_options_or_from_the_robot() {
        let error = LogMap::new(&StartMap::default(), None).unwrap_err();
        assert_eq!(error.to_string(), "--laser-offset-mm is required");
        let shape = Shape {
            laser: Some(amber_proto::robot::Place {
                x: Some(0.12),
                ..Default::default()
            }),
            ..Shape::default()
        };
        let map = LogMap::new(&StartMap::default(), Some(&shape)).unwrap();
        assert_eq!(map.course.mount().at.x, 0.12);
        let map = LogMap::new(&settings(), Some(&shape)).unwrap();
        assert_eq!(map.course.mount().at.x, 0.1);
    }
}
