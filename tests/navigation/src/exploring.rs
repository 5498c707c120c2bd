//! One exploration of a simulated place, on a virtual clock. PURE.

use std::time::Duration;

use amber_map::{Cell, Layout, Map, Occupancy, Point, Pose, Segment, Walls};
use amber_navigation::collision::Decision;
use amber_navigation::drive_to_point::{self, Skipped};
use amber_navigation::explore::{Explorer, State};
use amber_navigation::grid::{DistanceField, FreeSpace};
use amber_navigation::pose_tracker::PoseReading;
use amber_navigation::slam::Config;
use amber_navigation::slam::quality::{Quality, seen_from};
use amber_navigation::slam::recording::{Recording, SURE_OVERLAP};
use amber_sim::world::find_start;

use super::laser::Scanner;
use super::robot::{Event, Robot, Sensors, is_due};

/// The time between two decisions.
const PERIOD: Duration = Duration::from_millis(50);
/// How long work takes, at least as long as on a small computer.
const WORK_TAKES: Duration = Duration::from_millis(800);
/// The cells in which the found area is measured, and where the robot must fit.
const CELL_M: f64 = 0.05;
const FIT_M: f64 = 0.2;

/// The results.
#[derive(Clone, Debug, PartialEq)]
pub struct Exploration {
    /// The final activity of the robot.
    pub end: State,
    /// How long it took.
    pub time_s: f64,
    /// How far the robot drove.
    pub way_m: f64,
    /// The part of the area that the robot can reach that is free on its map.
    pub found: f64,
    /// The walls of its map against the truth.
    pub quality: Quality,
    /// The largest error of a pose while exploring.
    pub live_max_m: f64,
    /// Loops closed.
    pub loops: u64,
    /// Frontiers that the robot could not reach.
    pub skipped: Vec<(Point, Skipped)>,
    /// Contacts with walls.
    pub contacts: u64,
    /// The smallest distance of the footprint from a wall.
    pub clearance_m: f64,
}

/// One decision of an exploration.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When it was made.
    pub time_s: f64,
    /// The pose of the robot.
    pub truth: Pose,
    /// Where it was according to its map, in the same frame, and the true pose of that time.
    pub believed: Option<(Pose, Pose)>,
    /// The distance of the footprint from the nearest wall.
    pub clearance_m: f64,
    /// The speeds for the wheels, and why.
    pub decision: Decision,
    /// The activity of the explorer.
    pub state: State,
    /// How it drives.
    pub driving: drive_to_point::State,
    /// Its goal, in the same frame.
    pub goal: Option<Point>,
}

/// A place of the map where the robot fits: its own start, or else one of its nodes.
#[must_use]
pub fn start(map: &Map, walls: &[Segment]) -> Option<Pose> {
    let nodes = map.nodes.iter().map(|at| Pose {
        at: *at,
        heading: 0.0,
    });
    let candidates: Vec<Pose> = map.robots.iter().copied().chain(nodes).collect();
    find_start(walls, &candidates).ok()
}

/// Explores for at most so many seconds. `None` if the robot cannot start there, or sees nothing.
#[must_use]
pub fn explore(
    walls: &[Segment],
    start: Pose,
    scanner: Scanner,
    seed: u64,
    seconds: u64,
) -> Option<Exploration> {
    explore_watched(walls, start, scanner, seed, seconds, |_| {})
}

