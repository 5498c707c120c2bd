//! Surfaces that scans are matched with. PURE.
//!
//! The distance of a point to the surfaces is a weighted mean over all surfaces near it that face
//! the same way: an implicit surface by moving least squares, as Deschaud uses it ("IMLS-SLAM",
//! ICRA 2018). The mean over several scans is more exact than the nearest point of one. The pose is
//! found by point-to-line steps (Censi, "An ICP variant using a point-to-line metric", ICRA 2008)
//! with a robust kernel that narrows.

use amber_map::{Point, Pose};

use super::surface::Surface;
use crate::location::refine::{Matrix, solve};

/// Surfaces count up to this distance.
pub(super) const GATE_M: f64 = 0.15;
/// The width of the weights of the mean.
const WIDTH_M: f64 = 0.05;
/// Surfaces with a larger angle between their normals do not belong together: the cosine.
const MIN_COS: f64 = 0.8;
/// The kernel starts this wide, and narrows by this factor to this.
const FIRST_KERNEL_M: f64 = 0.1;
const NARROWING: f64 = 0.7;
const KERNEL_M: f64 = 0.02;
/// Steps of one alignment at most.
const MAX_STEPS: usize = 20;
/// Smaller steps end it.
const SMALL_STEP_M: f64 = 1e-5;
const SMALL_STEP_RAD: f64 = 1e-5;
/// Larger ones are cut.
const MAX_STEP_M: f64 = 0.1;
const MAX_STEP_RAD: f64 = 0.1;
/// Neighbouring surfaces share beams, so each counts as this part of a measurement.
const INDEPENDENT: f64 = 0.2;
/// Keeps the matrix regular if the surfaces say nothing about a direction, in 1/m² and 1/rad².
const REGULAR: f64 = 1.0;
/// A surface matches within this distance.
const MATCHED_M: f64 = 0.05;
/// Larger maps get larger cells.
const MAX_CELLS: f64 = 1e6;

/// Surfaces, sorted by place.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    low: Point,
    cell_m: f64,
    columns: usize,
    rows: usize,
    /// The start of each cell in `surfaces`.
    starts: Vec<u32>,
    surfaces: Vec<Surface>,
}

/// A scan at its place among the surfaces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aligned {
    pub pose: Pose,
    /// The information of the surfaces about x, y and heading: 1/m², 1/(m·rad), 1/rad².
    pub information: Matrix,
    /// The part of the scan that lies on the surfaces, 0 to 1.
    pub overlap: f64,
    /// The root of the mean square of the distances of this part.
    pub rms_m: f64,
}

/// Prior knowledge about a pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// The expected pose.
    pub pose: Pose,
    /// The standard deviation of its position.
    pub sigma_m: f64,
    /// The standard deviation of its heading.
    pub sigma_rad: f64,
}

impl Reference {
    /// Sorts the surfaces.
    #[must_use]
    pub fn new(surfaces: &[Surface]) -> Self {
        let (low, high) = bounds(surfaces.iter().map(|surface| surface.at));
        let size = high.minus(low);
        let cell_m = GATE_M.max((size.x * size.y / MAX_CELLS).sqrt());
        let count = |length_m: f64| (length_m / cell_m).floor() as usize + 1;
        let (columns, rows) = (count(size.x), count(size.y));
        let mut new = Self {
            low,
            cell_m,
            columns,
            rows,
            starts: vec![0; columns * rows + 1],
            surfaces: surfaces.to_vec(),
        };
        let cells: Vec<usize> = surfaces
            .iter()
            .map(|surface| new.cell_of(surface.at))
            .collect();
        for cell in &cells {
            new.starts[cell + 1] += 1;
        }
        for cell in 0..columns * rows {
            new.starts[cell + 1] += new.starts[cell];
        }
        let mut next = new.starts.clone();
        for (surface, cell) in surfaces.iter().zip(cells) {
            new.surfaces[next[cell] as usize] = *surface;
            next[cell] += 1;
        }
        new
    }

    /// All surfaces.
    #[must_use]
    pub fn surfaces(&self) -> &[Surface] {
        &self.surfaces
    }

    /// The signed distance of a point from the surfaces that face the same way, and their normal.
    #[must_use]
    pub fn distance(&self, at: Point, normal: Point) -> Option<(f64, Point)> {
        let (mut weight, mut distance, mut mean) = (0.0, 0.0, Point::default());
        let x = (at.x - self.low.x) / self.cell_m;
        let y = (at.y - self.low.y) / self.cell_m;
        let axis = |place: f64, count: usize| {
            let first = (place.floor() - 1.0).max(0.0);
            let last = (place.floor() + 1.0).min(count as f64 - 1.0);
            (first <= last).then_some((first as usize, last as usize))
        };
        let (columns, rows) = (axis(x, self.columns)?, axis(y, self.rows)?);
        for row in rows.0..=rows.1 {
            let first = self.starts[row * self.columns + columns.0] as usize;
            let last = self.starts[row * self.columns + columns.1 + 1] as usize;
            for surface in &self.surfaces[first..last] {
                let way = at.minus(surface.at);
                let square = way.dot(way);
                if square > GATE_M * GATE_M || surface.normal.dot(normal) < MIN_COS {
                    continue;
                }
                let part = surface.weight * (-square / (WIDTH_M * WIDTH_M)).exp();
                weight += part;
                distance += part * surface.normal.dot(way);
                mean = mean.plus(surface.normal.times(part));
            }
        }
        let length = mean.length();
        (weight > 0.0 && length > 0.0).then(|| (distance / weight, mean.times(1.0 / length)))
    }

