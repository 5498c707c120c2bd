//! Motions of a robot between obstacles that bring it no nearer to any of them. PURE.
//!
//! The margins of the monitor may be larger than the room that is left: the robot has drifted, an
//! obstacle has come nearer, or a person has put the robot there. Then a motion is allowed if it
//! does not reduce the distance to any surface.
//!
//! Obstacles are points, but single points do not show what becomes nearer: a corner that slides
//! along a wall leaves some points and comes to others. So each point has the direction in which
//! its surface faces, from its neighbours, and a point may come as near as the nearest point that
//! faces the same way. Points inside the footprint count by their depth: noise puts them there, and
//! errors of a map.

use amber_map::{Point, Pose};

use super::contact::Footprint;
use crate::kinematics::{SkidSteer, Twist};

/// Points farther away from the footprint than this do not matter for a short motion.
const REACH_M: f64 = 0.13;
/// Neighbours within this distance are on the same surface.
const SURFACE_M: f64 = 0.04;
/// Fewer points are no surface.
const MIN_POINTS: usize = 4;
/// The points of a surface are on a line: the mean square across is at most this part of that along.
const FLAT: f64 = 0.1;
/// Neighbouring points of a surface are at most this far apart; more are put between them...
const SPACING_M: f64 = 0.002;
/// ...if they are not farther apart than this.
const MAX_SPACING_M: f64 = 0.012;
/// The maximum number of points: three sides of the robot along walls, with the beams of a UTM-30LX.
const MAX_POINTS: usize = 1_000;
/// Surfaces face the same way if the cosine between them is at least this: 40 degrees.
const SAME_WAY: f64 = 0.77;
/// The fastest wheel rolls this far between two checks.
const STEP_M: f64 = 0.004;
/// The number of checks for a decision: 20 mm, which is more than a slow robot needs to stop...
const DECISION_STEPS: u32 = 5;
/// ...and for a way out.
const SEARCH_STEPS: u32 = 20;
/// A surface may seem this much nearer, because its points are some millimetres apart...
const TOLERANCE_M: f64 = 0.000_5;
/// ...and this much deeper in the footprint.
const TOLERANCE_INSIDE_M: f64 = 0.001;
/// Walls of a map may be this much farther away: cells of 25 mm, and the error of the pose.
const MAP_ERROR_M: f64 = 0.02;
/// A motion away gains this much within [`DECISION_STEPS`].
const AWAY_M: f64 = 0.000_5;
/// A way out must gain this much.
const MIN_GAIN_M: f64 = 0.003;
/// Motions that may lead out: metres ahead, and radians to the left.
const WAYS_OUT: [(f64, f64); 10] = [
    (-1.0, 0.0),
    (1.0, 0.0),
    (0.0, 1.0),
    (0.0, -1.0),
    (-1.0, 2.0),
    (-1.0, -2.0),
    (1.0, 2.0),
    (1.0, -2.0),
    (-1.0, 5.0),
    (-1.0, -5.0),
];

/// How a point is known. The errors of points of different kinds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The laser sees it.
    Seen,
    /// The laser has seen it.
    Remembered,
    /// It is on the map.
    Known,
}

/// The distances that the robot keeps, if it has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    pub(super) ahead_m: f64,
    pub(super) beside_m: f64,
    /// More, for what the laser no longer sees.
    pub(super) drift_m: f64,
}

/// The surfaces around a robot.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    footprint: Footprint,
    margins: Margins,
    surfaces: Vec<Surface>,
}

/// A piece of a surface.
#[derive(Clone, Copy, Debug)]
struct Surface {
    at: Point,
    kind: Kind,
    /// The direction that it faces: a vector of length 1.
    faces: Point,
    distance_m: f64,
    /// The distance of the nearest surface that faces the same way.
    nearest_m: f64,
}

impl Surface {
    /// Pieces between this one and the next one of the same surface.
    fn until(&self, next: &Self, footprint: Footprint) -> impl Iterator<Item = Self> + use<> {
        let way = next.at.minus(self.at);
        let is_same = self.kind == next.kind
            && self.faces.dot(next.faces) >= SAME_WAY
            && way.length() <= MAX_SPACING_M;
        let steps = (way.length() / SPACING_M).ceil();
        let count = if is_same { steps as u32 } else { 0 };
        let first = *self;
        (1..count).map(move |step| {
            let at = first.at.plus(way.times(f64::from(step) / steps));
            let distance_m = footprint.signed_distance_m(at);
            Self {
                at,
                distance_m,
                nearest_m: distance_m,
                ..first
            }
        })
    }
}

