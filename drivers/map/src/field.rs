//! Fields with the distance to the nearest wall. PURE.
//!
//! A [`DistanceField`] has two sources:
//!
//! - [`DistanceField::from_walls`] computes the exact distance to straight walls. Localization uses
//!   it, because a rasterized wall is off by up to half a cell.
//! - [`DistanceField::from_occupancy`] computes the distance to the nearest occupied cell, for maps
//!   that are images and for planners. It takes linear time: the exact Euclidean distance transform
//!   of Felzenszwalb and Huttenlocher, "Distance Transforms of Sampled Functions", Theory of
//!   Computing 8 (2012), with one pass over the columns and one over the rows.

mod parabolas;

use crate::geometry::{Point, Pose, Segment};
use crate::grid::{Cell, Layout, Occupancy};

/// One unit of a stored distance: 1/16 mm.
const UNIT_M: f64 = 1.0 / (1_000 * UNITS_PER_MM as u32) as f64;
const UNITS_PER_MM: u16 = 16;
/// The maximum distance that a field can store, in metres.
pub const MAX_DISTANCE_M: f64 = u16::MAX as f64 * UNIT_M;
/// A line has left a wall at this many half diagonals of a cell: 31 mm for cells of 20 mm.
const LEFT_CORNERS: f64 = 2.2;

/// The distance from the centre of each cell to the nearest wall, up to a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct DistanceField {
    layout: Layout,
    limit_m: f64,
    /// In units of [`UNIT_M`].
    distances: Vec<u16>,
}

impl DistanceField {
    /// The exact distances to walls; everything farther than the limit gets the limit.
    ///
    /// The time grows with the area within the limit of the walls.
    #[must_use]
    pub fn from_walls(layout: Layout, walls: &[Segment], limit_m: f64) -> Self {
        let mut new = Self::far(layout, limit_m);
        let reach = Point::new(new.limit_m, new.limit_m);
        for wall in walls {
            let low = Point::new(wall.from.x.min(wall.to.x), wall.from.y.min(wall.to.y));
            let high = Point::new(wall.from.x.max(wall.to.x), wall.from.y.max(wall.to.y));
            let Some((columns, rows)) = layout.range(low.minus(reach), high.plus(reach)) else {
                continue;
            };
            for row in rows.0..=rows.1 {
                for column in columns.0..=columns.1 {
                    let stored = &mut new.distances[row * layout.columns + column];
                    *stored = (*stored).min(units(wall.distance(layout.centre(column, row))));
                }
            }
        }
        new
    }

    /// The distances to the centres of occupied cells; everything farther than the limit gets the
    /// limit. Unknown cells are not obstacles.
    #[must_use]
    pub fn from_occupancy(occupancy: &Occupancy, limit_m: f64) -> Self {
        let mut new = Self::far(*occupancy.layout(), limit_m);
        parabolas::transform(occupancy, |index, distance_m| {
            new.distances[index] = new.distances[index].min(units(distance_m));
        });
        new
    }

    /// The same, but unknown cells count like occupied ones that are `farther_m` farther away: a wall
    /// may stand there that was not seen. They themselves have the distance 0.
    #[must_use]
    pub fn with_unknown(occupancy: &Occupancy, limit_m: f64, farther_m: f64) -> Self {
        let mut new = Self::from_occupancy(occupancy, limit_m);
        let farther = units(farther_m);
        let Some(unknown) = occupancy.of(Cell::Unknown) else {
            return new;
        };
        let to_unknown = Self::from_occupancy(&unknown, limit_m);
        for (distance, other) in new.distances.iter_mut().zip(to_unknown.distances) {
            *distance = match other {
                0 => 0,
                other => (*distance).min(other.saturating_add(farther)),
            };
        }
        new
    }

    /// A smaller field with cells that are `factor` times as long: each has the mean distance of the
    /// cells in its place.
    #[must_use]
    pub fn coarse(&self, factor: usize) -> Self {
        let fine = &self.layout;
        let factor = factor.max(1);
        let layout = Layout {
            cell_m: fine.cell_m * factor as f64,
            columns: fine.columns.div_ceil(factor),
            rows: fine.rows.div_ceil(factor),
            ..*fine
        };
        let mean = |index: usize| {
            let first = factor * (index % layout.columns);
            let columns = first..fine.columns.min(first + factor);
            let first = factor * (index / layout.columns);
            let rows = first..fine.rows.min(first + factor);
            let count = (columns.len() * rows.len()) as u32;
            let lines = rows.map(|row| row * fine.columns);
            let cells = lines
                .flat_map(|line| &self.distances[line + columns.start..line + columns.end])
                .map(|distance| u32::from(*distance));
            ((cells.sum::<u32>() + count / 2) / count) as u16
        };
        Self {
            distances: (0..layout.cells()).map(mean).collect(),
            layout,
            limit_m: self.limit_m,
        }
    }

    fn far(layout: Layout, limit_m: f64) -> Self {
        let limit_m = limit_m.clamp(0.0, MAX_DISTANCE_M);
        Self {
            layout,
            limit_m,
            distances: vec![units(limit_m); layout.cells()],
        }
    }

