//! SLAM: a map from scans and wheel speeds, and the path of the robot. PURE.
//!
//! 1. [`Slam::add_scan`] finds the pose of each scan: the wheels give a first pose, and
//!    [`mod@reference`] fits the scan to the last *key scans*. A key scan is kept about every 20 cm. The
//!    cost of one call is bounded, so it fits between two scans.
//! 2. [`Slam::task`] returns work that takes longer: [`loops`] looks for places that were seen
//!    before, and [`graph`] moves all poses so that everything fits together. The task owns its
//!    data: another thread can run it, while scans are added. [`Slam::apply`] takes the result.
//! 3. [`Slam::chart`] is the occupancy grid, [`Slam::map`] has the straight walls.
//!
//! [`recording`] puts this together for programs.
//!
//! The frame of the map is the pose of the first scan, or the one that [`Config::start`] sets.

pub mod chart;
mod clutter;
pub mod graph;
pub mod loops;
pub mod quality;
pub mod recording;
pub mod reference;
pub mod search;
mod solver;
pub mod surface;
pub mod walls;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use amber_map::{Map, Point, Pose, Segment};

pub use self::chart::Chart;
use self::graph::Edge;
pub use self::loops::{Correction, Task};
use self::reference::{Aligned, Prior, Reference};
use self::search::{Tables, Window};
use self::surface::{Surface, surfaces_of};
use crate::deskew::deskew;
use crate::grid::GridError;
use crate::kinematics::{SkidSteer, Wheels};
use crate::location::refine::{Matrix, invert};
use crate::odometry::{Motion, Odometry};
use crate::scan::Scan;

/// A scan becomes a key scan after this way or turn.
const KEY_M: f64 = 0.2;
const KEY_RAD: f64 = 0.25;
/// It also becomes one if less of it matches the key scans so far, after a short way.
const KEY_OVERLAP: f64 = 0.7;
const SHORT_M: f64 = 0.05;
/// Scans are fitted to this many of the last key scans...
const RECENT: usize = 15;
/// ...and to older ones within this distance, once a loop has linked them.
const LINKED_M: f64 = 1.5;
/// The maximum number of linked key scans.
const MAX_LINKED: usize = 15;
/// A fit with a smaller overlap is doubted, and a better pose is searched...
const MIN_OVERLAP: f64 = 0.4;
/// ...this far from the expected one.
const SEARCH_M: f64 = 0.3;
const SEARCH_RAD: f64 = 0.3;
/// Scans with fewer surfaces are ignored.
const MIN_SURFACES: usize = 15;
/// The errors of odometry: a constant, and parts of the way and the turn.
const SIGMA_M: f64 = 0.003;
const SIGMA_PER_M: f64 = 0.05;
const SIGMA_RAD: f64 = 0.003;
const SIGMA_PER_RAD: f64 = 0.1;
/// The errors of a motion without samples, per second.
const UNKNOWN_M_S: f64 = 0.3;
const UNKNOWN_RAD_S: f64 = 0.5;
/// The error of a motion between key scans is never less than this.
const MIN_SIGMA_M: f64 = 0.003;
const MIN_SIGMA_RAD: f64 = 0.002;
/// Scans that wait for odometry. An older one is used without.
const MAX_WAITING: usize = 3;
/// The distance between positions on the way that a map keeps.
const NODES_M: f64 = 0.8;
/// Key scans at most: a way of 2 km. More would need more memory than a small computer has.
pub const MAX_KEYS: usize = 10_000;

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The pose of the scanner on the robot.
    pub mount: Pose,
    /// The effective distance between left and right wheels in turns, in metres.
    pub track_m: f64,
    /// Beams shorter than this are ignored, in metres.
    pub min_range_m: f64,
    /// Beams longer than this are ignored, in metres.
    pub max_range_m: f64,
    /// The first pose on the map.
    pub start: Pose,
}

impl Config {
    /// The defaults, for a scanner mounted at this pose on the robot.
    #[must_use]
    pub fn new(mount: Pose) -> Self {
        Self {
            mount,
            track_m: SkidSteer::default().track_m,
            min_range_m: 0.05,
            max_range_m: 5.6,
            start: Pose::default(),
        }
    }
}

