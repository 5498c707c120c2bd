//! Runs of DriveToPoint and PidFollowTrajectory.

use std::path::Path as File;
use std::time::Duration;

use amber_map::{Map, MapPose, Point, Pose, Segment};
pub(crate) use amber_navigation::drive_to_point::Config;
pub(crate) use amber_navigation::drive_to_point::Target;
use amber_navigation::drive_to_point::{ClientId, DriveToPoint, State};
use amber_navigation::kinematics::{SkidSteer, Wheels};
use amber_navigation::path::Path;
use amber_navigation::pose_tracker::{self, PoseReading};
use amber_navigation::trajectory::{self, Trajectory, Waypoint};

use crate::robot::{Event, Noise, Robot, is_due};

const PERIOD: Duration = Duration::from_millis(20);
const RADIUS_M: f64 = 0.25;
const CLIENT: ClientId = ClientId(1);

/// The walls of a map of the original laboratory as lines, if the maps are there.
pub(crate) fn lab(name: &str) -> Option<Map> {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maps");
    let text = std::fs::read_to_string(folder.join(format!("{name}.roson"))).ok()?;
    Map::parse(&text).ok()
}

/// Points of the map frame as targets.
pub(crate) fn targets(places: &[(f64, f64)]) -> Vec<Target> {
    places
        .iter()
        .map(|(x, y)| Target {
            at: Pose::from(MapPose::new(*x, *y, 0.0)).at,
            radius_m: RADIUS_M,
        })
        .collect()
}

/// A free pose at a place, in one of eight directions.
pub(crate) fn start_at(walls: &[Segment], at: Point) -> Pose {
    let turns = (0..8).map(|turn| f64::from(turn) * std::f64::consts::FRAC_PI_4);
    let poses: Vec<Pose> = turns.map(|heading| Pose { at, heading }).collect();
    amber_sim::world::find_start(walls, &poses).expect("a free place")
}

/// Something that happens during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Incident {
    None,
    /// The robot is carried away after this time.
    Kidnap(Duration, Pose),
    LaserOff(Duration),
    PoseOff(Duration),
    /// The targets are cleared.
    Cleared(Duration),
    /// A box appears on the path, this far ahead.
    Box(Duration, f64),
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) visited: usize,
    pub(crate) skipped: usize,
    pub(crate) contacts: u64,
    pub(crate) clearance_m: f64,
    pub(crate) time_s: f64,
    pub(crate) way_m: f64,
    /// From the incident to the zero command.
    pub(crate) stop_s: Option<f64>,
    /// When the first target was skipped.
    pub(crate) skipped_s: Option<f64>,
}

/// Drives to the targets.
pub(crate) fn drive(
    walls: &[Segment],
    start: Pose,
    targets: &[Target],
    incident: Incident,
    noise: Noise,
    seed: u64,
    limit_s: u64,
) -> Run {
    let config = Config::new(Pose::default());
    drive_with(
        config, walls, start, targets, incident, noise, seed, limit_s,
    )
}

/// Drives with another configuration.
#[expect(
    clippy::too_many_arguments,
    reason = "one value per axis of the scenarios"
)]
pub(crate) fn drive_with(
    mut config: Config,
    walls: &[Segment],
    start: Pose,
    targets: &[Target],
    incident: Incident,
    noise: Noise,
    seed: u64,
    limit_s: u64,
) -> Run {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x77);
    // The true track is 0.42 m.
    config.collision.drive.track_m = 0.38 + 0.08 * random.f64();
    let mut robot = Robot::new(walls.to_vec(), start, seed, noise);
    let mut driver = DriveToPoint::new(config, walls).expect("a map of usual size");
    let mut run = Run::default();
    let mut started = None;
    let mut happened = None;
    while robot.now() < Duration::from_secs(limit_s) {
        for event in robot.step() {
            match event {
                Event::Scan(scan) => driver.handle_scan(&scan),
                Event::Wheels(time, wheels) => driver.handle_wheels(time, wheels),
                Event::Pose(time, pose) => driver.handle_pose(PoseReading {
                    time,
                    pose,
                    quality: 1.0,
                }),
            }
        }
        let now = robot.now();
        if started.is_none() && now >= Duration::from_millis(500) {
            driver.set_targets(now, CLIENT, targets);
            started = Some(now);
        }
        let Some(since) = started.map(|start| now - start) else {
            continue;
        };
        let at = match incident {
            Incident::None => None,
            Incident::Kidnap(at, _)
            | Incident::LaserOff(at)
            | Incident::PoseOff(at)
            | Incident::Cleared(at)
            | Incident::Box(at, _) => Some(at),
        };
        if happened.is_none() && at.is_some_and(|at| since >= at) {
            happened = Some(now);
            match incident {
                Incident::None => {}
                Incident::Kidnap(_, pose) => robot.world.place(pose).expect("a free place"),
                Incident::LaserOff(_) => robot.laser_on = false,
                Incident::PoseOff(_) => robot.pose_on = false,
                Incident::Cleared(_) => driver.set_targets(now, CLIENT, &[]),
                Incident::Box(_, ahead_m) => {
                    let pose = robot.world.pose();
                    let centre = driver.path().map_or_else(
                        || pose.global(Point::new(ahead_m, 0.0)),
                        |path| {
                            let here = path.project(pose.at, 0.0, f64::INFINITY).way_m;
                            path.at(here + ahead_m)
                        },
                    );
                    let walls = crate::robot::box_of(centre, 0.15, 0.15);
                    robot.world.add_walls(&walls).expect("a free place");
                }
            }
        }
        if is_due(now, PERIOD) {
            let decision = driver.step(now);
            robot.send(decision.wheels);
            if let Some(happened) = happened
                && decision.wheels == Wheels::STOP
            {
                run.stop_s.get_or_insert((now - happened).as_secs_f64());
            }
            if !driver.skipped_targets().is_empty() {
                run.skipped_s.get_or_insert(since.as_secs_f64());
            }
            run.time_s = since.as_secs_f64();
            let is_over = driver.state() == State::Idle;
            if is_over && robot.world.wheel_speeds().iter().all(|it| it.abs() < 0.002) {
                break;
            }
        }
    }
    run.visited = driver.visited_targets().len();
    run.skipped = driver.skipped_targets().len();
    run.contacts = robot.world.contacts();
    run.clearance_m = robot.clearance_m;
    run.way_m = robot.world.travelled_m();
    run
}

