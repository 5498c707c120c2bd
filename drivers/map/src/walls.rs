//! Walls in a grid of cells: ray casting and free space. PURE.

use crate::geometry::{Point, Pose, Segment};
use crate::outline::{Outline, TOLERANCE_M};

/// The side length of a cell of [`Walls`].
const CELL_M: f64 = 0.25;
/// The maximum number of cells; larger maps get larger cells.
const MAX_CELLS: f64 = 250_000.0;

/// Walls, sorted into cells so that a search visits only a few.
#[derive(Clone, Debug)]
pub struct Walls {
    segments: Vec<Segment>,
    low: Point,
    cell_m: f64,
    columns: usize,
    rows: usize,
    cells: Vec<Vec<usize>>,
}

impl Walls {
    /// Sorts the walls into cells.
    #[must_use]
    pub fn new(segments: Vec<Segment>) -> Self {
        let ends = || segments.iter().flat_map(|wall| [wall.from, wall.to]);
        let low = ends().fold(Point::new(f64::MAX, f64::MAX), |low, end| {
            Point::new(low.x.min(end.x), low.y.min(end.y))
        });
        let high = ends().fold(Point::new(f64::MIN, f64::MIN), |high, end| {
            Point::new(high.x.max(end.x), high.y.max(end.y))
        });
        if segments.is_empty() {
            let (low, cells) = (Point::default(), vec![Vec::new()]);
            return Self {
                segments,
                low,
                cell_m: CELL_M,
                columns: 1,
                rows: 1,
                cells,
            };
        }
        let size = high.minus(low);
        let cell_m = CELL_M
            .max((size.x * size.y / MAX_CELLS).sqrt())
            .max(size.x.max(size.y) / 1e4);
        let count = |length: f64| (length / cell_m).floor() as usize + 1;
        let (columns, rows) = (count(size.x), count(size.y));
        let mut new = Self {
            segments: Vec::new(),
            low,
            cell_m,
            columns,
            rows,
            cells: vec![Vec::new(); columns * rows],
        };
        for (index, wall) in segments.iter().enumerate() {
            let (first, last) = (new.cell_of(wall.from), new.cell_of(wall.to));
            for column in first.0.min(last.0)..=first.0.max(last.0) {
                for row in first.1.min(last.1)..=first.1.max(last.1) {
                    if new.crosses_cell(wall, column, row) {
                        new.cells[row * columns + column].push(index);
                    }
                }
            }
        }
        new.segments = segments;
        new
    }

    /// All walls.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The lower left and the upper right corner of the bounding box.
    #[must_use]
    pub fn bounds(&self) -> (Point, Point) {
        let size = Point::new(self.columns as f64, self.rows as f64).times(self.cell_m);
        (self.low, self.low.plus(size))
    }

    /// Casts a ray: the distance in metres at which a beam meets the first wall, or `None` if there
    /// is no wall within the limit. The angle is in radians, counter-clockwise from x.
    #[must_use]
    pub fn cast(&self, origin: Point, angle: f64, limit_m: f64) -> Option<f64> {
        let way = Point::new(angle.cos(), angle.sin());
        // Enter the grid first if the beam starts outside.
        let (low, high) = self.bounds();
        let (enter_x, leave_x) = slab(origin.x, way.x, low.x, high.x);
        let (enter_y, leave_y) = slab(origin.y, way.y, low.y, high.y);
        let mut at_m = enter_x.max(enter_y).max(0.0);
        let end_m = leave_x.min(leave_y).min(limit_m);
        if at_m > end_m {
            return None;
        }
        let (mut column, mut row) = self.cell_of(origin.plus(way.times(at_m)));
        loop {
            let cell = &self.cells[row * self.columns + column];
            let nearest = cell
                .iter()
                .filter_map(|index| self.segments[*index].hit(origin, way))
                .min_by(f64::total_cmp);
            let next_x = self.edge(origin.x, way.x, self.low.x, column);
            let next_y = self.edge(origin.y, way.y, self.low.y, row);
            let next_m = next_x.min(next_y);
            // A wall in this cell may be hit only in a later cell.
            if let Some(hit_m) = nearest.filter(|hit_m| *hit_m <= next_m + TOLERANCE_M) {
                return (hit_m <= limit_m).then_some(hit_m);
            }
            at_m = next_m;
            if at_m > end_m {
                return None;
            }
            let (axis, forward, count) = if next_x <= next_y {
                (&mut column, way.x > 0.0, self.columns)
            } else {
                (&mut row, way.y > 0.0, self.rows)
            };
            *axis = if forward {
                *axis + 1
            } else {
                axis.checked_sub(1)?
            };
            if *axis >= count {
                return None;
            }
        }
    }

    /// Whether a robot fits there without touching a wall.
    #[must_use]
    pub fn is_free(&self, outline: Outline, pose: Pose) -> bool {
        self.way_off(outline, pose).is_none()
    }

    /// Whether a straight line meets no wall.
    #[must_use]
    pub fn is_open(&self, from: Point, to: Point) -> bool {
        let way = to.minus(from);
        let length = way.length();
        length == 0.0 || self.cast(from, way.y.atan2(way.x), length).is_none()
    }

    /// A vector that moves a robot off one of the walls that it overlaps.
    #[must_use]
    pub fn way_off(&self, outline: Outline, pose: Pose) -> Option<Point> {
        self.near(pose.at, outline.radius_m())
            .find_map(|wall| outline.way_off(pose, wall))
    }