/// A scan that is kept.
#[derive(Clone, Debug)]
pub struct Key {
    /// The time of its pose.
    pub time: Duration,
    /// Its surfaces in the frame of the robot.
    pub surfaces: Arc<[Surface]>,
    /// The ends of its beams in the frame of the robot.
    pub ends: Arc<[Point]>,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Added {
    /// The time of the pose.
    pub time: Duration,
    /// The pose of the robot on the map.
    pub pose: Pose,
    /// The part of the scan that matches the map, 0 to 1.
    pub overlap: f64,
    /// Whether the scan was kept.
    pub is_key: bool,
}

/// Counts of events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans that gave a pose.
    pub scans: u64,
    /// Scans with too few surfaces.
    pub scans_blind: u64,
    /// Scans dropped because a later one was used before.
    pub scans_late: u64,
    /// Scans used without complete odometry.
    pub scans_without_odometry: u64,
    /// Samples of wheel speeds that were refused.
    pub speeds_refused: u64,
    /// Scans that did not match at the expected pose.
    pub searches: u64,
    /// Scans whose pose comes from odometry alone.
    pub unmatched: u64,
    /// Key scans dropped because there are [`MAX_KEYS`].
    pub keys_dropped: u64,
    /// Loops found.
    pub loops: u64,
    /// Loops refused because they fitted badly or more than one pose fitted.
    pub loops_refused: u64,
    /// Loops that contradict the others, at the last optimization.
    pub loops_false: u64,
}

/// Builds a map.
#[derive(Clone, Debug)]
pub struct Slam {
    config: Config,
    odometry: Odometry,
    waiting: VecDeque<Scan>,
    keys: Vec<Key>,
    /// The pose of each key scan.
    poses: Vec<Pose>,
    edges: Vec<Edge>,
    /// The key scans that scans are fitted to.
    local: Reference,
    last: Option<Added>,
    /// The odometry since the last key scan: path and turns.
    since_key: (f64, f64),
    /// The path of the robot since the start.
    way_m: f64,
    /// Key scans that were in a task.
    tasked: usize,
    counters: Counters,
}