impl Surroundings {
    /// The surfaces of points in the frame of the robot.
    pub(super) fn new(
        footprint: Footprint,
        margins: Margins,
        points: impl Iterator<Item = (Kind, Point)>,
    ) -> Self {
        let near: Vec<(Kind, Point)> = points
            .filter(|(_, point)| footprint.signed_distance_m(*point) <= REACH_M)
            .collect();
        let every = near.len().div_ceil(MAX_POINTS).max(1);
        let near: Vec<(Kind, Point)> = near.into_iter().step_by(every).collect();
        let surface = |(kind, at): &(Kind, Point)| {
            let same = near.iter().filter(|(other, _)| other == kind);
            let distance_m = footprint.signed_distance_m(*at);
            Surface {
                at: *at,
                kind: *kind,
                faces: faces(*at, same.map(|(_, at)| *at)),
                distance_m,
                nearest_m: distance_m,
            }
        };
        let mut surfaces: Vec<Surface> = near.iter().map(surface).collect();
        let between: Vec<Surface> = (surfaces.windows(2))
            .flat_map(|pair| pair[0].until(&pair[1], footprint))
            .collect();
        surfaces.extend(between);
        let nearest = |surface: &Surface| {
            let same = surfaces.iter().filter(|other| {
                other.kind == surface.kind && other.faces.dot(surface.faces) >= SAME_WAY
            });
            same.map(|other| other.distance_m)
                .fold(surface.distance_m, f64::min)
        };
        let nearest: Vec<f64> = surfaces.iter().map(nearest).collect();
        for (surface, nearest_m) in surfaces.iter_mut().zip(nearest) {
            surface.nearest_m = nearest_m;
        }
        Self {
            footprint,
            margins,
            surfaces,
        }
    }

    /// Whether a short motion brings nothing nearer that is within the margins.
    pub(super) fn allow(&self, drive: SkidSteer, twist: Twist) -> bool {
        normalized(drive, twist)
            .is_some_and(|unit| self.clear_steps(unit, DECISION_STEPS) == DECISION_STEPS)
    }

    /// The motion that leads to most room, if there is one that the margins allow.
    pub(super) fn way_out(&self, drive: SkidSteer) -> Option<Twist> {
        let now_m = self.room_m(Pose::default());
        let found = WAYS_OUT.into_iter().filter_map(|(forward, turn)| {
            let unit = normalized(drive, Twist::new(forward, turn))?;
            let steps = self.clear_steps(unit, SEARCH_STEPS);
            let room_m = self.room_m(after(unit, steps));
            let is_better = steps >= DECISION_STEPS && room_m > now_m + MIN_GAIN_M;
            is_better.then_some((room_m, unit))
        });
        let best = found.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, unit)| unit)
    }

    /// The same, for a motion that also leads away from what is nearest.
    pub(super) fn allow_away(&self, drive: SkidSteer, twist: Twist) -> bool {
        let gain_m =
            |unit: Twist| self.room_m(after(unit, DECISION_STEPS)) - self.room_m(Pose::default());
        self.allow(drive, twist)
            && normalized(drive, twist).is_some_and(|unit| gain_m(unit) >= AWAY_M)
    }

    /// How many steps of a motion bring nothing nearer, up to a limit.
    fn clear_steps(&self, unit: Twist, limit: u32) -> u32 {
        let is_clear = |step: &u32| {
            let pose = after(unit, *step);
            self.surfaces.iter().all(|surface| {
                let distance_m = self.footprint.signed_distance_m(pose.local(surface.at));
                distance_m >= self.least_m(surface, unit)
            })
        };
        (1..=limit).take_while(is_clear).count() as u32
    }

    /// How near a surface may come.
    fn least_m(&self, surface: &Surface, unit: Twist) -> f64 {
        let least_m = self.margin_m(surface, unit).min(surface.nearest_m);
        if least_m > 0.0 {
            least_m - TOLERANCE_M
        } else {
            least_m - TOLERANCE_INSIDE_M
        }
    }

    fn margin_m(&self, surface: &Surface, twist: Twist) -> f64 {
        let is_ahead = twist.forward_m_s > 0.0 && surface.at.x > self.footprint.front_m
            || twist.forward_m_s < 0.0 && surface.at.x < -self.footprint.rear_m;
        let margin_m = if is_ahead {
            self.margins.ahead_m
        } else {
            self.margins.beside_m
        };
        match surface.kind {
            Kind::Seen | Kind::Known => margin_m,
            Kind::Remembered => margin_m + self.margins.drift_m,
        }
    }

    /// The distance of the nearest surface at a pose.
    fn room_m(&self, pose: Pose) -> f64 {
        let distances = self.surfaces.iter();
        distances
            .map(|surface| self.footprint.signed_distance_m(pose.local(surface.at)))
            .fold(REACH_M, f64::min)
    }
}

