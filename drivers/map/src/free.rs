//! The free space of a map: where the robot can be. PURE.

use crate::field::DistanceField;
use crate::geometry::Point;
use crate::grid::{Cell, Occupancy};

/// Random positions are drawn from squares of about this size.
const COARSE_M: f64 = 0.1;
/// How often a random position is drawn again if it is not free.
const DRAWS: usize = 8;

/// The cells at some distance from walls that can be reached from inside.
#[derive(Clone, Debug)]
pub struct FreeSpace {
    field_columns: usize,
    /// One bit per cell of the field.
    bits: Vec<u64>,
    /// Indices of free cells, one of each coarse square.
    coarse: Vec<u32>,
    coarse_m: f64,
    area_m2: f64,
}

impl FreeSpace {
    /// The cells that are at least `clearance_m` from walls and connected with one of the seeds.
    /// Without a usable seed: those that are not connected with the border of the grid, or all if
    /// there are none.
    #[must_use]
    pub fn new(field: &DistanceField, clearance_m: f64, seeds: &[Point]) -> Self {
        let layout = *field.layout();
        let (columns, rows) = (layout.columns, layout.rows);
        let clear = |index: usize| {
            field.distance_of_cell_m(index % columns, index / columns) >= clearance_m
        };
        let starts: Vec<usize> = seeds
            .iter()
            .filter_map(|seed| layout.index_at(*seed))
            .filter(|index| clear(*index))
            .collect();
        let mut reached = Bits::new(layout.cells());
        if starts.is_empty() {
            let border = (0..columns)
                .flat_map(|column| [column, (rows - 1) * columns + column])
                .chain((0..rows).flat_map(|row| [row * columns, row * columns + columns - 1]));
            let outside: Vec<usize> = border.filter(|index| clear(*index)).collect();
            flood(&mut reached, columns, rows, outside, clear);
            let inside = |index: usize| clear(index) && !reached.has(index);
            let any_inside = (0..layout.cells()).any(inside);
            let mut free = Bits::new(layout.cells());
            for index in 0..layout.cells() {
                if inside(index) || (!any_inside && clear(index)) {
                    free.set(index);
                }
            }
            reached = free;
        } else {
            flood(&mut reached, columns, rows, starts, clear);
        }
        Self::of_cells(field, reached)
    }

    /// The cells at least `clearance_m` from walls that a map says are free.
    #[must_use]
    pub fn of_occupancy(field: &DistanceField, clearance_m: f64, occupancy: &Occupancy) -> Self {
        let layout = *field.layout();
        let mut free = Bits::new(layout.cells());
        for row in 0..layout.rows {
            for column in 0..layout.columns {
                let is_clear = field.distance_of_cell_m(column, row) >= clearance_m;
                if is_clear && occupancy.cell(column, row) == Cell::Free {
                    free.set(layout.index(column, row));
                }
            }
        }
        Self::of_cells(field, free)
    }

    fn of_cells(field: &DistanceField, reached: Bits) -> Self {
        let layout = *field.layout();
        let columns = layout.columns;
        let step = ((COARSE_M / layout.cell_m).round() as usize).max(1);
        let middle =
            |index: usize| index % columns % step == step / 2 && index / columns % step == step / 2;
        let free = |index: &usize| reached.has(*index);
        let mut coarse: Vec<u32> = (0..layout.cells())
            .filter(|index| middle(*index) && free(index))
            .map(|index| index as u32)
            .collect();
        if coarse.is_empty() {
            // Free space that is narrower than a coarse square.
            coarse = (0..layout.cells())
                .filter(free)
                .map(|index| index as u32)
                .collect();
        }
        let cells = (0..layout.cells()).filter(free).count();
        Self {
            field_columns: columns,
            bits: reached.words,
            coarse,
            coarse_m: step as f64 * layout.cell_m,
            area_m2: cells as f64 * layout.cell_m.powi(2),
        }
    }