impl Slam {
    /// Creates an empty map.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            odometry: Odometry::new(SkidSteer {
                track_m: config.track_m,
                ..SkidSteer::default()
            }),
            config,
            waiting: VecDeque::new(),
            keys: Vec::new(),
            poses: Vec::new(),
            edges: Vec::new(),
            local: Reference::new(&[]),
            last: None,
            since_key: (0.0, 0.0),
            way_m: 0.0,
            tasked: 0,
            counters: Counters::default(),
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Stores the speeds of the wheels.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        if !self.odometry.handle_wheels(time, wheels) {
            self.counters.speeds_refused += 1;
        }
    }

    /// Adds a scan, and finds the pose of the oldest waiting scan: one waits until the speeds of the
    /// wheels reach its end.
    pub fn add_scan(&mut self, scan: Scan) -> Option<Added> {
        self.waiting.push_back(scan);
        let first = self.waiting.front()?;
        let is_covered = self
            .odometry
            .latest()
            .is_some_and(|latest| latest >= first.end());
        if !is_covered && self.waiting.len() <= MAX_WAITING {
            return None;
        }
        if !is_covered {
            self.counters.scans_without_odometry += 1;
        }
        let scan = self.waiting.pop_front()?;
        if self.last.is_some_and(|last| scan.middle() <= last.time) {
            self.counters.scans_late += 1;
            return None;
        }
        self.use_scan(&scan)
    }

    /// The last pose on the map.
    #[must_use]
    pub fn last(&self) -> Option<Added> {
        self.last
    }

    /// The key scans.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The poses of the key scans: the way of the robot.
    #[must_use]
    pub fn poses(&self) -> &[Pose] {
        &self.poses
    }

    /// The length of the way of the robot in metres, by its wheels.
    #[must_use]
    pub fn way_m(&self) -> f64 {
        self.way_m
    }

    /// All measured motions, with the loops.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The counts of events.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Work on the key scans since the last task; `None` if there are none.
    #[must_use]
    pub fn task(&mut self) -> Option<Task> {
        if self.tasked == self.keys.len() {
            return None;
        }
        let first = self.tasked;
        self.tasked = self.keys.len();
        Some(Task::new(
            self.keys.clone(),
            self.poses.clone(),
            self.edges.clone(),
            first,
        ))
    }

    /// The same without new key scans: for the grid of all; `None` if there are none at all.
    #[must_use]
    pub fn task_again(&self) -> Option<Task> {
        let all = self.keys.len();
        let (keys, poses, edges) = (self.keys.clone(), self.poses.clone(), self.edges.clone());
        (all > 0).then(|| Task::new(keys, poses, edges, all))
    }

    /// Takes the result of a task.
    pub fn apply(&mut self, correction: Correction) {
        let Correction {
            poses,
            loops,
            refused,
            optimized,
        } = correction;
        self.counters.loops += loops.len() as u64;
        self.counters.loops_refused += refused;
        self.edges.extend(loops);
        let Some(optimized) = optimized else {
            return;
        };
        self.counters.loops_false = optimized.false_loops as u64;
        let Some(newest) = poses
            .len()
            .checked_sub(1)
            .filter(|newest| *newest < self.poses.len())
        else {
            return;
        };
        // Everything that is newer moves together with the newest corrected pose.
        let (old, new) = (self.poses[newest], poses[newest]);
        let moved = |pose: Pose| new.global_pose(old.local_pose(pose));
        for pose in &mut self.poses[newest + 1..] {
            *pose = moved(*pose);
        }
        if let Some(last) = &mut self.last {
            last.pose = moved(last.pose);
        }
        self.poses[..=newest].copy_from_slice(&poses);
        self.local = self.local_reference();
    }

    /// Runs all tasks until there are none.
    pub fn finish(&mut self) {
        while let Some(task) = self.task() {
            self.apply(task.run());
        }
    }

    /// Turns the map by at most 45° around the start of the robot, so that its walls are parallel to
    /// the axes. If most of them have no common direction, nothing changes.
    pub fn straighten(&mut self) {
        let Some(direction) = walls::main_direction(&self.walls()) else {
            return;
        };
        let Some(start) = self.poses.first().copied() else {
            return;
        };
        let turn = Pose::new(0.0, 0.0, -direction);
        let turned = |pose: Pose| {
            let mut turned = turn.global_pose(Pose {
                at: pose.at.minus(start.at),
                heading: pose.heading,
            });
            turned.at = turned.at.plus(start.at);
            turned
        };
        for pose in &mut self.poses {
            *pose = turned(*pose);
        }
        if let Some(last) = &mut self.last {
            last.pose = turned(last.pose);
        }
        self.local = self.local_reference();
    }

    /// The occupancy grid.
    ///
    /// # Errors
    /// There is no key scan, or the area is too large for the cells.
    pub fn chart(&self, cell_m: f64) -> Result<Chart, GridError> {
        Chart::new(&self.keys, &self.poses, self.config.mount.at, cell_m)
    }

    /// The straight walls.
    #[must_use]
    pub fn walls(&self) -> Vec<Segment> {
        let pairs = self.keys.iter().zip(&self.poses);
        let surfaces: Vec<Surface> = pairs
            .flat_map(|(key, pose)| key.surfaces.iter().map(|surface| surface.moved(*pose)))
            .collect();
        walls::walls_of(&surfaces, self.chart(walls::CELL_M).ok().as_ref())
    }

    /// The map for a file: walls, the start of the robot, and positions on its way, which tell
    /// localization where the inside is.
    #[must_use]
    pub fn map(&self, name: &str) -> Map {
        let walls = self.walls();
        let mut nodes: Vec<Point> = Vec::new();
        for pose in &self.poses {
            if nodes
                .iter()
                .all(|node| node.minus(pose.at).length() >= NODES_M)
            {
                nodes.push(pose.at);
            }
        }
        Map {
            name: name.to_owned(),
            thicknesses_m: vec![0.0; walls.len()],
            walls,
            gates: Vec::new(),
            robots: self.poses.first().copied().into_iter().collect(),
            nodes,
            ..Map::default()
        }
    }

    fn use_scan(&mut self, scan: &Scan) -> Option<Added> {
        let time = scan.middle();
        let valid = self.config.min_range_m..=self.config.max_range_m;
        let is_valid = |distance_m| valid.contains(&distance_m);
        let ends = deskew(scan, &self.odometry, self.config.mount, time, is_valid);
        let surfaces = surfaces_of(&ends, self.config.mount.at);
        if surfaces.len() < MIN_SURFACES {
            self.counters.scans_blind += 1;
            return None;
        }
        self.counters.scans += 1;
        let Some(last) = self.last else {
            let added = Added {
                time,
                pose: self.config.start,
                overlap: 1.0,
                is_key: true,
            };
            self.keep(added, surfaces, ends, None);
            return self.last;
        };
        let motion = self.odometry.motion(last.time, time);
        self.since_key.0 += motion.path_m;
        self.since_key.1 += motion.turns_rad;
        self.way_m += motion.path_m;
        let prior = prior(last.pose, &motion);
        let aligned = self.fit(&surfaces, prior);
        let (pose, overlap) = aligned.map_or((prior.pose, 0.0), |fit| (fit.pose, fit.overlap));
        let (path_m, turns_rad) = self.since_key;
        let is_key = path_m >= KEY_M
            || turns_rad >= KEY_RAD
            || overlap < KEY_OVERLAP && path_m.max(turns_rad) >= SHORT_M;
        let added = Added {
            time,
            pose,
            overlap,
            is_key,
        };
        if is_key {
            self.keep(added, surfaces, ends, aligned);
        } else {
            self.last = Some(added);
        }
        self.last
    }

    /// Fits a scan to the local key scans.
    fn fit(&mut self, surfaces: &[Surface], prior: Prior) -> Option<Aligned> {
        let aligned = self.local.align(surfaces, prior.pose, Some(prior));
        if aligned.is_some_and(|aligned| aligned.overlap >= MIN_OVERLAP) {
            return aligned;
        }
        self.counters.searches += 1;
        let window = Window {
            pose: prior.pose,
            reach_m: SEARCH_M,
            reach_rad: SEARCH_RAD,
        };
        let found = Tables::new(&self.local, window.pose.at).search(surfaces, &window);
        let searched = found.and_then(|found| self.local.align(surfaces, found.pose, None));
        let best = [aligned, searched]
            .into_iter()
            .flatten()
            .filter(|aligned| aligned.overlap >= MIN_OVERLAP)
            .max_by(|a, b| a.overlap.total_cmp(&b.overlap));
        if best.is_none() {
            self.counters.unmatched += 1;
        }
        best
    }

    /// Keeps a key scan.
    fn keep(
        &mut self,
        added: Added,
        surfaces: Vec<Surface>,
        ends: Vec<Point>,
        fit: Option<Aligned>,
    ) {
        self.last = Some(added);
        if self.keys.len() >= MAX_KEYS {
            self.counters.keys_dropped += 1;
            return;
        }
        if let Some(before) = self.poses.last() {
            let odometry = odometry_information(self.since_key);
            let information = sum(&fit.map_or([[0.0; 3]; 3], |fit| fit.information), &odometry);
            self.edges.push(Edge {
                from: self.poses.len() - 1,
                to: self.poses.len(),
                motion: before.local_pose(added.pose),
                information: in_frame_of(*before, &information, MIN_SIGMA_M, MIN_SIGMA_RAD),
                is_loop: false,
            });
        }
        self.since_key = (0.0, 0.0);
        self.keys.push(Key {
            time: added.time,
            surfaces: surfaces.into(),
            ends: ends.into(),
        });
        self.poses.push(added.pose);
        self.local = self.local_reference();
    }

    /// The last key scans, and older ones here that loops have linked to them.
    fn local_reference(&self) -> Reference {
        let count = self.keys.len();
        let first = count.saturating_sub(RECENT);
        let here = self.poses.last().copied().unwrap_or_default();
        let mut linked: Vec<usize> = self
            .edges
            .iter()
            .filter(|edge| edge.is_loop && edge.to >= first && !edge.is_false(&self.poses))
            .flat_map(|edge| loops::around(edge.from, first))
            .filter(|index| self.poses[*index].at.minus(here.at).length() <= LINKED_M)
            .collect();
        linked.sort_unstable();
        linked.dedup();
        let step = linked.len().div_ceil(MAX_LINKED).max(1);
        let used = linked.into_iter().step_by(step).chain(first..count);
        let surfaces: Vec<Surface> = used
            .flat_map(|index| {
                let pose = self.poses[index];
                self.keys[index]
                    .surfaces
                    .iter()
                    .map(move |surface| surface.moved(pose))
            })
            .collect();
        Reference::new(&surfaces)
    }
}

