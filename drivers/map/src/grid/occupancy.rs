//! The occupied cells of a grid. PURE.

use super::{GridError, Layout};
use crate::geometry::{Point, Segment};

/// The content of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cell {
    /// Not observed.
    #[default]
    Unknown,
    /// Passable.
    Free,
    /// A wall or another obstacle.
    Occupied,
}

/// An occupancy grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    layout: Layout,
    cells: Vec<Cell>,
}

impl Occupancy {
    /// The occupancy of an image. Its cells are ordered row by row, from low to high y.
    ///
    /// # Errors
    /// The number of cells does not match the layout.
    pub fn from_cells(layout: Layout, cells: Vec<Cell>) -> Result<Self, GridError> {
        let (expected, found) = (layout.cells(), cells.len());
        if expected == found {
            Ok(Self { layout, cells })
        } else {
            Err(GridError::WrongLength { expected, found })
        }
    }

    /// The cells that walls cross are occupied, all others are free.
    #[must_use]
    pub fn from_walls(layout: Layout, walls: &[Segment]) -> Self {
        let mut new = Self {
            layout,
            cells: vec![Cell::Free; layout.cells()],
        };
        for wall in walls {
            new.draw(wall);
        }
        new
    }

    /// Position and size of the grid.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The content of a cell.
    #[must_use]
    pub fn cell(&self, column: usize, row: usize) -> Cell {
        self.cells[self.layout.index(column, row)]
    }

    /// Whether a cell is occupied.
    #[must_use]
    pub fn is_occupied(&self, column: usize, row: usize) -> bool {
        self.cell(column, row) == Cell::Occupied
    }

    /// The same grid with all cells of one kind occupied, and all others free; `None` if there are none
    /// of this kind.
    #[must_use]
    pub fn of(&self, kind: Cell) -> Option<Self> {
        let cells = self.cells.iter().map(|cell| match *cell == kind {
            true => Cell::Occupied,
            false => Cell::Free,
        });
        self.cells.contains(&kind).then(|| Self {
            layout: self.layout,
            cells: cells.collect(),
        })
    }

    /// The same area in cells of twice the size. A cell is occupied if one of its four parts is, and
    /// free if all are.
    #[must_use]
    pub fn coarser(&self) -> Self {
        let layout = Layout {
            cell_m: 2.0 * self.layout.cell_m,
            columns: self.layout.columns.div_ceil(2),
            rows: self.layout.rows.div_ceil(2),
            ..self.layout
        };
        let part = |column: usize, row: usize| {
            let is_inside = column < self.layout.columns && row < self.layout.rows;
            is_inside.then(|| self.cell(column, row))
        };
        let cells = (0..layout.cells()).map(|cell| {
            let (column, row) = (2 * (cell % layout.columns), 2 * (cell / layout.columns));
            let parts = [(0, 0), (1, 0), (0, 1), (1, 1)];
            let parts = parts.map(|(x, y)| part(column + x, row + y));
            if parts.contains(&Some(Cell::Occupied)) {
                Cell::Occupied
            } else if parts.contains(&Some(Cell::Unknown)) {
                Cell::Unknown
            } else {
                Cell::Free
            }
        });
        Self {
            cells: cells.collect(),
            layout,
        }
    }

    /// Lines through the centres of neighbouring occupied cells, along rows and along columns. A lone
    /// cell becomes a line across itself.
    #[must_use]
    pub fn lines(&self) -> Vec<Segment> {
        let Layout { columns, rows, .. } = self.layout;
        let along_rows = (0..rows).flat_map(|row| self.runs(move |column| (column, row), columns));
        let along_columns =
            (0..columns).flat_map(|column| self.runs(move |row| (column, row), rows));
        let is_line = |run: &Segment| run.from != run.to;
        let half = Point::new(self.layout.cell_m / 2.0, 0.0);
        let lone = along_rows
            .clone()
            .filter(|run| !is_line(run) && self.is_lone(run.from));
        let lone = lone.map(|run| Segment {
            from: run.from.minus(half),
            to: run.to.plus(half),
        });
        let lines = along_rows.clone().chain(along_columns).filter(is_line);
        lines.chain(lone).collect()
    }

