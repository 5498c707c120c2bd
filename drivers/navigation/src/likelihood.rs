//! How well a scan fits a pose: the likelihood field model. PURE.
//!
//! Probabilistic Robotics (Thrun, Burgard, Fox, 2005), chapter 6.4: the end of a beam that hits a
//! wall of the map lies near a wall, `p = z_hit · exp(-d² / 2σ²) + z_random`, where `d` is the
//! distance from the end to the nearest wall. Neighbouring beams share their errors, so the sum of
//! the logarithms is scaled down.

use std::f64::consts::FRAC_PI_2;

use amber_map::{Point, Pose};

use crate::grid::DistanceField;

/// Entries of the table per metre of distance.
const STEPS_PER_M: usize = 1_000;

/// The last part of a beam does not cross walls: the end has an error.
const CROSSED_M: f64 = 0.04;

/// The parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeamModel {
    /// The standard deviation of the distance between the end of a beam and the wall, in metres.
    pub sigma_m: f64,
    /// The weight of beams that hit a wall of the map.
    pub hit: f64,
    /// The weight of all other beams.
    pub random: f64,
}

impl BeamModel {
    /// The likelihood of a beam that ends at this distance from the nearest wall.
    #[must_use]
    pub fn likelihood(&self, distance_m: f64) -> f64 {
        self.hit * gauss(distance_m, self.sigma_m) + self.random
    }
}

/// The logarithm of the likelihood for each distance.
#[derive(Clone, Debug)]
pub struct Likelihood {
    logs: Vec<f32>,
}

impl Likelihood {
    /// Computes the table for the distances in a field.
    #[must_use]
    pub fn new(model: BeamModel, field: &DistanceField) -> Self {
        let count = (field.limit_m() * STEPS_PER_M as f64).ceil() as usize + 1;
        let log = |index: usize| {
            // The middle of the distances that share the entry.
            let distance_m = (index as f64 + 0.5) / STEPS_PER_M as f64;
            model.likelihood(distance_m).ln() as f32
        };
        Self {
            logs: (0..count).map(log).collect(),
        }
    }

    /// The sum of the logarithms of the likelihoods of points, which are in the frame of the robot.
    #[must_use]
    pub fn log_of(&self, field: &DistanceField, pose: Pose, points: &[Point]) -> f64 {
        let last = self.logs.len() - 1;
        let mut sum = 0.0;
        field.visit(pose, points, |distance_mm| {
            sum += f64::from(self.logs[usize::from(distance_mm).min(last)]);
        });
        sum
    }
}

/// How well points match a pose: the mean of `exp(-d² / 2σ²)`, where beams that cross a wall before
/// their end count 0. 1 if all beams end at the first wall. The points are in the frame of the robot,
/// and `laser` is the position of the scanner in it.
///
/// The likelihood field alone takes the far side of a wall for as good as the near one.
#[must_use]
pub fn match_of(
    field: &DistanceField,
    pose: Pose,
    laser: Point,
    points: &[Point],
    sigma_m: f64,
) -> f64 {
    if points.is_empty() {
        return 0.0;
    }
    let on_map = |point: Point| pose.at.plus(point.turned(pose.heading));
    let start = on_map(laser);
    let part = |point: &Point| {
        let end = on_map(*point);
        let hit = gauss(field.distance_m(end), sigma_m);
        // A beam that ends nowhere near a wall does not count anyway.
        if hit < 0.01 {
            return 0.0;
        }
        let way = end.minus(start);
        let length_m = way.length();
        let before = way.times((1.0 - CROSSED_M / length_m).max(0.0));
        if field.crosses_wall(start, start.plus(before)) {
            0.0
        } else {
            hit
        }
    };
    points.iter().map(part).sum::<f64>() / points.len() as f64
}

/// Beams that go this far through a wall are impossible...
const THROUGH_M: f64 = 0.15;
/// ...if those at this distance on both sides do so as well: a map shows the legs of a chair thicker than
/// they are.
const BESIDE_M: f64 = 0.06;

/// What a map says about a scan at a pose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The part that it explains, see [`match_of`].
    pub matching: f64,
    /// The part that it forbids: beams that go through walls.
    pub through: f64,
}

impl Verdict {
    /// What speaks for the pose: 1 if all beams end at walls, and less than 0 if most go through walls.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.matching - self.through
    }
}

