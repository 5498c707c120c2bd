//! An occupancy grid from beams. PURE.
//!
//! Each cell has the logarithm of its odds: Moravec and Elfes, "High resolution maps from wide angle
//! sonar", ICRA 1985; Probabilistic Robotics (Thrun, Burgard, Fox, 2005), chapter 9. A beam makes its
//! end more occupied and the cells before it more free. The last part of a beam is not used: with
//! the errors of its length, it may lie behind the surface.

use amber_map::{Point, Pose, tiles};

use super::Key;
use super::reference::bounds;
use crate::grid::{Cell, GridError, Layout, Occupancy};

/// How much the end of a beam adds, and a beam through a cell subtracts, in hundredths.
const HIT: i16 = 90;
const THROUGH: i16 = -40;
/// The odds stay within these, so that a change shows after some scans.
const MOST: i16 = 1000;
const LEAST: i16 = -500;
/// A cell with larger odds is occupied, with smaller ones free.
const OCCUPIED: i16 = 100;
const FREE: i16 = -50;
/// Longer beams have larger errors than walls have cells: they only clear.
const MAX_HIT_M: f64 = 4.0;
/// A beam clears cells up to this distance before its end, plus so much per metre.
const MARGIN_M: f64 = 0.03;
const MARGIN_PER_M: f64 = 0.02;
/// The grid reaches this far around everything that was seen.
const BORDER_M: f64 = 0.3;

/// The surfaces and the free space.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    layout: Layout,
    odds: Vec<i16>,
}

impl Chart {
    /// Draws all beams of the key scans.
    ///
    /// # Errors
    /// There is no key scan, or the area is too large for the cells.
    pub fn new(
        keys: &[Key],
        poses: &[Pose],
        scanner: Point,
        cell_m: f64,
    ) -> Result<Self, GridError> {
        if keys.is_empty() {
            return Err(GridError::Empty);
        }
        let ends = keys.iter().zip(poses).flat_map(|(key, pose)| {
            let ends = key.ends.iter().map(|end| pose.global(*end));
            ends.chain([pose.at])
        });
        let (low, high) = bounds(ends);
        // The cells of the next chart are at the same places, also if it is larger.
        let layout = tiles::aligned(&Layout::around(low, high, BORDER_M, cell_m)?)?;
        let mut new = Self {
            odds: vec![0; layout.cells()],
            layout,
        };
        for (key, pose) in keys.iter().zip(poses) {
            let origin = pose.global(scanner);
            for end in key.ends.iter() {
                new.draw(origin, pose.global(*end));
            }
        }
        Ok(new)
    }

    /// The layout of the grid.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The kind of a cell.
    #[must_use]
    pub fn cell(&self, column: usize, row: usize) -> Cell {
        match self.odds[self.layout.index(column, row)] {
            odds if odds >= OCCUPIED => Cell::Occupied,
            odds if odds <= FREE => Cell::Free,
            _ => Cell::Unknown,
        }
    }

    /// Whether a surface was seen at a position more often than a beam went through.
    #[must_use]
    pub fn is_occupied(&self, at: Point) -> bool {
        self.layout
            .cell_at(at)
            .is_some_and(|(column, row)| self.cell(column, row) == Cell::Occupied)
    }

    /// The grid for everything else.
    ///
    /// # Errors
    /// Never: the number of cells is that of the layout.
    pub fn occupancy(&self) -> Result<Occupancy, GridError> {
        let cells = (0..self.layout.rows)
            .flat_map(|row| (0..self.layout.columns).map(move |column| (column, row)))
            .map(|(column, row)| self.cell(column, row));
        Occupancy::from_cells(self.layout, cells.collect())
    }

    fn draw(&mut self, from: Point, to: Point) {
        let way = to.minus(from);
        let length_m = way.length();
        if length_m <= MAX_HIT_M
            && let Some(index) = self.layout.index_at(to)
        {
            self.add(index, HIT);
        }
        let clear_m = length_m - MARGIN_M - MARGIN_PER_M * length_m;
        if clear_m > 0.0 {
            self.clear(from, from.plus(way.times(clear_m / length_m)));
        }
    }

    /// All cells on a line become more free (Amanatides and Woo, "A fast voxel traversal algorithm
    /// for ray tracing", Eurographics 1987).
    fn clear(&mut self, from: Point, to: Point) {
        let scale = 1.0 / self.layout.cell_m;
        let start = from.minus(self.layout.low).times(scale);
        let way = to.minus(from).times(scale);
        let (mut x, mut y) = (start.x.floor() as i64, start.y.floor() as i64);
        let axis = |at: f64, way: f64| {
            let next = if way > 0.0 {
                at.floor() + 1.0 - at
            } else {
                at - at.floor()
            };
            let per_cell = if way == 0.0 {
                f64::INFINITY
            } else {
                1.0 / way.abs()
            };
            let first = if way == 0.0 {
                f64::INFINITY
            } else {
                next * per_cell
            };
            (first, per_cell, if way > 0.0 { 1 } else { -1 })
        };
        let (mut next_x, per_x, step_x) = axis(start.x, way.x);
        let (mut next_y, per_y, step_y) = axis(start.y, way.y);
        loop {
            let inside =
                0 <= x && x < self.layout.columns as i64 && 0 <= y && y < self.layout.rows as i64;
            if inside {
                self.add(self.layout.index(x as usize, y as usize), THROUGH);
            }
            if next_x.min(next_y) > 1.0 {
                return;
            }
            if next_x <= next_y {
                next_x += per_x;
                x += step_x;
            } else {
                next_y += per_y;
                y += step_y;
            }
        }
    }

    fn add(&mut self, index: usize, odds: i16) {
        let cell = &mut self.odds[index];
        *cell = (*cell + odds).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Scans of a wall 2 m ahead, between 1 m to the right and 1 m to the left.
    fn keys(count: usize) -> (Vec<Key>, Vec<Pose>) {
        let ends: Vec<Point> = (-100..=100)
            .map(|y| Point::new(2.01, f64::from(y) * 0.01))
            .collect();
        let key = Key {
            time: Duration::ZERO,
            surfaces: Vec::new().into(),
            ends: ends.into(),
        };
        (vec![key; count], vec![Pose::default(); count])
    }

    #[test]
    fn a_wall_is_occupied_the_way_to_it_free_and_the_rest_unknown() {
        let (keys, poses) = keys(3);
        let chart = Chart::new(&keys, &poses, Point::new(0.1, 0.0), 0.05).unwrap();
        let occupancy = chart.occupancy().unwrap();
        for (x, y, cell) in [
            (2.01, 0.0, Cell::Occupied),
            (2.01, -0.8, Cell::Occupied),
            (1.0, 0.2, Cell::Free),
            (1.8, 0.0, Cell::Free),
            (2.2, 0.0, Cell::Unknown),
            (0.0, 0.9, Cell::Unknown),
        ] {
            let (column, row) = chart.layout().cell_at(Point::new(x, y)).unwrap();
            assert_eq!(occupancy.cell(column, row), cell, "{x} {y}");
        }
        assert!(chart.is_occupied(Point::new(2.01, 0.0)));
        assert!(!chart.is_occupied(Point::new(99.0, 0.0)));
    }

    #[test]
    fn a_chart_without_scans_or_with_tiny_cells_is_an_error() {
        assert_eq!(
            Chart::new(&[], &[], Point::default(), 0.05),
            Err(GridError::Empty)
        );
        let (keys, poses) = keys(1);
        let tiny = Chart::new(&keys, &poses, Point::default(), 1e-6);
        assert!(matches!(tiny, Err(GridError::TooLarge(_))));
    }
}