    /// Position and size of the grid.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The largest distance in the field, in metres.
    #[must_use]
    pub fn limit_m(&self) -> f64 {
        self.limit_m
    }

    /// The distance at the centre of a cell, in metres.
    #[must_use]
    pub fn distance_of_cell_m(&self, column: usize, row: usize) -> f64 {
        f64::from(self.distances[self.layout.index(column, row)]) * UNIT_M
    }

    /// The distance at the centre of the cell that contains a position, in metres; the limit
    /// outside the grid.
    #[must_use]
    pub fn distance_m(&self, at: Point) -> f64 {
        self.layout.index_at(at).map_or(self.limit_m, |index| {
            f64::from(self.distances[index]) * UNIT_M
        })
    }

    /// Passes on the distances in whole millimetres, rounded down, at points in the frame of a
    /// pose. This is the inner loop of localization.
    #[inline]
    pub fn visit(&self, pose: Pose, points: &[Point], mut visit: impl FnMut(u16)) {
        let (sin, cos) = pose.heading.sin_cos();
        let scale = 1.0 / self.layout.cell_m;
        let (sin, cos) = (sin * scale, cos * scale);
        let x0 = (pose.at.x - self.layout.low.x) * scale;
        let y0 = (pose.at.y - self.layout.low.y) * scale;
        let (width, height) = (self.layout.columns as f64, self.layout.rows as f64);
        let far = units(self.limit_m);
        for point in points {
            let x = x0 + cos * point.x - sin * point.y;
            let y = y0 + sin * point.x + cos * point.y;
            let inside = x >= 0.0 && y >= 0.0 && x < width && y < height;
            let distance = if inside {
                self.distances[y as usize * self.layout.columns + x as usize]
            } else {
                far
            };
            visit(distance / UNITS_PER_MM);
        }
    }

    /// Whether a straight line crosses a wall, up to the cell size: it comes near a wall and later
    /// leaves it again. It is followed in steps as long as the distance to the nearest wall (sphere
    /// tracing; Hart, The Visual Computer 12, 1996).
    #[must_use]
    pub fn crosses_wall(&self, from: Point, to: Point) -> bool {
        let way = to.minus(from);
        let length_m = way.length();
        // A wall that crosses a cell is at most half a diagonal away from its centre.
        let corner_m = self.layout.cell_m * std::f64::consts::FRAC_1_SQRT_2;
        let (mut at_m, mut near) = (0.0, false);
        while at_m < length_m {
            let distance_m = self.distance_m(from.plus(way.times(at_m / length_m)));
            if distance_m < corner_m {
                near = true;
            } else if near && distance_m > LEFT_CORNERS * corner_m {
                return true;
            }
            at_m += (distance_m - corner_m).max(corner_m);
        }
        false
    }

    /// The vector from the nearest wall to a position, in metres, or `None` if no wall is within
    /// the limit.
    ///
    /// It is half the gradient of the squared distance, which is linear near a straight wall, also
    /// across it; so this is exact there, while the distance itself has a kink at the wall.
    #[must_use]
    pub fn offset_m(&self, at: Point) -> Option<Point> {
        let layout = &self.layout;
        let x = (at.x - layout.low.x) / layout.cell_m - 0.5;
        let y = (at.y - layout.low.y) / layout.cell_m - 0.5;
        let inside =
            x >= 1.0 && y >= 1.0 && x < layout.columns as f64 - 2.0 && y < layout.rows as f64 - 2.0;
        if !inside {
            return None;
        }
        let (column, row) = (x as usize, y as usize);
        let (part_x, part_y) = (x - column as f64, y - row as f64);
        let limit = units(self.limit_m);
        let first = (row - 1) * layout.columns + column - 1;
        let mut squares = [[0.0; 4]; 4];
        for (line, squares) in squares.iter_mut().enumerate() {
            let start = first + line * layout.columns;
            for (square, stored) in squares.iter_mut().zip(&self.distances[start..start + 4]) {
                if *stored >= limit {
                    return None;
                }
                let distance_m = f64::from(*stored) * UNIT_M;
                *square = distance_m * distance_m;
            }
        }
        let along_x = |i: usize, j: usize| squares[j][i + 1] - squares[j][i - 1];
        let along_y = |i: usize, j: usize| squares[j + 1][i] - squares[j - 1][i];
        let between = |slope: &dyn Fn(usize, usize) -> f64| {
            let low = slope(1, 1) * (1.0 - part_x) + slope(2, 1) * part_x;
            let high = slope(1, 2) * (1.0 - part_x) + slope(2, 2) * part_x;
            (low * (1.0 - part_y) + high * part_y) / (4.0 * layout.cell_m)
        };
        Some(Point::new(between(&along_x), between(&along_y)))
    }

    /// The memory of the field in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.distances.len() * size_of::<u16>()
    }
}

fn units(distance_m: f64) -> u16 {
    // A cast to an integer saturates.
    (distance_m / UNIT_M).round() as u16
}

#[cfg(test)]
mod tests;