/// The smallest distance between the footprint and points while the robot turns on the spot by an
/// angle; negative if it would touch one. Points count as farther away by an allowance, and those of a
/// map by the error of a map.
pub(super) fn turn_room_m(
    footprint: Footprint,
    points: impl Iterator<Item = (Kind, Point)>,
    angle_rad: f64,
    allowance_m: impl Fn(Point) -> f64,
) -> f64 {
    // A step moves the corners by 10 mm.
    let radius_m = footprint.radius_m();
    let steps = (angle_rad.abs() * radius_m / 0.01).ceil().max(1.0);
    points
        // The circle around all corners.
        .filter(|(_, point)| point.length() <= radius_m + REACH_M)
        .flat_map(|(kind, point)| {
            let error_m = if kind == Kind::Known {
                MAP_ERROR_M
            } else {
                0.0
            };
            let farther_m = error_m + allowance_m(point);
            (0..=steps as u32).map(move |step| {
                let turned = point.turned(-angle_rad * f64::from(step) / steps);
                footprint.signed_distance_m(turned) + farther_m
            })
        })
        .fold(f64::INFINITY, f64::min)
}

/// The same arc, with a fastest wheel of 1 m/s.
fn normalized(drive: SkidSteer, twist: Twist) -> Option<Twist> {
    let half_m_s = twist.turn_rad_s.abs() * drive.track_m / 2.0;
    let fastest_m_s = twist.forward_m_s.abs() + half_m_s;
    (fastest_m_s > 0.0).then(|| twist.scaled(1.0 / fastest_m_s))
}

/// The pose after some steps.
fn after(unit: Twist, steps: u32) -> Pose {
    let way_m = f64::from(steps) * STEP_M;
    Pose::default().along_arc(unit.forward_m_s * way_m, unit.turn_rad_s * way_m)
}

