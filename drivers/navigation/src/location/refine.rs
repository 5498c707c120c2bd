//! Fits a scan to the map, starting near the right pose. PURE.
//!
//! Gauss and Newton: each point pulls the pose along the vector to its nearest wall, which the
//! distance field has (scan matching on a distance field is in Probabilistic Robotics, chapter 6.5,
//! and in Fitzgibbon, "Robust registration of 2D and 3D point sets", Image and Vision Computing 21,
//! 2003). Points far from walls count little (the kernel of Geman and McClure, 1987), so things that
//! the map lacks do no harm. The kernel gets narrower with each step.

use amber_map::{Point, Pose};

use crate::grid::DistanceField;

/// The maximum number of steps.
const MAX_STEPS: usize = 25;
/// A smaller step ends the search: 0.02 mm and 0.001 degrees.
const DONE_M: f64 = 2e-5;
const DONE_RAD: f64 = 2e-5;
/// The width of the kernel in the first step.
const FIRST_WIDTH_M: f64 = 0.15;
/// Each step narrows the kernel by this factor.
const NARROWING: f64 = 0.8;
/// The parts of the matrix that a pose with few walls in sight lacks get this weight: a wall that
/// one point in a hundred sees.
const DAMPING: f64 = 1e-2;

/// A point counts as much as the length of wall up to the nearer of its neighbours, as a part of
/// this: the errors of neighbouring beams are alike, because they come from the same surface, and a
/// near wall has many of them. A point farther from its neighbours is alone, and counts less again.
const FULL_SHARE_M: f64 = 0.1;

/// A symmetric 3 x 3 matrix over x, y and heading, row by row.
pub type Matrix = [[f64; 3]; 3];

/// A pose that fits the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refined {
    pub pose: Pose,
    /// The information in the points about x, y and heading, for an error of 1 m per point. A point
    /// counts as much as the length of wall that it stands for.
    pub information: Matrix,
}

/// The pose near a start at which the points fit the map best. The points are in the frame of the
/// robot and in the order of their angles.
///
/// `width_m` is the distance from walls at which a point counts a quarter.
///
/// `None` if no point is near a wall.
#[must_use]
pub fn refine(
    field: &DistanceField,
    start: Pose,
    points: &[Point],
    width_m: f64,
) -> Option<Refined> {
    let points = with_shares(points);
    let mut pose = start;
    let mut current_m = FIRST_WIDTH_M.max(width_m);
    for _ in 0..MAX_STEPS {
        let fit = Fit::new(field, pose, &points, current_m);
        let step = fit.step()?;
        pose.at = pose.at.plus(Point::new(step[0], step[1]));
        pose.heading += step[2];
        let small = step[0].hypot(step[1]) < DONE_M && step[2].abs() < DONE_RAD;
        if small && current_m <= width_m {
            break;
        }
        current_m = (current_m * NARROWING).max(width_m);
    }
    let fit = Fit::new(field, pose, &points, width_m);
    (fit.weight > 0.0).then_some(Refined {
        pose,
        information: fit.matrix,
    })
}

/// The points with their shares, 0 to 1.
fn with_shares(points: &[Point]) -> Vec<(Point, f64)> {
    let distance_m = |a: usize, b: usize| points[a].minus(points[b]).length();
    (0..points.len())
        .map(|index| {
            let before_m = index.checked_sub(1).map(|before| distance_m(before, index));
            let after_m = (index + 1 < points.len()).then(|| distance_m(index, index + 1));
            let neighbours = [before_m, after_m].into_iter().flatten();
            let nearer_m = neighbours
                .fold(f64::INFINITY, f64::min)
                .max(f64::MIN_POSITIVE);
            let share = (nearer_m / FULL_SHARE_M).min(FULL_SHARE_M / nearer_m);
            (points[index], share)
        })
        .collect()
}

/// The normal equations of one step.
struct Fit {
    matrix: Matrix,
    pull: [f64; 3],
    weight: f64,
}

impl Fit {
    fn new(field: &DistanceField, pose: Pose, points: &[(Point, f64)], width_m: f64) -> Self {
        let mut new = Self {
            matrix: [[0.0; 3]; 3],
            pull: [0.0; 3],
            weight: 0.0,
        };
        let (sin, cos) = pose.heading.sin_cos();
        for (point, share) in points {
            let arm = Point::new(cos * point.x - sin * point.y, sin * point.x + cos * point.y);
            let Some(offset) = field.offset_m(pose.at.plus(arm)) else {
                continue;
            };
            let distance_m = offset.length();
            let weight = share * (1.0 + (distance_m / width_m).powi(2)).powi(-2);
            new.weight += weight;
            if distance_m < 1e-9 {
                // On the wall: nothing pulls, and the vector has no direction.
                continue;
            }
            let normal = offset.times(1.0 / distance_m);
            // How the distance changes with x, y and heading.
            let slope = [normal.x, normal.y, arm.x * normal.y - arm.y * normal.x];
            for (row, along) in slope.iter().enumerate() {
                add_scaled(&mut new.matrix[row], &slope, weight * along);
                new.pull[row] += weight * along * distance_m;
            }
        }
        new
    }

    fn step(&self) -> Option<[f64; 3]> {
        if self.weight <= 0.0 {
            return None;
        }
        let mut matrix = self.matrix;
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] += DAMPING * self.weight;
        }
        let solved = solve(&matrix, &self.pull)?;
        Some(solved.map(|step| -step))
    }
}

fn add_scaled(row: &mut [f64; 3], slope: &[f64; 3], factor: f64) {
    for (sum, value) in row.iter_mut().zip(slope) {
        *sum += factor * value;
    }
}

