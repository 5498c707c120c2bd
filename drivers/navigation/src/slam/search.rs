//! The pose of a scan among surfaces, without a good guess. PURE.
//!
//! Correlative matching: Olson, "Real-time correlative scan matching", ICRA 2009. All poses in a
//! window are rated by a table. A coarse table whose cells have the maximum of the fine ones gives
//! an upper bound for many poses at once, so most need no second look, and the best is still found.
//!
//! There is one table for each of some directions of the normals: the far side of a wall is no
//! match.

use std::f64::consts::TAU;

use amber_map::{Point, Pose};

use super::reference::{Reference, bounds};
use super::surface::Surface;

/// The size of a cell, and how many cells a coarse one has along each side.
const CELL_M: f64 = 0.03;
const COARSE: usize = 4;
/// Surfaces blur by this.
const SIGMA_M: f64 = 0.04;
const BLUR_CELLS: i64 = 3;
/// The sectors of directions. A surface also belongs to the next sectors.
const SECTORS: usize = 8;
/// The steps of the heading.
const STEP_RAD: f64 = 0.02;
/// The number of surfaces of the scan that are looked at.
const MAX_SURFACES: usize = 100;
/// What is farther away along x or y is not looked at: a step of the heading moves it by more than a wall is
/// wide, and the tables would become large.
const REACH_M: f64 = 9.5;
/// Poses that are this far apart are two answers.
const APART_M: f64 = 0.25;
const APART_RAD: f64 = 0.25;

/// The area to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The middle.
    pub pose: Pose,
    /// The largest distance along x and y.
    pub reach_m: f64,
    /// The largest turn.
    pub reach_rad: f64,
}

/// The best pose in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub pose: Pose,
    /// How well it fits, 0 to 1.
    pub score: f64,
    /// How well the best quite different pose can fit at most.
    pub second: f64,
}

/// Tables for a part of a reference.
#[derive(Clone, Debug)]
pub struct Tables {
    low: Point,
    columns: usize,
    rows: usize,
    coarse_columns: usize,
    coarse_rows: usize,
    fine: Vec<u8>,
    coarse: Vec<u8>,
}

impl Tables {
    /// Computes the tables for the surroundings of a place.
    #[must_use]
    pub fn new(reference: &Reference, place: Point) -> Self {
        let near: Vec<&Surface> = (reference.surfaces().iter())
            .filter(|surface| is_near(surface.at.minus(place)))
            .collect();
        let (low, high) = bounds(near.iter().map(|surface| surface.at));
        let border_m = (BLUR_CELLS + 1) as f64 * CELL_M;
        let border = Point::new(border_m, border_m);
        let (low, high) = (low.minus(border), high.plus(border));
        let count = |length_m: f64| (length_m / CELL_M / COARSE as f64).ceil() as usize;
        let (coarse_columns, coarse_rows) = (count(high.x - low.x), count(high.y - low.y));
        let (columns, rows) = (coarse_columns * COARSE, coarse_rows * COARSE);
        let mut new = Self {
            low,
            columns,
            rows,
            coarse_columns,
            coarse_rows,
            fine: vec![0; columns * rows * SECTORS],
            coarse: vec![0; coarse_columns * coarse_rows * SECTORS],
        };
        for surface in near {
            new.draw(surface);
        }
        new.reduce();
        new
    }

    fn draw(&mut self, surface: &Surface) {
        let offset = surface.at.minus(self.low).times(1.0 / CELL_M);
        let sector = sector_of(surface.normal);
        for y in -BLUR_CELLS..=BLUR_CELLS {
            for x in -BLUR_CELLS..=BLUR_CELLS {
                // The border keeps all cells inside.
                let column = (offset.x as i64 + x) as usize;
                let row = (offset.y as i64 + y) as usize;
                let centre = Point::new(column as f64 + 0.5, row as f64 + 0.5);
                let distance_m = centre.minus(offset).length() * CELL_M;
                let value = 255.0 * (-(distance_m / SIGMA_M).powi(2) / 2.0).exp();
                for near in [SECTORS - 1, 0, 1] {
                    let table = (sector + near) % SECTORS;
                    let cell = &mut self.fine[(table * self.rows + row) * self.columns + column];
                    *cell = (*cell).max(value as u8);
                }
            }
        }
    }

    /// Fills the coarse table. Its cell is the maximum over a block and the next ones above and to
    /// the right: a move by less than a block stays within.
    fn reduce(&mut self) {
        for table in 0..SECTORS {
            for row in 0..self.rows {
                for column in 0..self.columns {
                    let value = self.fine[(table * self.rows + row) * self.columns + column];
                    if value == 0 {
                        continue;
                    }
                    let (x, y) = (column / COARSE, row / COARSE);
                    for (x, y) in [
                        (Some(x), Some(y)),
                        (x.checked_sub(1), Some(y)),
                        (Some(x), y.checked_sub(1)),
                        (x.checked_sub(1), y.checked_sub(1)),
                    ] {
                        if let (Some(x), Some(y)) = (x, y) {
                            let index = (table * self.coarse_rows + y) * self.coarse_columns + x;
                            self.coarse[index] = self.coarse[index].max(value);
                        }
                    }
                }
            }
        }
    }

