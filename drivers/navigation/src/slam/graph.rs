//! Poses and measured motions between them: the pose graph. PURE.
//!
//! The poses with the smallest squares of all errors are found by Gauss-Newton steps with the
//! damping of Levenberg and Marquardt: Lu and Milios, "Globally consistent range scan alignment for
//! environment mapping", Autonomous Robots 4 (1997); Grisetti, Kümmerle, Stachniss and Burgard, "A
//! tutorial on graph-based SLAM", IEEE Intelligent Transportation Systems Magazine 2 (2010).
//!
//! A false loop must not bend the map. Each loop is scaled by how badly it fits: dynamic covariance
//! scaling (Agarwal et al., "Robust map optimization using dynamic covariance scaling", ICRA 2013),
//! a closed form of the switches of Sünderhauf and Protzel ("Switchable constraints for robust pose
//! graph SLAM", IROS 2012). After a long way, a true loop is far off as well, so the kernel starts
//! wide enough for all of them and narrows: graduated non-convexity (Yang, Antonante, Tzoumas and
//! Carlone, "Graduated non-convexity for robust spatial perception", IEEE RA-L 5, 2020).

use amber_map::{Pose, wrap};

use super::solver::{BlockMatrix, Vector, product, times, transposed};
use crate::location::refine::Matrix;

/// A loop whose error is below this counts fully: three degrees of freedom, 95 %.
const FREE_ERROR: f64 = 7.8;
/// A loop that is scaled down to less than this is false.
const FALSE_SCALE: f64 = 0.2;
/// A wider kernel narrows by this factor.
const NARROWING: f64 = 0.1;
/// Steps with one width of the kernel at most.
const MAX_STEPS: usize = 20;
/// They end when no pose moves by more.
const SMALL_STEP: f64 = 1e-6;
const FIRST_DAMPING: f64 = 1e-6;
const MAX_DAMPING: f64 = 1e6;

/// A measured motion from one pose to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The index of the first pose.
    pub from: usize,
    /// The index of the second pose.
    pub to: usize,
    /// The second pose in the frame of the first.
    pub motion: Pose,
    /// The inverse of the covariance of the motion.
    pub information: Matrix,
    /// Whether it closes a loop, and may be false.
    pub is_loop: bool,
}

/// The result of an optimization.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Optimized {
    /// The weighted sum of squares before.
    pub error_before: f64,
    /// The weighted sum of squares after.
    pub error_after: f64,
    /// Loops that do not fit the others, and count little or nothing.
    pub false_loops: usize,
    /// The number of steps.
    pub steps: usize,
}

impl Edge {
    /// The difference between the poses and the measurement.
    fn error(&self, poses: &[Pose]) -> Vector {
        let is = poses[self.from].local_pose(poses[self.to]);
        [
            is.at.x - self.motion.at.x,
            is.at.y - self.motion.at.y,
            wrap(is.heading - self.motion.heading),
        ]
    }

    /// The weighted square of the error.
    fn square(&self, poses: &[Pose]) -> f64 {
        let error = self.error(poses);
        let weighted = times(&self.information, error);
        error.iter().zip(weighted).map(|(a, b)| a * b).sum()
    }

    /// The part with which the edge counts in a kernel of this width.
    fn scale(&self, square: f64, width: f64) -> f64 {
        if self.is_loop {
            (2.0 * width / (width + square)).min(1.0)
        } else {
            1.0
        }
    }

    /// Whether the poses say that this loop is none.
    #[must_use]
    pub fn is_false(&self, poses: &[Pose]) -> bool {
        self.scale(self.square(poses), FREE_ERROR) < FALSE_SCALE
    }
}