/// What a map says about points at a pose. The points are in the frame of the robot, and `laser` is the
/// position of the scanner in it.
#[must_use]
pub fn verdict_of(
    field: &DistanceField,
    pose: Pose,
    laser: Point,
    points: &[Point],
    sigma_m: f64,
) -> Verdict {
    let on_map = |point: Point| pose.at.plus(point.turned(pose.heading));
    let start = on_map(laser);
    let count = points.len().max(1) as f64;
    let mut sum = Verdict::default();
    for point in points {
        let end = on_map(*point);
        let way = end.minus(start);
        let length_m = way.length();
        let left = way.turned(FRAC_PI_2).times(BESIDE_M / length_m);
        let crosses = |less_m: f64, aside: f64| {
            let from = start.plus(left.times(aside));
            let before = way.times((1.0 - less_m / length_m).max(0.0));
            field.crosses_wall(from, from.plus(before))
        };
        let hit = gauss(field.distance_m(end), sigma_m);
        if crosses(CROSSED_M, 0.0) {
            let is_through = [0.0, 1.0, -1.0]
                .into_iter()
                .all(|aside| crosses(THROUGH_M, aside));
            sum.through += f64::from(u8::from(is_through));
        } else {
            sum.matching += hit;
        }
    }
    Verdict {
        matching: sum.matching / count,
        through: sum.through / count,
    }
}

fn gauss(distance_m: f64, sigma_m: f64) -> f64 {
    (-distance_m * distance_m / (2.0 * sigma_m * sigma_m)).exp()
}

#[cfg(test)]
mod tests {
    use amber_map::Segment;
    use proptest::prelude::*;

    use super::*;
    use crate::grid::Layout;

    proptest! {
        #[test]
        fn the_table_equals_the_formula(
            x in 0.0..2.0, y in -1.0..1.0, heading in -4.0..4.0,
            ends in prop::collection::vec((-2.0..2.0, -2.0..2.0), 1..20),
        ) {
            let wall = Segment { from: Point::new(1.0, -1.0), to: Point::new(1.0, 1.0) };
            let layout = Layout::around_walls(&[wall], 0.6, 0.02).unwrap();
            let field = DistanceField::from_walls(layout, &[wall], 0.5);
            let model = BeamModel { sigma_m: 0.05, hit: 0.95, random: 0.05 };
            let table = Likelihood::new(model, &field);
            let points: Vec<Point> = ends.into_iter().map(|(x, y)| Point::new(x, y)).collect();
            let pose = Pose::new(x, y, heading);
            let expected: f64 = points
                .iter()
                .map(|point| field.distance_m(pose.at.plus(point.turned(heading))))
                .map(|distance_m| model.likelihood(distance_m).ln())
                .sum();
            let found = table.log_of(&field, pose, &points);
            // Half a millimetre at the steepest part of the curve.
            let tolerance = 0.02 * points.len() as f64;
            prop_assert!((expected - found).abs() < tolerance, "{expected} {found}");
        }
    }

    #[test]
    fn the_match_is_one_on_a_wall_and_zero_far_from_it() {
        let wall = Segment {
            from: Point::new(-1.0, 0.01),
            to: Point::new(1.0, 0.01),
        };
        let layout = Layout {
            low: Point::new(-1.0, -1.0),
            cell_m: 0.02,
            columns: 100,
            rows: 100,
        };
        let field = DistanceField::from_walls(layout, &[wall], 0.5);
        let on_wall = [Point::new(0.5, 0.01), Point::new(-0.5, 0.01)];
        let pose = Pose::default();
        let laser = Point::new(0.0, -0.5);
        assert!((match_of(&field, pose, laser, &on_wall, 0.05) - 1.0).abs() < 1e-6);
        let half = [Point::new(0.5, 0.01), Point::new(0.5, 5.0)];
        assert!((match_of(&field, pose, laser, &half, 0.05) - 0.5).abs() < 1e-6);
        assert_eq!(match_of(&field, pose, laser, &[], 0.05), 0.0);
    }

    #[test]
    fn a_beam_through_a_wall_does_not_match() {
        let wall = |y| Segment {
            from: Point::new(-1.0, y),
            to: Point::new(1.0, y),
        };
        let walls = [wall(0.0), wall(0.1)];
        let layout = Layout::around_walls(&walls, 1.0, 0.02).unwrap();
        let field = DistanceField::from_walls(layout, &walls, 0.5);
        let (pose, laser) = (Pose::default(), Point::new(0.0, -0.5));
        let matching = |y| match_of(&field, pose, laser, &[Point::new(0.02, y)], 0.05);
        assert!(matching(0.0) > 0.95);
        assert_eq!(matching(0.1), 0.0);
    }
}