    /// The best pose in a window. `None` if the scan sees nothing near.
    #[must_use]
    pub fn search(&self, scan: &[Surface], window: &Window) -> Option<Found> {
        let near = || scan.iter().filter(|surface| is_near(surface.at));
        let step = near().count().div_ceil(MAX_SURFACES).max(1);
        let some: Vec<&Surface> = near().step_by(step).collect();
        if some.is_empty() {
            return None;
        }
        let block_m = CELL_M * COARSE as f64;
        let blocks = (2.0 * window.reach_m / block_m).ceil().max(1.0) as usize;
        let turns = (window.reach_rad / STEP_RAD).ceil() as i64;
        let corner = window
            .pose
            .at
            .minus(Point::new(1.0, 1.0).times(blocks as f64 * block_m / 2.0));
        let mut candidates: Vec<(u32, i64, usize, usize)> = Vec::new();
        let turned: Vec<Vec<(usize, Point)>> = (-turns..=turns)
            .map(|turn| turned(&some, window.pose.heading + turn as f64 * STEP_RAD))
            .collect();
        for (turn, points) in (-turns..=turns).zip(&turned) {
            for y in 0..blocks {
                for x in 0..blocks {
                    let at = corner.plus(Point::new(x as f64, y as f64).times(block_m));
                    candidates.push((self.bound(points, at), turn, y, x));
                }
            }
        }
        // The best bounds first; on a tie, the smallest turn.
        candidates.sort_by_key(|(bound, turn, y, x)| {
            (std::cmp::Reverse(*bound), turn.abs(), *turn, *y, *x)
        });
        let mut best: Option<(u32, Pose)> = None;
        let mut second = 0;
        for (bound, turn, y, x) in &candidates {
            let points = &turned[(turn + turns) as usize];
            let heading = window.pose.heading + *turn as f64 * STEP_RAD;
            let block = corner.plus(Point::new(*x as f64, *y as f64).times(block_m));
            let middle = block.plus(Point::new(0.5, 0.5).times(block_m));
            if let Some((score, pose)) = best {
                let apart = pose.at.minus(middle).length() > APART_M
                    || (pose.heading - heading).abs() > APART_RAD;
                if *bound <= score && !apart {
                    continue;
                }
                if *bound <= second.min(score) {
                    break;
                }
            }
            for step in 0..COARSE * COARSE {
                let cell = Point::new((step % COARSE) as f64, (step / COARSE) as f64);
                let at = block.plus(cell.times(CELL_M));
                let score = self.rate(points, at);
                let pose = Pose { at, heading };
                match best {
                    Some((other, kept)) if score <= other => {
                        if is_apart(kept, pose) {
                            second = second.max(score);
                        }
                    }
                    _ => {
                        if let Some((other, kept)) = best
                            && is_apart(kept, pose)
                        {
                            second = second.max(other);
                        }
                        best = Some((score, pose));
                    }
                }
            }
        }
        let full = 255.0 * some.len() as f64;
        best.map(|(score, pose)| Found {
            pose,
            score: f64::from(score) / full,
            second: f64::from(second) / full,
        })
    }

    fn rate(&self, points: &[(usize, Point)], at: Point) -> u32 {
        let (x0, y0) = ((at.x - self.low.x) / CELL_M, (at.y - self.low.y) / CELL_M);
        let mut sum = 0;
        for (sector, point) in points {
            let (x, y) = (x0 + point.x / CELL_M, y0 + point.y / CELL_M);
            if x >= 0.0 && y >= 0.0 && x < self.columns as f64 && y < self.rows as f64 {
                let row = sector * self.rows + y as usize;
                sum += u32::from(self.fine[row * self.columns + x as usize]);
            }
        }
        sum
    }

    fn bound(&self, points: &[(usize, Point)], at: Point) -> u32 {
        let block_m = CELL_M * COARSE as f64;
        let (x0, y0) = ((at.x - self.low.x) / block_m, (at.y - self.low.y) / block_m);
        let mut sum = 0;
        for (sector, point) in points {
            let (x, y) = (
                (x0 + point.x / block_m).floor(),
                (y0 + point.y / block_m).floor(),
            );
            // A point just before the first block may move into it.
            let (x, y) = (x.max(-1.0), y.max(-1.0));
            if x < self.coarse_columns as f64 && y < self.coarse_rows as f64 {
                let (x, y) = (x.max(0.0) as usize, y.max(0.0) as usize);
                let row = sector * self.coarse_rows + y;
                sum += u32::from(self.coarse[row * self.coarse_columns + x]);
            }
        }
        sum
    }
}

fn is_near(way: Point) -> bool {
    way.x.abs().max(way.y.abs()) <= REACH_M
}

fn is_apart(a: Pose, b: Pose) -> bool {
    a.at.minus(b.at).length() > APART_M || (a.heading - b.heading).abs() > APART_RAD
}

fn turned(scan: &[&Surface], heading: f64) -> Vec<(usize, Point)> {
    let turn = |surface: &&Surface| {
        (
            sector_of(surface.normal.turned(heading)),
            surface.at.turned(heading),
        )
    };
    scan.iter().map(turn).collect()
}

fn sector_of(normal: Point) -> usize {
    let part = normal.y.atan2(normal.x).rem_euclid(TAU) / TAU;
    (part * SECTORS as f64) as usize % SECTORS
}