    /// From the first to the last cell of each group of neighbouring occupied cells on a line.
    fn runs(&self, cell: impl Fn(usize) -> (usize, usize), count: usize) -> Vec<Segment> {
        let mut runs: Vec<Segment> = Vec::new();
        let mut continues = false;
        for (column, row) in (0..count).map(cell) {
            let at = self.layout.centre(column, row);
            let is_occupied = self.is_occupied(column, row);
            match runs.last_mut() {
                Some(run) if is_occupied && continues => run.to = at,
                _ if is_occupied => runs.push(Segment { from: at, to: at }),
                _ => {}
            }
            continues = is_occupied;
        }
        runs
    }

    /// Whether the cells above and below a position are not occupied.
    fn is_lone(&self, at: Point) -> bool {
        let Some((column, row)) = self.layout.cell_at(at) else {
            return true;
        };
        let below = row.checked_sub(1);
        let above = (row + 1 < self.layout.rows).then_some(row + 1);
        !(below.into_iter().chain(above)).any(|row| self.is_occupied(column, row))
    }

    /// Occupies the cells that a wall crosses: within each column or row, whichever the wall
    /// crosses more of, the cells between the points where it enters and leaves.
    fn draw(&mut self, wall: &Segment) {
        let scale = |point: Point| {
            let offset = point.minus(self.layout.low);
            Point::new(offset.x / self.layout.cell_m, offset.y / self.layout.cell_m)
        };
        let (mut from, mut to) = (scale(wall.from), scale(wall.to));
        let steep = (to.y - from.y).abs() > (to.x - from.x).abs();
        if steep {
            from = Point::new(from.y, from.x);
            to = Point::new(to.y, to.x);
        }
        if from.x > to.x {
            (from, to) = (to, from);
        }
        let across = if steep {
            self.layout.rows
        } else {
            self.layout.columns
        };
        let first = from.x.floor().max(0.0) as usize;
        let last = to.x.floor().min(across as f64 - 1.0);
        if last < 0.0 {
            return;
        }
        let slope = if to.x > from.x {
            (to.y - from.y) / (to.x - from.x)
        } else {
            0.0
        };
        for step in first..=last as usize {
            let height = |x: f64| from.y + (x.clamp(from.x, to.x) - from.x) * slope;
            let (a, b) = (height(step as f64), height(step as f64 + 1.0));
            let (low, high) = (a.min(b).floor(), a.max(b).floor());
            let limit = if steep {
                self.layout.columns
            } else {
                self.layout.rows
            };
            if high < 0.0 || low >= limit as f64 {
                continue;
            }
            for other in low.max(0.0) as usize..=(high as usize).min(limit - 1) {
                let (column, row) = if steep { (other, step) } else { (step, other) };
                let index = self.layout.index(column, row);
                self.cells[index] = Cell::Occupied;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarser_grid_keeps_obstacles_and_unknown_cells() {
        let layout = Layout {
            low: Point::new(-1.0, 2.0),
            cell_m: 0.05,
            columns: 5,
            rows: 3,
        };
        let mut cells = vec![Cell::Free; 15];
        cells[layout.index(1, 1)] = Cell::Occupied;
        cells[layout.index(2, 0)] = Cell::Unknown;
        let coarse = Occupancy::from_cells(layout, cells).unwrap().coarser();
        let expected = Layout {
            cell_m: 0.1,
            columns: 3,
            rows: 2,
            ..layout
        };
        assert_eq!(*coarse.layout(), expected);
        let found: Vec<Cell> = (0..6).map(|cell| coarse.cell(cell % 3, cell / 3)).collect();
        use Cell::{Free, Occupied, Unknown};
        assert_eq!(found, [Occupied, Unknown, Free, Free, Free, Free]);
    }
}