/// The result of a trajectory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tracking {
    pub(crate) rms_m: f64,
    pub(crate) max_m: f64,
    pub(crate) end_m: f64,
    pub(crate) time_s: f64,
    pub(crate) length_m: f64,
    pub(crate) finished: bool,
}

/// Follows the corners of a closed path with points between them.
pub(crate) fn follow(
    corners: &[(f64, f64)],
    spacing_m: f64,
    track_m: f64,
    noise: Noise,
    seed: u64,
) -> Tracking {
    let corners: Vec<Point> = corners
        .iter()
        .map(|(x, y)| Pose::from(MapPose::new(*x, *y, 0.0)).at)
        .collect();
    let outline = Path::new(corners.iter().copied()).expect("a path");
    let mut points = Vec::new();
    for (index, pair) in corners.windows(2).enumerate() {
        let length_m = pair[1].minus(pair[0]).length();
        let steps = (length_m / spacing_m).round().max(1.0);
        for step in u32::from(index > 0)..=steps as u32 {
            points.push(Waypoint {
                at: pair[0].plus(pair[1].minus(pair[0]).times(f64::from(step) / steps)),
                time: Duration::ZERO,
            });
        }
    }
    let drive = SkidSteer {
        track_m,
        ..SkidSteer::default()
    };
    let start = Pose {
        at: corners[0],
        heading: outline.direction_rad(0.0),
    };
    let walls = crate::robot::box_of(corners[0], 20.0, 20.0);
    let mut robot = Robot::new(walls, start, seed, noise);
    robot.laser_on = false;
    let mut driver = Trajectory::new(drive, pose_tracker::Config::default());
    driver
        .set(trajectory::Config::default(), &points)
        .expect("a trajectory");
    driver.start(CLIENT).expect("a start");
    let (mut squares, mut count) = (0.0, 0);
    let mut result = Tracking {
        length_m: outline.length_m(),
        ..Tracking::default()
    };
    let mut way_m = 0.0;
    while robot.now() < Duration::from_secs(90) {
        for event in robot.step() {
            match event {
                Event::Scan(_) => {}
                Event::Wheels(time, wheels) => driver.handle_wheels(time, wheels),
                Event::Pose(time, pose) => driver.handle_pose(PoseReading {
                    time,
                    pose,
                    quality: 1.0,
                }),
            }
        }
        if !is_due(robot.now(), PERIOD) {
            continue;
        }
        robot.send(driver.step(robot.now()));
        let at = robot.world.pose().at;
        let place = outline.project(at, way_m - 0.3, way_m + 0.4);
        way_m = f64::max(way_m, place.way_m);
        squares += place.left_m * place.left_m;
        count += 1;
        result.max_m = result.max_m.max(place.left_m.abs());
        result.time_s = robot.now().as_secs_f64();
        result.finished = driver.state() == trajectory::State::Finished;
        if result.finished && robot.world.wheel_speeds().iter().all(|it| it.abs() < 0.002) {
            break;
        }
    }
    result.rms_m = (squares / f64::from(count)).sqrt();
    result.end_m = robot.world.pose().at.minus(outline.end()).length();
    result
}
