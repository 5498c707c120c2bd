//! Pieces of surfaces in a scan: points with a normal. PURE.
//!
//! A single beam has an error of centimetres. The line through its neighbours is much more exact,
//! and its normal tells which side of a wall was seen, so both sides of a thin wall stay apart.
//! At a corner, the line through the neighbours of one side only is used.

use amber_map::Point;

/// The distance between two pieces on the same wall.
pub(super) const SPACING_M: f64 = 0.03;
/// The line is fitted to neighbours up to this distance, per metre of range beyond 1 m.
const REACH_M: f64 = 0.08;
const MAX_REACH_M: f64 = 0.3;
/// A larger gap between two beams, plus so much per metre of range, ends the neighbourhood.
const GAP_M: f64 = 0.05;
const GAP_PER_M: f64 = 0.06;
/// A line needs so many points.
const MIN_POINTS: usize = 5;
/// The error of a beam: up to 1 m, and per metre beyond.
const SIGMA_M: f64 = 0.01;
/// Points that are farther from their line than this many errors are no line.
const MAX_SPREAD: f64 = 2.0;
/// The points along a line spread at least this many times more than across it.
const MIN_ELONGATION: f64 = 3.0;
/// A one-sided line is used if it fits better by this factor.
const ONE_SIDED: f64 = 0.6;
/// The error of a piece is never less than this: surfaces have colours, and turns blur scans.
const MIN_SIGMA_M: f64 = 0.005;

/// A small piece of a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// Its centre.
    pub at: Point,
    /// The unit vector that points away from it to the side of the scanner.
    pub normal: Point,
    /// One divided by the variance of its position across the surface, in 1/m².
    pub weight: f64,
}

impl Surface {
    /// The same piece in another frame, where its own frame is at `pose`.
    #[must_use]
    pub fn moved(&self, pose: amber_map::Pose) -> Self {
        Self {
            at: pose.global(self.at),
            normal: self.normal.turned(pose.heading),
            weight: self.weight,
        }
    }
}

/// The surfaces at the ends of beams, which are in the order of measurement. `scanner` is the
/// position of the scanner in the same frame.
#[must_use]
pub fn surfaces_of(points: &[Point], scanner: Point) -> Vec<Surface> {
    let mut surfaces = Vec::new();
    let mut last: Option<Point> = None;
    for (index, point) in points.iter().enumerate() {
        if last.is_some_and(|last| point.minus(last).length() < SPACING_M) {
            continue;
        }
        if let Some(surface) = surface_at(points, index, scanner) {
            surfaces.push(surface);
            last = Some(*point);
        }
    }
    surfaces
}

fn surface_at(points: &[Point], index: usize, scanner: Point) -> Option<Surface> {
    let point = points[index];
    let range_m = point.minus(scanner).length();
    let sigma_m = SIGMA_M * range_m.max(1.0);
    let reach_m = (REACH_M * range_m.max(1.0)).min(MAX_REACH_M);
    let gap_m = GAP_M + GAP_PER_M * range_m;
    let near = |from: usize, to: usize, reach_m: f64| {
        points[to].minus(point).length() <= reach_m
            && points[to].minus(points[from]).length() <= gap_m
    };
    let first = |reach_m: f64| {
        let mut first = index;
        while first > 0 && near(first, first - 1, reach_m) {
            first -= 1;
        }
        first
    };
    let last = |reach_m: f64| {
        let mut last = index;
        while last + 1 < points.len() && near(last, last + 1, reach_m) {
            last += 1;
        }
        last
    };
    let (start, end) = (first(reach_m), last(reach_m));
    let around = Line::through(&points[first(reach_m * 0.6)..=last(reach_m * 0.6)]);
    let one_sided = [
        Line::through(&points[start..=index]),
        Line::through(&points[index..=end]),
    ];
    let better = one_sided
        .into_iter()
        .flatten()
        .min_by(|a, b| a.across_m.total_cmp(&b.across_m));
    let line = match (around, better) {
        (Some(around), Some(better)) if better.across_m < ONE_SIDED * around.across_m => better,
        (Some(around), _) => around,
        (None, better) => better?,
    };
    let valid = line.across_m <= MAX_SPREAD * sigma_m
        && line.along_m >= MIN_ELONGATION * line.across_m.max(SIGMA_M / 2.0);
    if !valid {
        return None;
    }
    let across = Point::new(-line.direction.y, line.direction.x);
    let normal = if across.dot(scanner.minus(point)) < 0.0 {
        across.times(-1.0)
    } else {
        across
    };
    let off_m = normal.dot(line.centre.minus(point));
    Some(Surface {
        at: point.plus(normal.times(off_m)),
        normal,
        weight: 1.0 / (sigma_m.powi(2) / line.count as f64 + MIN_SIGMA_M.powi(2)),
    })
}