/// Solves a symmetric positive definite system (Cholesky). `None` if the matrix is singular.
#[must_use]
pub(crate) fn solve(matrix: &Matrix, right: &[f64; 3]) -> Option<[f64; 3]> {
    let mut lower = [[0.0; 3]; 3];
    for row in 0..3 {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = matrix[row][column] - sum;
            lower[row][column] = if row == column {
                if rest <= 0.0 {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / lower[column][column]
            };
        }
    }
    let mut half = [0.0; 3];
    for row in 0..3 {
        let sum: f64 = (0..row).map(|k| lower[row][k] * half[k]).sum();
        half[row] = (right[row] - sum) / lower[row][row];
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let sum: f64 = (row + 1..3).map(|k| lower[k][row] * solution[k]).sum();
        solution[row] = (half[row] - sum) / lower[row][row];
    }
    Some(solution)
}

/// The inverse of a symmetric positive definite matrix. `None` if it is singular.
#[must_use]
pub(crate) fn invert(matrix: &Matrix) -> Option<Matrix> {
    let columns = [
        solve(matrix, &[1.0, 0.0, 0.0])?,
        solve(matrix, &[0.0, 1.0, 0.0])?,
        solve(matrix, &[0.0, 0.0, 1.0])?,
    ];
    Some(columns)
}

#[cfg(test)]
mod tests {
    use amber_map::{Map, Segment, Walls};
    use proptest::prelude::*;

    use super::*;
    use crate::grid::Layout;
    use crate::random::gaussian;

    proptest! {
        #[test]
        fn a_matrix_times_its_inverse_is_one(
            values in prop::collection::vec(-2.0..2.0f64, 9),
        ) {
            // A product with its transpose is positive definite.
            let a = |row: usize, column: usize| values[row * 3 + column];
            let indices = [0, 1, 2];
            let matrix = indices.map(|row| indices.map(|column| {
                let product: f64 = (0..3).map(|k| a(row, k) * a(column, k)).sum();
                product + if row == column { 0.1 } else { 0.0 }
            }));
            let inverse = invert(&matrix).unwrap();
            for (row, column) in indices.into_iter().flat_map(|row| indices.map(|column| (row, column))) {
                let sum: f64 = (0..3).map(|k| matrix[row][k] * inverse[k][column]).sum();
                let expected = if row == column { 1.0 } else { 0.0 };
                prop_assert!((sum - expected).abs() < 1e-6);
            }
        }

        #[test]
        fn it_converges_from_5_cm_and_3_degrees_between_lines(
            (truth, start, seed) in starts(0.05, 0.052),
        ) {
            let (error_m, error_rad) = errors_after(Map::flat().walls, truth, start, seed);
            prop_assert!(error_m < 0.02, "{error_m}");
            prop_assert!(error_rad < 0.008, "{error_rad}");
        }
    }

    /// Poses in the living room, and starts beside them.
    fn starts(off_m: f64, off_rad: f64) -> impl Strategy<Value = (Pose, Pose, u64)> {
        let way = (-off_m..off_m, -off_m..off_m, -off_rad..off_rad);
        (2.0..3.8, -5.0..-3.8, -3.0..3.0, way, 0..1000u64).prop_map(|(x, y, heading, way, seed)| {
            let start = Pose::new(x + way.0, y + way.1, heading + way.2);
            (Pose::new(x, y, heading), start, seed)
        })
    }

    /// Fits a noisy scan with 10 % short beams, and returns the errors in metres and radians.
    fn errors_after(faces: Vec<Segment>, truth: Pose, start: Pose, seed: u64) -> (f64, f64) {
        let layout = Layout::around_walls(&faces, 0.6, 0.02).unwrap();
        let field = DistanceField::from_walls(layout, &faces, 0.5);
        let walls = Walls::new(faces);
        let mut random = fastrand::Rng::with_seed(seed);
        let points: Vec<Point> = (0..682)
            .filter_map(|index| {
                let angle = (f64::from(index) * 0.352 - 120.0).to_radians();
                let distance_m = walls.cast(truth.at, truth.heading + angle, 5.6)?;
                let sigma_m = 0.01 * distance_m.max(1.0);
                let measured_m = if random.f64() < 0.1 {
                    distance_m * random.f64()
                } else {
                    distance_m + sigma_m * gaussian(&mut random)
                };
                Some(Point::new(measured_m, 0.0).turned(angle))
            })
            .collect();
        let found = refine(&field, start, &points, 0.04).unwrap().pose;
        let error_m = found.at.minus(truth.at).length();
        (error_m, (found.heading - truth.heading).abs())
    }

    #[test]
    fn a_lone_wall_moves_the_pose_only_across_it() {
        let wall = Segment {
            from: Point::new(1.0, -5.0),
            to: Point::new(1.0, 5.0),
        };
        let layout = Layout::around_walls(&[wall], 1.0, 0.02).unwrap();
        let field = DistanceField::from_walls(layout, &[wall], 0.5);
        let points: Vec<Point> = (-50..50)
            .map(|y| Point::new(1.0, f64::from(y) * 0.02))
            .collect();
        let start = Pose::new(0.03, 0.02, 0.01);
        let found = refine(&field, start, &points, 0.05).unwrap();
        assert!(found.pose.at.x.abs() < 1e-3, "{found:?}");
        assert!((found.pose.at.y - 0.02).abs() < 2e-3, "{found:?}");
        assert!(refine(&field, Pose::new(30.0, 0.0, 0.0), &points, 0.05).is_none());
    }
}
