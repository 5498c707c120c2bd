//! What stands in a room and is no straight wall, as short segments. PURE.
//!
//! Legs of chairs, shelves and plants help a robot to find its place as walls do. A map of walls alone
//! forgets them: in a furnished room they are a quarter of all that the laser sees.

use amber_map::{Point, Segment};

use crate::grid::{Cell, Occupancy};

/// Occupied cells this near to a wall belong to it. In metres.
const BESIDE_M: f64 = 0.08;
/// A segment lies at most this far from its cells, and half a cell.
const ASIDE_M: f64 = 0.02;
/// Fewer cells are noise, unless they are larger than this. In metres.
const MIN_CELLS: usize = 2;
const LARGE_CELL_M: f64 = 0.04;
/// The largest pieces are kept: a file with so many segments fits into a message of 32 kB.
const MAX_SEGMENTS: usize = 145;

/// Short segments through the occupied cells that belong to no wall, the largest first.
pub(super) fn clutter_of(occupancy: &Occupancy, walls: &[Segment]) -> Vec<Segment> {
    let layout = occupancy.layout();
    let is_free_standing = |column: usize, row: usize| {
        let at = layout.centre(column, row);
        occupancy.cell(column, row) == Cell::Occupied
            && walls.iter().all(|wall| wall.distance(at) > BESIDE_M)
    };
    let mut is_open: Vec<bool> = (0..layout.cells())
        .map(|index| is_free_standing(index % layout.columns, index / layout.columns))
        .collect();
    let min_cells = match layout.cell_m > LARGE_CELL_M {
        true => 1,
        false => MIN_CELLS,
    };
    let mut pieces: Vec<(usize, Segment)> = Vec::new();
    for index in 0..layout.cells() {
        let together = take_together(&mut is_open, layout.columns, index);
        if together.len() < min_cells {
            continue;
        }
        let mut points: Vec<Point> = (together.iter())
            .map(|index| layout.centre(index % layout.columns, index / layout.columns))
            .collect();
        split(&mut points, layout.cell_m, &mut pieces);
    }
    pieces.sort_by_key(|(cells, _)| std::cmp::Reverse(*cells));
    pieces.truncate(MAX_SEGMENTS.saturating_sub(walls.len()));
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

/// A cell and all others that touch it, directly or by others. They are no longer open.
fn take_together(is_open: &mut [bool], columns: usize, first: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut waiting = vec![first];
    while let Some(index) = waiting.pop() {
        if !std::mem::take(&mut is_open[index]) {
            continue;
        }
        found.push(index);
        let column = index % columns;
        let left = column.saturating_sub(1);
        let right = (column + 1).min(columns - 1);
        let rows = [
            index.checked_sub(columns),
            Some(index),
            Some(index + columns),
        ];
        for row in rows.into_iter().flatten() {
            let start = row - column;
            waiting.extend((start + left..=start + right).filter(|next| *next < is_open.len()));
        }
    }
    found
}

/// Covers cells with segments: with one if they lie on a line, otherwise with those of both halves.
fn split(points: &mut [Point], cell_m: f64, pieces: &mut Vec<(usize, Segment)>) {
    let count = points.len() as f64;
    let centre = points
        .iter()
        .fold(Point::default(), |sum, point| sum.plus(*point))
        .times(1.0 / count);
    let axis = main_axis(points, centre);
    let along = |point: &Point| point.minus(centre).dot(axis);
    let aside = |point: &Point| point.minus(centre).minus(axis.times(along(point))).length();
    let is_line = points
        .iter()
        .all(|point| aside(point) <= ASIDE_M + cell_m / 2.0);
    if !is_line && points.len() > 2 {
        points.sort_by(|a, b| along(a).total_cmp(&along(b)));
        let (near, far) = points.split_at_mut(points.len() / 2);
        split(near, cell_m, pieces);
        split(far, cell_m, pieces);
        return;
    }
    let (low, high) = points
        .iter()
        .map(along)
        .fold((0.0, 0.0), |(low, high), at| {
            (f64::min(low, at), f64::max(high, at))
        });
    // From edge to edge of the cells.
    let (low, high) = (low - cell_m / 2.0, high + cell_m / 2.0);
    let segment = Segment {
        from: centre.plus(axis.times(low)),
        to: centre.plus(axis.times(high)),
    };
    pieces.push((points.len(), segment));
}

/// The direction in which points are spread most.
fn main_axis(points: &[Point], centre: Point) -> Point {
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points {
        let way = point.minus(centre);
        xx += way.x * way.x;
        xy += way.x * way.y;
        yy += way.y * way.y;
    }
    Point::new(1.0, 0.0).turned(f64::atan2(2.0 * xy, xx - yy) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Layout;

    const CELL_M: f64 = 0.05;

    /// A grid of 2 m x 2 m in which these cells are occupied.
    fn grid(occupied: impl Fn(Point) -> bool) -> Occupancy {
        let layout =
            Layout::around(Point::new(0.0, 0.0), Point::new(2.0, 2.0), 0.1, CELL_M).unwrap();
        let cells = (0..layout.cells()).map(|index| {
            let at = layout.centre(index % layout.columns, index / layout.columns);
            match occupied(at) {
                true => Cell::Occupied,
                false => Cell::Free,
            }
        });
        Occupancy::from_cells(layout, cells.collect()).unwrap()
    }

    const WALL: Segment = Segment {
        from: Point { x: 0.0, y: 0.0 },
        to: Point { x: 2.0, y: 0.0 },
    };

    #[test]
    fn cells_of_walls_are_no_clutter() {
        let occupancy = grid(|at| at.y.abs() < 0.06);
        assert_eq!(clutter_of(&occupancy, &[WALL]), []);
        assert!(!clutter_of(&occupancy, &[]).is_empty());
    }

    #[test]
    fn each_thing_is_near_to_its_segments() {
        // A leg of a chair, a slanted board, and a round pillar.
        let leg = |at: Point| at.minus(Point::new(0.5, 0.5)).length() < 0.03;
        let board = |at: Point| {
            (at.y - 0.5 - 0.5 * (at.x - 1.0)).abs() < 0.03 && (1.0..1.6).contains(&at.x)
        };
        let pillar = |at: Point| (at.minus(Point::new(1.0, 1.5)).length() - 0.2).abs() < 0.03;
        let is_there = |at: Point| leg(at) || board(at) || pillar(at);
        let occupancy = grid(|at| is_there(at) || at.y.abs() < 0.06);
        let pieces = clutter_of(&occupancy, &[WALL]);
        assert!((3..=40).contains(&pieces.len()), "{}", pieces.len());
        let layout = occupancy.layout();
        for index in 0..layout.cells() {
            let at = layout.centre(index % layout.columns, index / layout.columns);
            let nearest_m = pieces
                .iter()
                .map(|piece| piece.distance(at))
                .fold(f64::INFINITY, f64::min);
            assert!(!is_there(at) || nearest_m <= 0.05, "{at:?}: {nearest_m}");
        }
        for piece in pieces {
            let middle = piece.from.plus(piece.to).times(0.5);
            let is_near = (0..layout.cells()).any(|index| {
                let at = layout.centre(index % layout.columns, index / layout.columns);
                is_there(at) && at.minus(middle).length() < 0.06
            });
            assert!(is_near, "{piece:?}");
        }
    }

    #[test]
    fn of_a_jungle_the_largest_pieces_are_kept() {
        let occupancy = grid(|at| {
            let cell = |value: f64| (value / CELL_M).floor() as i64;
            cell(at.x) % 2 == 0 && cell(at.y) % 2 == 0
        });
        let walls = [WALL; 40];
        assert_eq!(clutter_of(&occupancy, &walls).len(), MAX_SEGMENTS - 40);
    }
}