/// A line through points with the smallest squares of the distances.
struct Line {
    centre: Point,
    direction: Point,
    count: usize,
    /// The standard deviations across and along the line.
    across_m: f64,
    along_m: f64,
}

impl Line {
    fn through(points: &[Point]) -> Option<Self> {
        if points.len() < MIN_POINTS {
            return None;
        }
        let count = points.len() as f64;
        let sum = points
            .iter()
            .fold(Point::default(), |sum, point| sum.plus(*point));
        let centre = sum.times(1.0 / count);
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for point in points {
            let way = point.minus(centre);
            xx += way.x * way.x;
            xy += way.x * way.y;
            yy += way.y * way.y;
        }
        let (direction, along, across) = main_axis(xx, xy, yy);
        Some(Self {
            centre,
            direction,
            count: points.len(),
            // Two numbers were fitted.
            across_m: (across.max(0.0) / (count - 2.0)).sqrt(),
            along_m: (along / count).sqrt(),
        })
    }
}

/// The direction of the largest spread of a symmetric matrix, and both eigenvalues.
pub(super) fn main_axis(xx: f64, xy: f64, yy: f64) -> (Point, f64, f64) {
    let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
    let (middle, half) = (f64::midpoint(xx, yy), ((xx - yy) / 2.0).hypot(xy));
    let direction = Point::new(angle.cos(), angle.sin());
    (direction, middle + half, middle - half)
}

#[cfg(test)]
mod tests {
    use amber_map::{Pose, Segment, Walls};

    use super::*;
    use crate::random::gaussian;

    /// The ends of noisy beams from the origin.
    fn seen(walls: &Walls, seed: u64) -> Vec<Point> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..682)
            .filter_map(|index| {
                let angle = (f64::from(index) * 0.352 - 120.0).to_radians();
                let distance_m = walls.cast(Point::default(), angle, 5.6)?;
                let noise_m = SIGMA_M * distance_m.max(1.0) * gaussian(&mut random);
                Some(Point::new(distance_m + noise_m, 0.0).turned(angle))
            })
            .collect()
    }

    #[test]
    fn surfaces_are_more_exact_than_beams_and_reach_into_corners() {
        let wall = |x0, y0, x1, y1| Segment {
            from: Point::new(x0, y0),
            to: Point::new(x1, y1),
        };
        let segments = vec![wall(1.5, -1.0, 1.5, 2.0), wall(-1.0, 2.0, 1.5, 2.0)];
        let points = seen(&Walls::new(segments.clone()), 1);
        let surfaces = surfaces_of(&points, Point::default());
        assert!(surfaces.len() > 80, "{}", surfaces.len());
        let off = |at: Point| {
            let distances = segments.iter().map(|wall| wall.distance(at));
            distances.fold(f64::MAX, f64::min)
        };
        let squares: f64 = surfaces.iter().map(|surface| off(surface.at).powi(2)).sum();
        let rms_m = (squares / surfaces.len() as f64).sqrt();
        assert!(rms_m < 0.008, "{rms_m}");
        let corner = Point::new(1.5, 2.0);
        let nearest = surfaces
            .iter()
            .map(|surface| surface.at.minus(corner).length());
        assert!(nearest.fold(f64::MAX, f64::min) < 0.06);
        for surface in &surfaces {
            let towards = surface.normal.dot(surface.at.times(-1.0));
            assert!(towards > 0.0, "{surface:?}");
        }
    }

    #[test]
    fn a_moved_surface_keeps_its_side() {
        let surface = Surface {
            at: Point::new(1.0, 0.0),
            normal: Point::new(-1.0, 0.0),
            weight: 1.0,
        };
        let moved = surface.moved(Pose::new(0.0, 1.0, std::f64::consts::FRAC_PI_2));
        assert!(moved.at.minus(Point::new(0.0, 2.0)).length() < 1e-9);
        assert!(moved.normal.minus(Point::new(0.0, -1.0)).length() < 1e-9);
    }
}
