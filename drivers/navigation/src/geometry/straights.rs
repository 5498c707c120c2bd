//! The direction in which the robot drives, as its scans see it. PURE.
//!
//! Wheels cannot move the robot sideways. If the scans say that it drives sideways, the laser has
//! another angle than configured.

use amber_map::{Point, Pose, wrap};

use super::scans::Way;

/// Ways with larger turns are curves.
const MAX_TURN_RAD: f64 = 0.35;
/// Shorter ways have no exact direction.
const MIN_WAY_M: f64 = 0.15;
/// Where the scans know a position worse, as in a long corridor, they know no direction either.
const MAX_SIGMA_M: f64 = 0.008;
/// The scans and the wheels agree about the length of the way within these factors.
const SAME_LENGTH: std::ops::RangeInclusive<f64> = 0.6..=1.7;
/// Whether the robot drives ahead when its wheels say so is known after ways of this length...
const SENSE_M: f64 = 0.5;
/// ...if at least this part of them agrees. Curves count as well.
const SENSE_PART: f64 = 0.7;
/// The wheels did not drive back and forth: the least part of the path that leads ahead or back.
const MIN_STRAIGHT: f64 = 0.9;
/// The last ways that count.
const MAX_WAYS: usize = 500;
/// The error of the direction of a way of a metre is never less than this.
const MIN_SIGMA_M: f64 = 0.004;
/// Directions that are farther from the median than so many typical errors are no directions.
const OUTLIER: f64 = 4.0;
/// The same walls are seen for several ways: the standard deviation times this.
const DEPENDENT: f64 = 1.5;

/// The straight ways so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Straights {
    /// Where each way leads by the scans, in the frame of where it leads by the wheels.
    ways: Vec<Point>,
    next: usize,
    /// The length of all ways.
    pub(super) way_m: f64,
    /// The length of all ways and curves, and how far they lead where the wheels say.
    curves_m: f64,
    ahead_m: f64,
}

/// A motion by the wheels, with the turns of the scans: so neither a wrong track nor swapped wheels
/// change the shape of its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Driven {
    pose: Pose,
    path_m: f64,
}

impl Driven {
    /// Drives on.
    pub(super) fn add(&mut self, ahead_m: f64, path_m: f64, turn_rad: f64) {
        self.pose = self.pose.along_arc(ahead_m, turn_rad);
        self.path_m += path_m;
    }
}

/// A direction with its standard deviation, in radians to the left of that of the wheels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Direction {
    pub(super) left_rad: f64,
    pub(super) sigma_rad: f64,
    pub(super) count: usize,
}

impl Straights {
    /// Adds a way if it is straight.
    pub(super) fn add(&mut self, way: &Way, mount: Pose, driven: &Driven) {
        let turn_rad = way.pose.heading;
        let is_back_and_forth = driven.pose.at.length() < MIN_STRAIGHT * driven.path_m;
        if way.sigma_m > MAX_SIGMA_M || is_back_and_forth {
            return;
        }
        // In turns, the laser moves around the centre of the robot.
        let around = mount.at.turned(turn_rad).minus(mount.at);
        let expected = driven.pose.at.plus(around);
        let seen = way.pose.at.plus(around);
        let (expected_m, seen_m) = (expected.length(), seen.length());
        if seen_m < MIN_WAY_M || !SAME_LENGTH.contains(&(expected_m / seen_m)) {
            return;
        }
        self.curves_m += seen_m;
        self.ahead_m += seen.dot(expected) / expected_m;
        if turn_rad.abs() > MAX_TURN_RAD {
            return;
        }
        self.way_m += seen_m;
        let way = seen.turned(-expected.y.atan2(expected.x));
        if self.ways.len() < MAX_WAYS {
            self.ways.push(way);
        } else {
            self.ways[self.next] = way;
            self.next = (self.next + 1) % MAX_WAYS;
        }
    }

    /// Whether the robot drives back when its wheels say ahead; `None` if unknown.
    pub(super) fn is_backwards(&self) -> Option<bool> {
        let is_clear = self.ahead_m.abs() >= SENSE_PART * self.curves_m;
        (self.curves_m >= SENSE_M && is_clear).then_some(self.ahead_m < 0.0)
    }

    /// The mean of the directions without outliers; `None` if there are too few.
    pub(super) fn direction(&self) -> Option<Direction> {
        if self.ways.len() < 3 {
            return None;
        }
        let across = |way: Point, direction: Point| direction.x * way.y - direction.y * way.x;
        // Around the mean vector, so that directions near 180 degrees are neighbours.
        let mean = direction_of(self.ways.iter().copied());
        let mut offs: Vec<f64> = (self.ways.iter())
            .map(|way| across(*way, mean).atan2(way.dot(mean)))
            .collect();
        let off_rad = median(&mut offs);
        let mut errors: Vec<f64> = offs.iter().map(|off| (off - off_rad).abs()).collect();
        let limit_rad = OUTLIER * (median(&mut errors) / 0.674).max(0.01);
        let middle = mean.turned(off_rad);
        let kept: Vec<Point> = (self.ways.iter().copied())
            .filter(|way| across(*way, middle).atan2(way.dot(middle)).abs() <= limit_rad)
            .collect();
        let direction = direction_of(kept.iter().copied());
        let count = kept.len();
        let squares: f64 = kept.iter().map(|way| across(*way, direction).powi(2)).sum();
        let weights: f64 = kept.iter().map(|way| way.dot(direction).powi(2)).sum();
        let variance = (squares / (count as f64 - 1.0).max(1.0)).max(MIN_SIGMA_M.powi(2));
        Some(Direction {
            left_rad: wrap(direction.y.atan2(direction.x)),
            sigma_rad: DEPENDENT * (variance / weights).sqrt(),
            count,
        })
    }
}

/// The common direction of vectors, as a vector of length 1. Long ones count more: as often as it
/// makes the sum of the squares of the errors across it small.
fn direction_of(vectors: impl Iterator<Item = Point>) -> Point {
    let sum = vectors.fold(Point::default(), |sum, vector| {
        sum.plus(vector.times(vector.length()))
    });
    let length = sum.length();
    if length > 0.0 {
        sum.times(1.0 / length)
    } else {
        Point::new(1.0, 0.0)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        even if even % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}
