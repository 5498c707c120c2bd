//! Grids of square cells: position and size, and which cells are occupied. PURE.

mod occupancy;

use crate::geometry::{Point, Segment};

pub use self::occupancy::{Cell, Occupancy};

/// The maximum number of cells of a grid: 100 m x 100 m in cells of 20 mm.
pub const MAX_CELLS: usize = 25_000_000;

/// Position and size of a grid of square cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// The lower left corner of the grid.
    pub low: Point,
    /// The side length of a cell in metres.
    pub cell_m: f64,
    /// The number of cells along x.
    pub columns: usize,
    /// The number of cells along y.
    pub rows: usize,
}

/// The reason why a grid cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GridError {
    /// The area is empty or the cell size is not a positive number.
    #[error("a grid needs an area and a positive cell size")]
    Empty,
    /// The area is too large for the cell size.
    #[error("a grid of {0:.0} cells is too large (at most {MAX_CELLS}); use larger cells")]
    TooLarge(f64),
    /// The number of cells does not match the layout.
    #[error("{found} cells do not fill a grid of {expected}")]
    WrongLength {
        /// The number of cells of the layout.
        expected: usize,
        /// The number of cells that were passed.
        found: usize,
    },
}

impl Layout {
    /// A grid that covers the box between two corners and a border around it.
    ///
    /// # Errors
    /// The box or the cell size is unusable.
    pub fn around(low: Point, high: Point, border_m: f64, cell_m: f64) -> Result<Self, GridError> {
        let size = high.minus(low);
        let valid = cell_m > 0.0 && size.x >= 0.0 && size.y >= 0.0 && border_m >= 0.0;
        if !valid || !size.length().is_finite() {
            return Err(GridError::Empty);
        }
        let count = |length_m: f64| ((length_m + 2.0 * border_m) / cell_m).ceil().max(1.0);
        let (columns, rows) = (count(size.x), count(size.y));
        if columns * rows > MAX_CELLS as f64 {
            return Err(GridError::TooLarge(columns * rows));
        }
        Ok(Self {
            low: low.minus(Point::new(border_m, border_m)),
            cell_m,
            columns: columns as usize,
            rows: rows as usize,
        })
    }

    /// A grid that covers walls and a border around them.
    ///
    /// # Errors
    /// There are no walls, or the area is too large for the cell size.
    pub fn around_walls(walls: &[Segment], border_m: f64, cell_m: f64) -> Result<Self, GridError> {
        let first = walls.first().ok_or(GridError::Empty)?.from;
        let ends = walls.iter().flat_map(|wall| [wall.from, wall.to]);
        let (low, high) = ends.fold((first, first), |(low, high), end| {
            (
                Point::new(low.x.min(end.x), low.y.min(end.y)),
                Point::new(high.x.max(end.x), high.y.max(end.y)),
            )
        });
        Self::around(low, high, border_m, cell_m)
    }

    /// The number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.columns * self.rows
    }

    /// The column and row of the cell at a position.
    #[must_use]
    pub fn cell_at(&self, at: Point) -> Option<(usize, usize)> {
        let x = (at.x - self.low.x) / self.cell_m;
        let y = (at.y - self.low.y) / self.cell_m;
        let inside = x >= 0.0 && y >= 0.0 && x < self.columns as f64 && y < self.rows as f64;
        inside.then_some((x as usize, y as usize))
    }

    /// The index of the cell at a position. Cells are stored row by row, from low to high y.
    #[must_use]
    pub fn index_at(&self, at: Point) -> Option<usize> {
        self.cell_at(at)
            .map(|(column, row)| self.index(column, row))
    }

    /// The index of a cell.
    #[must_use]
    pub fn index(&self, column: usize, row: usize) -> usize {
        row * self.columns + column
    }

    /// The centre of a cell.
    #[must_use]
    pub fn centre(&self, column: usize, row: usize) -> Point {
        let half = Point::new(column as f64 + 0.5, row as f64 + 0.5);
        self.low.plus(half.times(self.cell_m))
    }

    /// The upper right corner of the grid.
    #[must_use]
    pub fn high(&self) -> Point {
        let size = Point::new(self.columns as f64, self.rows as f64);
        self.low.plus(size.times(self.cell_m))
    }

    /// The first and last column and row that a box overlaps, cut to the grid.
    #[must_use]
    pub fn range(&self, low: Point, high: Point) -> Option<((usize, usize), (usize, usize))> {
        let axis = |low: f64, high: f64, start: f64, count: usize| {
            let first = ((low - start) / self.cell_m).floor().max(0.0);
            let last = ((high - start) / self.cell_m)
                .floor()
                .min(count as f64 - 1.0);
            (first <= last).then_some((first as usize, last as usize))
        };
        Some((
            axis(low.x, high.x, self.low.x, self.columns)?,
            axis(low.y, high.y, self.low.y, self.rows)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(columns: usize, rows: usize) -> Layout {
        Layout {
            low: Point::new(-1.0, 2.0),
            cell_m: 0.05,
            columns,
            rows,
        }
    }

    #[test]
    fn cells_have_centres_and_positions() {
        let layout = layout(4, 3);
        assert_eq!(layout.cell_at(layout.centre(3, 2)), Some((3, 2)));
        assert_eq!(layout.index_at(layout.centre(3, 2)), Some(11));
        assert_eq!(layout.cell_at(layout.low), Some((0, 0)));
        let beyond = layout.high().plus(Point::new(1e-9, 1e-9));
        assert_eq!(layout.cell_at(beyond), None);
        assert_eq!(layout.cell_at(Point::new(-1.001, 2.1)), None);
    }

    #[test]
    fn unusable_grids_are_errors() {
        let (low, high) = (Point::default(), Point::new(1000.0, 1000.0));
        assert_eq!(
            Layout::around(low, high, 0.0, 0.02),
            Err(GridError::TooLarge(2.5e9))
        );
        assert_eq!(Layout::around(low, high, 0.0, 0.0), Err(GridError::Empty));
        assert_eq!(Layout::around(high, low, 0.0, 1.0), Err(GridError::Empty));
        assert_eq!(Layout::around_walls(&[], 1.0, 1.0), Err(GridError::Empty));
        let error = Occupancy::from_cells(layout(2, 2), vec![Cell::Free; 3]).unwrap_err();
        assert_eq!(error.to_string(), "3 cells do not fill a grid of 4");
    }
}