/// Moves all poses but the first so that they fit the edges best.
pub fn optimize(poses: &mut Vec<Pose>, edges: &[Edge]) -> Optimized {
    let loops = edges.iter().filter(|edge| edge.is_loop);
    let largest = loops.map(|edge| edge.square(poses)).fold(0.0, f64::max);
    let mut width = largest.max(FREE_ERROR);
    let mut report = Optimized {
        error_before: error_of(poses, edges, FREE_ERROR),
        ..Optimized::default()
    };
    loop {
        report.steps += descend(poses, edges, width);
        if width <= FREE_ERROR {
            break;
        }
        width = (width * NARROWING).max(FREE_ERROR);
    }
    report.error_after = error_of(poses, edges, FREE_ERROR);
    report.false_loops = edges.iter().filter(|edge| edge.is_false(poses)).count();
    report
}

/// Steps with one width of the kernel; returns their number.
fn descend(poses: &mut Vec<Pose>, edges: &[Edge], width: f64) -> usize {
    let mut error = error_of(poses, edges, width);
    let mut damping = FIRST_DAMPING;
    let mut steps = 0;
    while steps < MAX_STEPS && damping < MAX_DAMPING && poses.len() > 1 {
        steps += 1;
        let Some(step) = step(poses, edges, width, damping) else {
            damping *= 10.0;
            continue;
        };
        let moved = moved(poses, &step);
        let next = error_of(&moved, edges, width);
        if next > error * (1.0 + 1e-12) {
            damping *= 10.0;
            continue;
        }
        *poses = moved;
        error = next;
        damping = (damping * 0.1).max(1e-12);
        let ways = step.iter().flatten();
        if ways.fold(0.0, |max: f64, way| max.max(way.abs())) < SMALL_STEP {
            break;
        }
    }
    steps
}

/// The sum that the steps make small. The kernel of a loop is the one whose weights are the squared
/// scales.
fn error_of(poses: &[Pose], edges: &[Edge], width: f64) -> f64 {
    let one = |edge: &Edge| {
        let square = edge.square(poses);
        let scale = edge.scale(square, width);
        // The switch itself costs, so a false loop is cheaper than a bent map but not free.
        scale * scale * square + width * (1.0 - scale).powi(2)
    };
    edges.iter().map(one).sum()
}

fn step(poses: &[Pose], edges: &[Edge], width: f64, damping: f64) -> Option<Vec<Vector>> {
    let mut matrix = BlockMatrix::new(poses.len() - 1);
    let mut right = vec![[0.0; 3]; poses.len() - 1];
    for edge in edges {
        let square = edge.square(poses);
        let weight = edge.scale(square, width).powi(2);
        let information = edge.information.map(|row| row.map(|value| value * weight));
        let error = edge.error(poses);
        let ends = slopes(poses, edge);
        for (index, slope) in &ends {
            // The first pose is fixed.
            let Some(row) = index.checked_sub(1) else {
                continue;
            };
            let weighted = product(&transposed(slope), &information);
            let pull = times(&weighted, error);
            (0..3).for_each(|axis| right[row][axis] -= pull[axis]);
            for (other, other_slope) in &ends {
                if let Some(column) = other.checked_sub(1).filter(|column| *column <= row) {
                    matrix.add(row, column, &product(&weighted, other_slope));
                }
            }
        }
    }
    matrix.damp(damping);
    matrix.solve(&right)
}

/// How the error of an edge changes with both poses.
fn slopes(poses: &[Pose], edge: &Edge) -> [(usize, Matrix); 2] {
    let from = poses[edge.from];
    let (sin, cos) = from.heading.sin_cos();
    let local = from.local(poses[edge.to].at);
    let of_from = [
        [-cos, -sin, local.y],
        [sin, -cos, -local.x],
        [0.0, 0.0, -1.0],
    ];
    let of_to = [[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]];
    [(edge.from, of_from), (edge.to, of_to)]
}

