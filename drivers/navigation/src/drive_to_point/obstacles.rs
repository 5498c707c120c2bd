//! Obstacles that are not on the map, and the walls of the map where the laser does not look. PURE.

use std::time::Duration;

use amber_map::{Point, Pose};

use super::DriveToPoint;
use crate::collision::{Felt, Touch};
use crate::scan::Scan;

/// A point this far from the walls of the map is an obstacle that is not on the map.
pub(super) const NOT_ON_MAP_M: f64 = 0.15;
/// Obstacles that are not on the map are remembered for this long...
const OBSTACLE_MEMORY: Duration = Duration::from_secs(20);
/// ...one per square of this size...
const OBSTACLE_CELL_M: f64 = 0.05;
/// ...and at most so many: the edge of a room of 5 m x 5 m.
const MAX_OBSTACLES: usize = 400;
/// The laser still sees an obstacle that it has seen this short a time ago.
const STILL_SEEN: Duration = Duration::from_millis(400);
/// Obstacles farther away are not used: the pose error turns them into phantoms.
const OBSTACLE_RANGE_M: f64 = 1.5;
/// An obstacle counts when so many scans have seen it.
const OBSTACLE_SCANS: u32 = 4;
/// Walls of the map count behind the robot up to this distance from its centre.
const MAP_RANGE_M: f64 = 0.6;
/// The path is planned again if an obstacle is this near to it...
const PATH_MARGIN_M: f64 = 0.18;
/// ...within this way ahead.
const PATH_AHEAD_M: f64 = 1.2;

/// An obstacle that is not on the map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Obstacle {
    at: Point,
    seen: Duration,
    scans: u32,
}

impl DriveToPoint {
    /// Notes obstacles that are not on the map, and whether they are on the path.
    pub(super) fn remember_obstacles(&mut self, now: Duration, pose: Pose) {
        let Some(planner) = &self.planner else {
            return;
        };
        self.obstacles
            .retain(|obstacle| now.saturating_sub(obstacle.seen) < OBSTACLE_MEMORY);
        let mut cells = Vec::new();
        for local in self.monitor.seen(now) {
            let at = pose.global(local);
            if local.length() > OBSTACLE_RANGE_M
                || planner.clearance_m(at) < NOT_ON_MAP_M
                || cells.contains(&cell(at))
            {
                continue;
            }
            cells.push(cell(at));
            note(&mut self.obstacles, now, at, 1);
        }
        let Some(follower) = &self.follower else {
            return;
        };
        let (from_m, to_m) = (follower.way_m(), follower.way_m() + PATH_AHEAD_M);
        let is_ahead = self.sure_obstacles().any(|at| {
            let place = follower.path().project(at, from_m, to_m);
            place.left_m.abs() < PATH_MARGIN_M
        });
        self.obstacles_ahead = is_ahead;
    }

    /// Notes what the robot touches, which its laser may not see, as obstacles at the edge of the robot.
    pub(super) fn remember_touches(&mut self, now: Duration, pose: Pose, touches: &[Touch]) {
        let outline = self.config.collision.outline;
        let stays = touches.iter().filter(|touch| touch.felt != Felt::WheelDrop);
        for place in stays.flat_map(|touch| touch.places(outline)) {
            let at = pose.global(place);
            if !self.is_on_map(at) {
                note(&mut self.obstacles, now, at, OBSTACLE_SCANS);
            }
        }
    }

    /// Whether a wall of the map is near a place. Without a map, everything counts as on it.
    pub(super) fn is_on_map(&self, at: Point) -> bool {
        let planner = self.planner.as_ref();
        planner.is_none_or(|planner| planner.clearance_m(at) < NOT_ON_MAP_M)
    }

    /// Keeps the obstacles that the laser still sees. The others may have gone away.
    pub(super) fn forget_unseen_obstacles(&mut self, now: Duration) {
        let is_seen = |it: &Obstacle| now.saturating_sub(it.seen) <= STILL_SEEN;
        self.obstacles.retain(is_seen);
    }

    /// Where the laser does not look, the walls of the map count. What the laser has seen of them
    /// before drifts: if the effective track is wrong, a turn moves it by centimetres.
    pub(super) fn use_map_behind(&mut self, scan: &Scan, pose: Pose) {
        let Some(planner) = &self.planner else {
            return;
        };
        let angles = scan.beams.iter().map(|beam| beam.angle_rad);
        let high = angles.clone().fold(f64::NEG_INFINITY, f64::max);
        let low = angles.fold(f64::INFINITY, f64::min);
        let laser = self.config.collision.laser;
        let hidden = planner
            .wall_points(pose.at, MAP_RANGE_M)
            .map(|point| pose.local(point))
            .filter(|local| {
                let seen = laser.local(*local);
                let angle = seen.y.atan2(seen.x);
                angle < low || angle > high
            });
        self.monitor.set_known(scan.end(), hidden);
        let covers_m = self.config.map_covers_m;
        let is_on_map = |local| planner.clearance_m(pose.global(local)) < covers_m;
        self.monitor.forget_if(scan.end(), is_on_map);
    }

    pub(super) fn sure_obstacles(&self) -> impl Iterator<Item = Point> + '_ {
        let sure = |obstacle: &&Obstacle| obstacle.scans >= OBSTACLE_SCANS;
        self.obstacles.iter().filter(sure).map(|it| it.at)
    }
}

/// So many scans have seen an obstacle now.
fn note(obstacles: &mut Vec<Obstacle>, now: Duration, at: Point, scans: u32) {
    let known = obstacles.iter_mut().find(|it| cell(it.at) == cell(at));
    if let Some(known) = known {
        known.seen = now;
        known.scans = known.scans.saturating_add(scans);
    } else if obstacles.len() < MAX_OBSTACLES {
        obstacles.push(Obstacle {
            at,
            seen: now,
            scans,
        });
    }
}

/// The square of a place.
fn cell(at: Point) -> (i64, i64) {
    let index = |length_m: f64| (length_m / OBSTACLE_CELL_M).floor() as i64;
    (index(at.x), index(at.y))
}