/// The expected pose after a motion.
fn prior(last: Pose, motion: &Motion) -> Prior {
    Prior {
        pose: last.global_pose(motion.pose),
        sigma_m: SIGMA_M + SIGMA_PER_M * motion.path_m + UNKNOWN_M_S * motion.unknown_s,
        sigma_rad: SIGMA_RAD + SIGMA_PER_RAD * motion.turns_rad + UNKNOWN_RAD_S * motion.unknown_s,
    }
}

/// A motion according to odometry.
fn odometry_information((path_m, turns_rad): (f64, f64)) -> Matrix {
    let sigma_m = SIGMA_M + SIGMA_PER_M * (path_m + turns_rad * KEY_M);
    let place = sigma_m.powi(-2);
    let heading = (SIGMA_RAD + SIGMA_PER_RAD * turns_rad).powi(-2);
    [[place, 0.0, 0.0], [0.0, place, 0.0], [0.0, 0.0, heading]]
}

fn sum(a: &Matrix, b: &Matrix) -> Matrix {
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| a[row][column] + b[row][column]))
}

/// The information in the frame of a pose, where no error is smaller than the given ones.
fn in_frame_of(pose: Pose, information: &Matrix, sigma_m: f64, sigma_rad: f64) -> Matrix {
    let (sin, cos) = pose.heading.sin_cos();
    let turn = [[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]];
    let local = solver::product(
        &solver::product(&turn, information),
        &solver::transposed(&turn),
    );
    let floor = [sigma_m, sigma_m, sigma_rad].map(|sigma| sigma * sigma);
    let limited = invert(&local).and_then(|mut covariance| {
        for (index, row) in covariance.iter_mut().enumerate() {
            row[index] += floor[index];
        }
        invert(&covariance)
    });
    limited.unwrap_or(local)
}

#[cfg(test)]
mod tests;