fn moved(poses: &[Pose], step: &[Vector]) -> Vec<Pose> {
    let mut moved = poses.to_vec();
    for (pose, way) in moved.iter_mut().skip(1).zip(step) {
        pose.at.x += way[0];
        pose.at.y += way[1];
        pose.heading += way[2];
    }
    moved
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    const INFORMATION: Matrix = [[1e4, 0.0, 0.0], [0.0, 1e4, 0.0], [0.0, 0.0, 1e4]];

    fn edge(from: usize, to: usize, motion: Pose, is_loop: bool) -> Edge {
        Edge {
            from,
            to,
            motion,
            information: INFORMATION,
            is_loop,
        }
    }

    /// A square of 10 m with a pose per metre, and the motions between them.
    fn square() -> (Vec<Pose>, Vec<Edge>) {
        let mut truth = vec![Pose::default()];
        for index in 1..=40 {
            let turn = if index % 10 == 0 { FRAC_PI_2 } else { 0.0 };
            truth.push(truth[index - 1].global_pose(Pose::new(1.0, 0.0, turn)));
        }
        let edges = (0..40)
            .map(|index| {
                edge(
                    index,
                    index + 1,
                    truth[index].local_pose(truth[index + 1]),
                    false,
                )
            })
            .collect();
        (truth, edges)
    }

    /// Poses that drift: each motion turns a little too far and is too long.
    fn drifted(edges: &[Edge]) -> Vec<Pose> {
        let mut poses = vec![Pose::default()];
        for edge in edges {
            let wrong = Pose::new(
                edge.motion.at.x * 1.02,
                edge.motion.at.y + 0.005,
                edge.motion.heading + 0.01,
            );
            poses.push(poses[edge.from].global_pose(wrong));
        }
        poses
    }

    fn largest_error_m(poses: &[Pose], truth: &[Pose]) -> f64 {
        let errors = poses
            .iter()
            .zip(truth)
            .map(|(pose, truth)| pose.at.minus(truth.at).length());
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn exact_motions_close_a_square_exactly() {
        let (truth, mut edges) = square();
        edges.push(edge(0, 40, truth[0].local_pose(truth[40]), true));
        let mut poses = drifted(&edges[..40]);
        assert!(largest_error_m(&poses, &truth) > 1.0);
        let report = optimize(&mut poses, &edges);
        assert!(largest_error_m(&poses, &truth) < 1e-6, "{report:?}");
        assert_eq!(report.false_loops, 0);
    }

    #[test]
    fn true_loops_correct_a_drift_of_a_metre() {
        let (truth, edges) = square();
        let start = drifted(&edges);
        let mut wrong: Vec<Edge> = (0..40)
            .map(|index| {
                edge(
                    index,
                    index + 1,
                    start[index].local_pose(start[index + 1]),
                    false,
                )
            })
            .collect();
        let loops = [10, 20, 30, 40].map(|to| edge(0, to, truth[0].local_pose(truth[to]), true));
        wrong.extend(loops);
        let mut poses = start.clone();
        let report = optimize(&mut poses, &wrong);
        assert_eq!(report.false_loops, 0, "{report:?}");
        let (before_m, after_m) = (
            largest_error_m(&start, &truth),
            largest_error_m(&poses, &truth),
        );
        assert!(after_m < 0.1 * before_m, "{before_m} {after_m}");
    }

    #[test]
    fn a_false_loop_is_rejected() {
        let (truth, mut edges) = square();
        edges.push(edge(0, 40, truth[0].local_pose(truth[40]), true));
        edges.push(edge(3, 37, Pose::new(0.2, 0.1, 0.3), true));
        let mut poses = truth.clone();
        for (index, pose) in poses.iter_mut().enumerate() {
            pose.at.x += 1e-3 * index as f64;
        }
        let report = optimize(&mut poses, &edges);
        assert_eq!(report.false_loops, 1);
        assert!(edges[41].is_false(&poses) && !edges[40].is_false(&poses));
        assert!(largest_error_m(&poses, &truth) < 0.01, "{report:?}");
    }
}