    /// Whether a cell of the field is free.
    #[must_use]
    pub fn is_free_cell(&self, index: usize) -> bool {
        self.bits
            .get(index / 64)
            .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Whether a position is free.
    #[must_use]
    pub fn is_free(&self, field: &DistanceField, at: Point) -> bool {
        field
            .layout()
            .index_at(at)
            .is_some_and(|index| self.is_free_cell(index))
    }

    /// The free area in square metres.
    #[must_use]
    pub fn area_m2(&self) -> f64 {
        self.area_m2
    }

    /// The number of free places: one in each square of about 0.1 m.
    #[must_use]
    pub fn places(&self) -> usize {
        self.coarse.len()
    }

    /// The centre of a free place, from 0 to [`FreeSpace::places`].
    ///
    /// # Panics
    /// There is no such place.
    #[must_use]
    pub fn place(&self, field: &DistanceField, index: usize) -> Point {
        let cell = self.coarse[index] as usize;
        let (column, row) = (cell % self.field_columns, cell / self.field_columns);
        field.layout().centre(column, row)
    }

    /// A random free position, or `None` if there is no free space.
    pub fn draw(&self, field: &DistanceField, random: &mut fastrand::Rng) -> Option<Point> {
        let mut centre = None;
        for _ in 0..DRAWS {
            let index = *self.coarse.get(random.usize(..self.coarse.len().max(1)))? as usize;
            let at = field
                .layout()
                .centre(index % self.field_columns, index / self.field_columns);
            let jitter = Point::new(random.f64() - 0.5, random.f64() - 0.5);
            let place = at.plus(jitter.times(self.coarse_m));
            if self.is_free(field, place) {
                return Some(place);
            }
            centre = Some(at);
        }
        centre
    }

    /// The memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bits.len() * size_of::<u64>() + self.coarse.len() * size_of::<u32>()
    }
}

struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn new(count: usize) -> Self {
        Self {
            words: vec![0; count.div_ceil(64)],
        }
    }

    fn has(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    fn set(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }
}

/// Sets all cells that are connected with the starts.
fn flood(
    reached: &mut Bits,
    columns: usize,
    rows: usize,
    starts: Vec<usize>,
    open: impl Fn(usize) -> bool,
) {
    let mut waiting = starts;
    while let Some(index) = waiting.pop() {
        if reached.has(index) || !open(index) {
            continue;
        }
        reached.set(index);
        let (column, row) = (index % columns, index / columns);
        let sides = [
            (column > 0).then(|| index - 1),
            (column + 1 < columns).then_some(index + 1),
            (row > 0).then(|| index - columns),
            (row + 1 < rows).then_some(index + columns),
        ];
        waiting.extend(
            sides
                .into_iter()
                .flatten()
                .filter(|side| !reached.has(*side)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Segment;
    use crate::grid::Layout;

    /// Two closed rooms of 1 m x 1 m, side by side.
    fn rooms() -> DistanceField {
        let corners = [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        let point = |(x, y)| Point::new(x, y);
        let mut walls: Vec<Segment> = corners
            .windows(2)
            .map(|pair| Segment {
                from: point(pair[0]),
                to: point(pair[1]),
            })
            .collect();
        walls.push(Segment {
            from: point((1.0, 0.0)),
            to: point((1.0, 1.0)),
        });
        let layout = Layout::around_walls(&walls, 0.5, 0.02).unwrap();
        DistanceField::from_walls(layout, &walls, 0.5)
    }

    #[test]
    fn a_seed_selects_its_room() {
        let field = rooms();
        let free = FreeSpace::new(&field, 0.1, &[Point::new(0.5, 0.5)]);
        assert!((free.area_m2() - 0.64).abs() < 0.04, "{}", free.area_m2());
        assert!(free.is_free(&field, Point::new(0.15, 0.85)));
        assert!(!free.is_free(&field, Point::new(0.05, 0.5)));
        assert!(!free.is_free(&field, Point::new(1.5, 0.5)));
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let at = free.draw(&field, &mut random).unwrap();
            assert!(free.is_free(&field, at), "{at:?}");
        }
    }

    #[test]
    fn without_seeds_the_outside_is_not_free() {
        let field = rooms();
        let free = FreeSpace::new(&field, 0.1, &[]);
        assert!((free.area_m2() - 1.28).abs() < 0.08, "{}", free.area_m2());
        assert!(!free.is_free(&field, Point::new(-0.3, 0.5)));
        let on_wall = FreeSpace::new(&field, 0.1, &[Point::new(1.0, 0.5)]);
        assert_eq!(on_wall.area_m2(), free.area_m2());
    }

    #[test]
    fn without_free_space_nothing_is_drawn() {
        let free = FreeSpace::new(&rooms(), 3.0, &[]);
        assert_eq!(free.area_m2(), 0.0);
        assert_eq!(free.draw(&rooms(), &mut fastrand::Rng::with_seed(1)), None);
    }
}