    /// Moves a scan onto the surfaces. `None` if nothing of it is near them.
    #[must_use]
    pub fn align(&self, scan: &[Surface], start: Pose, prior: Option<Prior>) -> Option<Aligned> {
        let mut pose = start;
        let mut kernel_m = FIRST_KERNEL_M;
        for _ in 0..MAX_STEPS {
            let mut step = Step::new(self, scan, pose, kernel_m);
            if let Some(prior) = prior {
                step.add_prior(&prior, pose);
            }
            let way = step.solve()?;
            let (size_m, turn) = (way[0].hypot(way[1]), way[2]);
            let cut = (MAX_STEP_M / size_m.max(MAX_STEP_M))
                .min(MAX_STEP_RAD / turn.abs().max(MAX_STEP_RAD));
            pose.at = pose.at.plus(Point::new(way[0], way[1]).times(cut));
            pose.heading += turn * cut;
            if kernel_m <= KERNEL_M && size_m < SMALL_STEP_M && turn.abs() < SMALL_STEP_RAD {
                break;
            }
            kernel_m = (kernel_m * NARROWING).max(KERNEL_M);
        }
        let last = Step::new(self, scan, pose, KERNEL_M);
        (last.matched > 0.0).then(|| Aligned {
            pose,
            information: last.matrix,
            overlap: last.matched / last.all.max(f64::MIN_POSITIVE),
            rms_m: (last.squares / last.matched).sqrt(),
        })
    }

    fn cell_of(&self, at: Point) -> usize {
        let index = |offset_m: f64, count: usize| {
            ((offset_m / self.cell_m).floor().max(0.0) as usize).min(count - 1)
        };
        let offset = at.minus(self.low);
        index(offset.y, self.rows) * self.columns + index(offset.x, self.columns)
    }
}

/// The lower left and the upper right corner around points; the origin if there are none.
pub(super) fn bounds(points: impl Iterator<Item = Point>) -> (Point, Point) {
    let corners = points.fold(None, |corners: Option<(Point, Point)>, point| {
        let (low, high) = corners.unwrap_or((point, point));
        Some((
            Point::new(low.x.min(point.x), low.y.min(point.y)),
            Point::new(high.x.max(point.x), high.y.max(point.y)),
        ))
    });
    corners.unwrap_or_default()
}

/// The normal equations of one step.
struct Step {
    matrix: Matrix,
    pull: [f64; 3],
    all: f64,
    matched: f64,
    squares: f64,
}

impl Step {
    fn new(reference: &Reference, scan: &[Surface], pose: Pose, kernel_m: f64) -> Self {
        let mut new = Self {
            matrix: [[0.0; 3]; 3],
            pull: [0.0; 3],
            all: 0.0,
            matched: 0.0,
            squares: 0.0,
        };
        for surface in scan {
            // Neither long walls far away nor very exact pieces shall count for all.
            let moved = surface.moved(pose);
            new.all += 1.0;
            let Some((distance_m, normal)) = reference.distance(moved.at, moved.normal) else {
                continue;
            };
            if distance_m.abs() < MATCHED_M {
                new.matched += 1.0;
                new.squares += distance_m * distance_m;
            }
            let robust = (1.0 + (distance_m / kernel_m).powi(2)).powi(-2);
            let weight = INDEPENDENT * robust * surface.weight;
            let arm = moved.at.minus(pose.at);
            let slope = [normal.x, normal.y, arm.x * normal.y - arm.y * normal.x];
            for row in 0..3 {
                for column in 0..3 {
                    new.matrix[row][column] += weight * slope[row] * slope[column];
                }
                new.pull[row] += weight * slope[row] * distance_m;
            }
        }
        new
    }

    fn add_prior(&mut self, prior: &Prior, pose: Pose) {
        let off = pose.at.minus(prior.pose.at);
        let turn = pose.heading - prior.pose.heading;
        let (place, heading) = (prior.sigma_m.powi(-2), prior.sigma_rad.powi(-2));
        let terms = [(off.x, place), (off.y, place), (turn, heading)];
        for (index, (error, weight)) in terms.into_iter().enumerate() {
            self.matrix[index][index] += weight;
            self.pull[index] += weight * error;
        }
    }

    fn solve(&self) -> Option<[f64; 3]> {
        let mut matrix = self.matrix;
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] += REGULAR;
        }
        solve(&matrix, &self.pull).map(|way| way.map(|step| -step))
    }
}