/// The same. `watch` sees each decision.
#[must_use]
pub fn explore_watched(
    walls: &[Segment],
    start: Pose,
    scanner: Scanner,
    seed: u64,
    seconds: u64,
    mut watch: impl FnMut(Moment),
) -> Option<Exploration> {
    let sensors = Sensors {
        scanner,
        ..Sensors::NOISY
    };
    let mut robot = Robot::new(walls, start, seed, sensors).ok()?;
    let config = drive_to_point::Config::new(Pose::default());
    let mut explorer = Explorer::new(config).ok()?;
    let mut recording = Recording::new(Config::new(Pose::default()), Some(config.planner));
    let mut working = None;
    let mut poses = vec![start];
    let mut live_max_m: f64 = 0.0;
    let mut first: Option<Pose> = None;
    while robot.now() < Duration::from_secs(seconds) && !explorer.state().is_over() {
        for event in robot.step() {
            let now = robot.now();
            match event {
                Event::Wheels(time, wheels) => {
                    recording.handle_wheels(time, wheels);
                    explorer.handle_wheels(time, wheels);
                }
                Event::Scan(scan) => {
                    explorer.handle_scan(&scan);
                    let Some(added) = recording.handle_scan(scan) else {
                        continue;
                    };
                    let truth = robot.world.pose_at(added.time);
                    let seen = first.get_or_insert(truth).global(added.pose.at);
                    live_max_m = live_max_m.max(seen.minus(truth.at).length());
                    let is_sure = added.overlap >= SURE_OVERLAP;
                    explorer.handle_pose(PoseReading {
                        time: added.time,
                        pose: added.pose,
                        quality: if is_sure { 1.0 } else { 0.5 },
                    });
                }
                Event::Pose(..) => {}
            }
            if let Some(work) = recording.work(now) {
                working = Some((now + WORK_TAKES, work.run()));
            }
        }
        let now = robot.now();
        if let Some((_, worked)) = working.take_if(|(ready, _)| *ready <= now) {
            recording.apply(&worked);
            if let Some(survey) = worked.survey {
                explorer.handle_survey(now, survey);
            }
        }
        if is_due(now, PERIOD) {
            let decision = explorer.step(now);
            robot.send(decision.wheels);
            watch(Moment {
                time_s: now.as_secs_f64(),
                truth: robot.world.pose(),
                believed: first
                    .zip(explorer.drive().pose())
                    .map(|(first, (time, pose))| {
                        (first.global_pose(pose), robot.world.pose_at(time))
                    }),
                clearance_m: robot.footprint_clearance_m(),
                decision,
                state: explorer.state(),
                driving: explorer.drive().state(),
                goal: (first.zip(explorer.drive().next_targets().next()))
                    .map(|(first, target)| first.global(target.at)),
            });
        }
        if is_due(now, Duration::from_millis(500)) {
            poses.push(robot.world.pose());
        }
    }
    let seen = seen_from(&Walls::new(walls.to_vec()), poses.into_iter());
    let finished = recording.finish("explored", CELL_M).ok()?;
    // The finished map is turned; its first pose tells how.
    let mapped = finished.map.robots.first()?;
    let frame = first?.global_pose(mapped.local_pose(Pose::default()));
    let quality = Quality::new(&finished.map.walls, walls, &seen, frame);
    Some(Exploration {
        end: explorer.state(),
        time_s: robot.now().as_secs_f64(),
        way_m: robot.world.travelled_m(),
        found: found(&finished.occupancy, walls, start.at, quality.frame),
        quality,
        live_max_m,
        loops: finished.progress.counters.loops,
        skipped: explorer.skipped().to_vec(),
        contacts: robot.world.contacts(),
        clearance_m: robot.clearance_m(),
    })
}

/// The part of the area where the centre of the robot can be that is free on the map.
fn found(map: &Occupancy, walls: &[Segment], start: Point, frame: Pose) -> f64 {
    let Ok(layout) = Layout::around_walls(walls, 0.1, CELL_M) else {
        return 0.0;
    };
    let field = DistanceField::from_walls(layout, walls, 1.0);
    let free = FreeSpace::new(&field, FIT_M, &[start]);
    let (mut all, mut found) = (0_u32, 0_u32);
    for row in 0..layout.rows {
        for column in 0..layout.columns {
            if !free.is_free_cell(layout.index(column, row)) {
                continue;
            }
            all += 1;
            let at = frame.local(layout.centre(column, row));
            let cell = map.layout().cell_at(at);
            let is_found = cell.is_some_and(|(column, row)| map.cell(column, row) == Cell::Free);
            found += u32::from(is_found);
        }
    }
    f64::from(found) / f64::from(all.max(1))
}