    /// The distance to the nearest wall, in metres; infinite without walls.
    #[must_use]
    pub fn clearance_m(&self, point: Point) -> f64 {
        self.segments
            .iter()
            .map(|wall| wall.distance(point))
            .fold(f64::INFINITY, f64::min)
    }

    /// The walls near a position; some may occur twice.
    fn near(&self, place: Point, radius_m: f64) -> impl Iterator<Item = &Segment> {
        let reach = Point::new(radius_m, radius_m);
        let first = self.cell_of(place.minus(reach));
        let last = self.cell_of(place.plus(reach));
        (first.1..=last.1)
            .flat_map(move |row| (first.0..=last.0).map(move |column| row * self.columns + column))
            .flat_map(|cell| &self.cells[cell])
            .map(|index| &self.segments[*index])
    }

    /// The cell of a position, or the nearest cell.
    fn cell_of(&self, place: Point) -> (usize, usize) {
        let index = |offset: f64, count: usize| {
            ((offset / self.cell_m).floor().max(0.0) as usize).min(count - 1)
        };
        let offset = place.minus(self.low);
        (index(offset.x, self.columns), index(offset.y, self.rows))
    }

    fn crosses_cell(&self, wall: &Segment, column: usize, row: usize) -> bool {
        let half = self.cell_m / 2.0;
        let centre = Point::new(column as f64, row as f64)
            .times(self.cell_m)
            .plus(Point::new(half, half))
            .plus(self.low);
        // Slightly larger, so that walls on an edge belong to both cells.
        let square = Outline {
            half_length_m: half + 1e-6,
            half_width_m: half + 1e-6,
        };
        let pose = Pose::new(centre.x, centre.y, 0.0);
        square.way_off(pose, wall).is_some()
    }

    /// The distance at which a beam leaves a cell along one axis.
    fn edge(&self, origin: f64, way: f64, low: f64, index: usize) -> f64 {
        let index = index as f64 + if way > 0.0 { 1.0 } else { 0.0 };
        if way == 0.0 {
            f64::INFINITY
        } else {
            (low + index * self.cell_m - origin) / way
        }
    }
}

/// The distances at which a beam enters and leaves the space between two parallels.
fn slab(origin: f64, way: f64, low: f64, high: f64) -> (f64, f64) {
    if way == 0.0 {
        let inside = (low..=high).contains(&origin);
        return if inside {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            (f64::INFINITY, f64::NEG_INFINITY)
        };
    }
    let (a, b) = ((low - origin) / way, (high - origin) / way);
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    const OUTLINE: Outline = Outline {
        half_length_m: 0.2,
        half_width_m: 0.1,
    };

    fn wall(from_x: f64, from_y: f64, to_x: f64, to_y: f64) -> Segment {
        Segment {
            from: Point::new(from_x, from_y),
            to: Point::new(to_x, to_y),
        }
    }

    #[test]
    fn a_beam_ends_at_the_first_wall() {
        let walls = Walls::new(vec![wall(2.0, -1.0, 2.0, 1.0), wall(3.0, -1.0, 3.0, 1.0)]);
        let origin = Point::default();
        assert_eq!(walls.cast(origin, 0.0, 9.0), Some(2.0));
        assert_eq!(walls.cast(origin, 0.0, 1.9), None);
        assert_eq!(walls.cast(origin, PI, 9.0), None);
        assert_eq!(walls.cast(Point::new(9.0, 0.0), PI, 9.0), Some(6.0));
        let slanted = walls.cast(origin, PI / 8.0, 9.0).unwrap();
        assert!((slanted - 2.0 / (PI / 8.0).cos()).abs() < 1e-9);
    }

    #[test]
    fn a_robot_beside_a_wall_is_free_but_not_one_on_a_wall() {
        let walls = Walls::new(vec![wall(1.0, -5.0, 1.0, 5.0)]);
        assert!(walls.is_free(OUTLINE, Pose::new(0.79, 0.0, 0.0)));
        assert!(!walls.is_free(OUTLINE, Pose::new(0.81, 0.0, 0.0)));
        assert!(walls.is_free(OUTLINE, Pose::new(0.89, 0.0, PI / 2.0)));
        let way = walls.way_off(OUTLINE, Pose::new(0.81, 0.0, 0.0)).unwrap();
        assert!((way.x + 0.01).abs() < 1e-9 && way.y.abs() < 1e-9, "{way:?}");
    }

    #[test]
    fn an_empty_map_works() {
        let walls = Walls::new(Vec::new());
        assert_eq!(walls.cast(Point::new(3.0, 4.0), 1.0, 10.0), None);
        assert!(walls.is_free(OUTLINE, Pose::default()));
    }

    fn place() -> impl Strategy<Value = Point> {
        (-4.0..4.0, -4.0..4.0).prop_map(|(x, y)| Point::new(x, y))
    }

    proptest! {
        #[test]
        fn cells_do_not_change_the_results(
            ends in prop::collection::vec((place(), place()), 0..20),
            origin in place(),
            angle in -PI..PI,
        ) {
            let segments: Vec<_> =
                ends.into_iter().map(|(from, to)| Segment { from, to }).collect();
            let way = Point::new(angle.cos(), angle.sin());
            let expected = segments
                .iter()
                .filter_map(|wall| wall.hit(origin, way))
                .filter(|hit_m| *hit_m <= 5.0)
                .min_by(f64::total_cmp);
            let found = Walls::new(segments).cast(origin, angle, 5.0);
            match (expected, found) {
                (Some(expected), Some(found)) => prop_assert!((expected - found).abs() < 1e-6),
                (None, None) => {}
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