/// Where the surface at a point faces: across the line through its neighbours, towards the robot. A
/// lone point faces the robot.
fn faces(at: Point, others: impl Iterator<Item = Point>) -> Point {
    let unit = |way: Point| way.times(1.0 / way.length().max(1e-9));
    let to_robot = unit(at.times(-1.0));
    let near: Vec<Point> = others
        .map(|other| other.minus(at))
        .filter(|way| way.length() <= SURFACE_M)
        .collect();
    if near.len() < MIN_POINTS {
        return to_robot;
    }
    let count = near.len() as f64;
    let mean = near
        .iter()
        .fold(Point::default(), |sum, way| sum.plus(*way))
        .times(1.0 / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for way in near.iter().map(|way| way.minus(mean)) {
        xx += way.x * way.x;
        xy += way.x * way.y;
        yy += way.y * way.y;
    }
    // The eigenvalues of the covariance matrix.
    let half = f64::midpoint(xx, yy);
    let root = (0.25 * (xx - yy) * (xx - yy) + xy * xy).sqrt();
    let (along, across) = (half + root, half - root);
    if across > FLAT * along || along <= 0.0 {
        return to_robot;
    }
    let direction = 0.5 * (2.0 * xy).atan2(xx - yy);
    let normal = Point::new(-direction.sin(), direction.cos());
    if normal.dot(to_robot) < 0.0 {
        normal.times(-1.0)
    } else {
        normal
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    const FOOTPRINT: Footprint = Footprint {
        front_m: 0.185,
        rear_m: 0.185,
        half_width_m: 0.165,
    };
    const MARGINS: Margins = Margins {
        ahead_m: 0.06,
        beside_m: 0.015,
        drift_m: 0.0,
    };
    const FORWARD: Twist = Twist::new(0.1, 0.0);
    const BACK: Twist = Twist::new(-0.1, 0.0);
    const LEFT: Twist = Twist::new(0.0, 0.5);
    const RIGHT: Twist = Twist::new(0.0, -0.5);

    /// Points of a wall that is perpendicular to a direction as seen from the robot, this far from its
    /// centre, and from one side to the other.
    fn wall(direction_deg: f64, away_m: f64, from_m: f64, to_m: f64) -> Vec<(Kind, Point)> {
        let count = ((to_m - from_m) / 0.0015) as u32;
        let point = |step: u32| {
            let along_m = from_m + 0.0015 * f64::from(step);
            Point::new(away_m, along_m).turned(direction_deg.to_radians())
        };
        (0..=count).map(|step| (Kind::Seen, point(step))).collect()
    }

    /// How far the footprint reaches in a direction.
    fn reach_m(direction_deg: f64) -> f64 {
        let (sin, cos) = direction_deg.to_radians().sin_cos();
        0.185 * cos.abs() + 0.165 * sin.abs()
    }

    fn allowed(walls: &[Vec<(Kind, Point)>]) -> [bool; 4] {
        let points = walls.iter().flatten().copied();
        let around = Surroundings::new(FOOTPRINT, MARGINS, points);
        [FORWARD, BACK, LEFT, RIGHT].map(|twist| around.allow(SkidSteer::default(), twist))
    }

    #[test]
    fn without_obstacles_all_is_allowed_and_there_is_no_way_out() {
        assert_eq!(allowed(&[]), [true; 4]);
        let around = Surroundings::new(FOOTPRINT, MARGINS, std::iter::empty());
        assert_eq!(around.way_out(SkidSteer::default()), None);
    }

    #[test]
    fn in_front_of_a_wall_only_the_way_back_is_allowed() {
        // 5 mm of room, no room, and 5 mm inside.
        for room_m in [0.005, 0.0, -0.005] {
            let ahead = wall(0.0, 0.185 + room_m, -0.5, 0.5);
            assert_eq!(allowed(&[ahead]), [false, true, false, false], "{room_m}");
        }
    }

    #[test]
    fn beside_a_wall_the_robot_may_drive_along_it() {
        for room_m in [0.005, 0.0, -0.005] {
            let left = wall(90.0, 0.165 + room_m, -0.5, 0.5);
            assert_eq!(allowed(&[left]), [true, true, false, false], "{room_m}");
        }
    }

    /// The robot stands slanted in the corner of a room, as after an exploration of the flat: its left
    /// side looks into the corner, and its front left and its rear left corner nearly touch a wall
    /// each. A turn to the right frees both.
    #[test]
    fn slanted_in_a_corner_the_robot_may_turn_away_from_both_walls() {
        for room_m in [0.008, 0.002, -0.004, -0.015] {
            let walls = [
                wall(50.0, reach_m(50.0) + room_m, -0.3, 0.5),
                wall(140.0, reach_m(140.0) + room_m, -0.5, 0.3),
            ];
            assert_eq!(allowed(&walls), [false, false, false, true], "{room_m}");
            let points = walls.iter().flatten().copied();
            let around = Surroundings::new(FOOTPRINT, MARGINS, points);
            let out = around.way_out(SkidSteer::default()).expect("a way out");
            assert!(out.turn_rad_s < 0.0, "{out:?}");
        }
    }

    #[test]
    fn along_a_wall_is_not_away_from_it() {
        let left = wall(90.0, 0.17, -0.5, 0.5);
        let around = Surroundings::new(FOOTPRINT, MARGINS, left.into_iter());
        assert!(!around.allow_away(SkidSteer::default(), FORWARD));
        let ahead = wall(0.0, 0.19, -0.5, 0.5);
        let around = Surroundings::new(FOOTPRINT, MARGINS, ahead.into_iter());
        assert!(around.allow_away(SkidSteer::default(), BACK));
    }

    #[test]
    fn one_wall_does_not_hide_that_another_one_comes_nearer() {
        // 3 mm to the left, 10 mm ahead.
        let walls = [wall(90.0, 0.168, -0.5, 0.5), wall(0.0, 0.195, -0.1, 0.1)];
        assert_eq!(allowed(&walls), [false, true, false, false]);
    }

    #[test]
    fn an_error_of_the_map_does_not_hide_a_wall_that_the_laser_sees() {
        let mut walls = vec![wall(0.0, 0.195, -0.5, 0.5), wall(0.0, 0.165, -0.5, 0.5)];
        for (kind, _) in &mut walls[1] {
            *kind = Kind::Known;
        }
        assert_eq!(allowed(&walls), [false, true, false, false]);
    }

    #[test]
    fn the_room_for_a_turn() {
        // A corridor of 0.45 m: the corners of the robot need 0.496 m.
        let corridor = [wall(90.0, 0.225, -1.0, 1.0), wall(-90.0, 0.225, -1.0, 1.0)].concat();
        let room_m = |angle| turn_room_m(FOOTPRINT, corridor.iter().copied(), angle, |_| 0.0);
        assert!((room_m(0.0) - 0.06).abs() < 0.001, "{}", room_m(0.0));
        assert!(
            (room_m(PI / 2.0) + 0.018).abs() < 0.008,
            "{}",
            room_m(PI / 2.0)
        );
        assert!(room_m(0.1) > 0.03);
        assert_eq!(
            turn_room_m(FOOTPRINT, std::iter::empty(), PI, |_| 0.0),
            f64::INFINITY
        );
    }
}
