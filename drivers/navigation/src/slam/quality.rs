//! How well a map shows the true walls, for tests and measurements. PURE.

use amber_map::{Point, Pose, Segment, Walls};

use crate::location::refine::solve;

/// The distance between points that are compared.
const SPACING_M: f64 = 0.02;
/// A wall that is farther from every other wall is missing, or false.
pub const FAR_M: f64 = 0.1;
/// Points farther away do not affect the fit.
const FIT_GATE_M: f64 = 0.25;
const FIT_STEPS: usize = 40;
/// The area that the robot has seen: beams up to this length from the poses of a tour.
const SEEN_M: f64 = 4.0;
const BEAMS: usize = 340;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// The frame of the map in the frame of the truth, where they fit best.
    pub frame: Pose,
    /// The root of the mean square of the distances from the map to the truth, in metres.
    pub rms_m: f64,
    /// 95 % of the distances are smaller, in metres.
    pub p95_m: f64,
    /// The length of walls in the map, in metres.
    pub length_m: f64,
    /// The part of it that is far from every true wall.
    pub wrong: f64,
    /// The part of the visible true walls that is far from every wall in the map.
    pub missing: f64,
}

impl Quality {
    /// Compares a map with the truth. `seen` are points on the true walls that a robot could see;
    /// `frame` is where the frame of the map roughly is.
    #[must_use]
    pub fn new(map: &[Segment], truth: &[Segment], seen: &[Point], frame: Pose) -> Self {
        let points = sampled(map);
        let frame = fitted(&points, truth, frame);
        let mut distances: Vec<f64> = points
            .iter()
            .map(|point| distance_m(truth, frame.global(*point)))
            .collect();
        distances.sort_by(f64::total_cmp);
        let count = distances.len().max(1) as f64;
        let far = distances
            .iter()
            .filter(|distance_m| **distance_m > FAR_M)
            .count();
        let squares: f64 = distances
            .iter()
            .map(|distance_m| distance_m * distance_m)
            .sum();
        let unseen = seen
            .iter()
            .filter(|point| distance_m(map, frame.local(**point)) > FAR_M)
            .count();
        Self {
            frame,
            rms_m: (squares / count).sqrt(),
            p95_m: distances
                .get((0.95 * count) as usize)
                .copied()
                .unwrap_or(f64::NAN),
            length_m: map
                .iter()
                .map(|wall| wall.to.minus(wall.from).length())
                .sum(),
            wrong: far as f64 / count,
            missing: unseen as f64 / seen.len().max(1) as f64,
        }
    }
}

/// The points of true walls that are visible from some poses, without doubles.
#[must_use]
pub fn seen_from(truth: &Walls, poses: impl Iterator<Item = Pose>) -> Vec<Point> {
    let mut seen = std::collections::BTreeMap::new();
    for pose in poses {
        for index in 0..BEAMS {
            let angle = (240.0 * index as f64 / BEAMS as f64 - 120.0).to_radians() + pose.heading;
            if let Some(length_m) = truth.cast(pose.at, angle, SEEN_M) {
                let end = pose.at.plus(Point::new(length_m, 0.0).turned(angle));
                let cell = |value: f64| (value / SPACING_M).round() as i64;
                seen.insert((cell(end.x), cell(end.y)), end);
            }
        }
    }
    seen.into_values().collect()
}

/// Points along walls.
fn sampled(walls: &[Segment]) -> Vec<Point> {
    let points = |wall: &Segment| {
        let way = wall.to.minus(wall.from);
        let count = (way.length() / SPACING_M).ceil().max(1.0) as usize;
        let from = wall.from;
        (0..=count).map(move |index| from.plus(way.times(index as f64 / count as f64)))
    };
    walls.iter().flat_map(points).collect()
}

fn distance_m(walls: &[Segment], at: Point) -> f64 {
    let distances = walls.iter().map(|wall| wall.distance(at));
    distances.fold(f64::INFINITY, f64::min)
}

/// The frame in which points lie best on walls.
fn fitted(points: &[Point], walls: &[Segment], mut frame: Pose) -> Pose {
    for _ in 0..FIT_STEPS {
        let mut matrix = [[0.0; 3]; 3];
        let mut pull = [0.0; 3];
        for point in points {
            let at = frame.global(*point);
            let nearest = walls
                .iter()
                .map(|wall| (wall.distance(at), wall))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, wall)) = nearest.filter(|(distance_m, _)| *distance_m < FIT_GATE_M) else {
                continue;
            };
            let along = wall.to.minus(wall.from);
            let normal = Point::new(-along.y, along.x).times(1.0 / along.length().max(1e-9));
            let off_m = at.minus(wall.from).dot(normal);
            let arm = at.minus(frame.at);
            let slope = [normal.x, normal.y, arm.x * normal.y - arm.y * normal.x];
            for row in 0..3 {
                for column in 0..3 {
                    matrix[row][column] += slope[row] * slope[column];
                }
                pull[row] += slope[row] * off_m;
            }
        }
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] += 1e-6;
        }
        let Some(way) = solve(&matrix, &pull) else {
            break;
        };
        frame.at = frame.at.minus(Point::new(way[0], way[1]));
        frame.heading -= way[2];
    }
    frame
}
