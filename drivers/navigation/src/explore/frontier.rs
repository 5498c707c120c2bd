//! Where free space that the robot can reach ends at unknown space. PURE.
//!
//! Only cells where the robot fits count: so the thin unknown strips along walls that beams leave are
//! no frontiers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use amber_map::{Cell, Layout, Occupancy, Point};

use crate::grid::DistanceField;

/// Fewer cells are noise.
const MIN_CELLS: usize = 3;
/// How far a robot in a narrow place may be from the nearest place where it fits.
const ESCAPE_M: f64 = 0.5;
/// The cost of a way is counted in 1/100 mm, so that equal ways are equal.
const COST_PER_M: f64 = 100_000.0;

/// Neighbouring cells at the end of the free space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frontier {
    /// One of its cells, near its middle.
    pub at: Point,
    /// How long it is, about.
    pub length_m: f64,
    /// The length of the shortest way there.
    pub way_m: f64,
}

/// The frontiers that a robot at a position can reach. `field` has the same layout as the grid, and
/// the distance 0 for unknown cells.
#[must_use]
pub fn frontiers(
    occupancy: &Occupancy,
    field: &DistanceField,
    robot: Point,
    clearance_m: f64,
) -> Vec<Frontier> {
    let layout = *occupancy.layout();
    let is_clear = |cell: usize| {
        let (column, row) = (cell % layout.columns, cell / layout.columns);
        field.distance_of_cell_m(column, row) >= clearance_m
    };
    let Some(start) = nearest(&layout, robot, is_clear) else {
        return Vec::new();
    };
    let costs = costs(&layout, start, is_clear);
    let is_end = |cell: usize| {
        let (column, row) = (cell % layout.columns, cell / layout.columns);
        let mut sides = around(&layout, column, row).filter(|side| side.is_straight);
        costs[cell] < u64::MAX
            && sides.any(|side| occupancy.cell(side.column, side.row) == Cell::Unknown)
    };
    let mut left: Vec<bool> = (0..layout.cells()).map(is_end).collect();
    let mut found = Vec::new();
    for first in 0..layout.cells() {
        let cells = group(&layout, first, &mut left);
        if cells.len() < MIN_CELLS {
            continue;
        }
        let centre = |cell: &usize| layout.centre(cell % layout.columns, cell / layout.columns);
        let sum = cells.iter().map(centre).fold(Point::default(), Point::plus);
        let mean = sum.times(1.0 / cells.len() as f64);
        let way = |cell: &usize| centre(cell).minus(mean).length();
        let middle = cells.iter().min_by(|a, b| way(a).total_cmp(&way(b)));
        found.extend(middle.map(|middle| Frontier {
            at: centre(middle),
            length_m: cells.len() as f64 * layout.cell_m,
            way_m: costs[*middle] as f64 / COST_PER_M,
        }));
    }
    found
}

/// The nearest cell that fulfils a condition.
fn nearest(layout: &Layout, at: Point, is_clear: impl Fn(usize) -> bool) -> Option<usize> {
    let reach = Point::new(ESCAPE_M, ESCAPE_M);
    let (columns, rows) = layout.range(at.minus(reach), at.plus(reach))?;
    let cells =
        (rows.0..=rows.1).flat_map(|row| (columns.0..=columns.1).map(move |column| (column, row)));
    cells
        .filter(|(column, row)| is_clear(layout.index(*column, *row)))
        .map(|(column, row)| {
            let distance_m = layout.centre(column, row).minus(at).length();
            (distance_m, layout.index(column, row))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, cell)| cell)
}

/// The costs of the shortest ways to all cells (Dijkstra); the maximum if there is none.
fn costs(layout: &Layout, start: usize, is_clear: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut costs = vec![u64::MAX; layout.cells()];
    let mut waiting = BinaryHeap::from([(Reverse(0), start)]);
    costs[start] = 0;
    let straight = layout.cell_m * COST_PER_M;
    while let Some((Reverse(cost), cell)) = waiting.pop() {
        if cost > costs[cell] {
            continue;
        }
        for side in around(layout, cell % layout.columns, cell / layout.columns) {
            let next = layout.index(side.column, side.row);
            let step = if side.is_straight {
                straight
            } else {
                straight * std::f64::consts::SQRT_2
            };
            let sum = cost + step.round() as u64;
            if sum < costs[next] && is_clear(next) {
                costs[next] = sum;
                waiting.push((Reverse(sum), next));
            }
        }
    }
    costs
}

/// Takes a cell with all that are connected with it.
fn group(layout: &Layout, first: usize, left: &mut [bool]) -> Vec<usize> {
    let mut cells = Vec::new();
    let mut waiting = vec![first];
    while let Some(cell) = waiting.pop() {
        if !std::mem::take(&mut left[cell]) {
            continue;
        }
        cells.push(cell);
        let sides = around(layout, cell % layout.columns, cell / layout.columns);
        waiting.extend(sides.map(|side| layout.index(side.column, side.row)));
    }
    cells
}

/// A cell beside another one.
struct Side {
    column: usize,
    row: usize,
    /// Not at a corner.
    is_straight: bool,
}

fn around(layout: &Layout, column: usize, row: usize) -> impl Iterator<Item = Side> + use<> {
    let (columns, rows) = (layout.columns, layout.rows);
    (-1..=1_isize)
        .flat_map(|dy| (-1..=1_isize).map(move |dx| (dx, dy)))
        .filter(|way| *way != (0, 0))
        .filter_map(move |(dx, dy)| {
            let column = column.checked_add_signed(dx).filter(|at| *at < columns)?;
            let row = row.checked_add_signed(dy).filter(|at| *at < rows)?;
            Some(Side {
                column,
                row,
                is_straight: dx == 0 || dy == 0,
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::{Config, Planner};

    /// A grid in cells of 0.1 m: `#` occupied, `.` free, and a space unknown. The last line is the
    /// lowest row.
    fn found(drawing: &[&str], robot: (f64, f64)) -> Vec<Frontier> {
        let layout = Layout {
            low: Point::default(),
            cell_m: 0.1,
            columns: drawing[0].len(),
            rows: drawing.len(),
        };
        let cells = drawing.iter().rev().flat_map(|line| line.chars());
        let cells = cells.map(|cell| match cell {
            '#' => Cell::Occupied,
            '.' => Cell::Free,
            _ => Cell::Unknown,
        });
        let occupancy = Occupancy::from_cells(layout, cells.collect()).unwrap();
        let planner = Planner::of_occupancy(Config::default(), &occupancy);
        let robot = Point::new(robot.0, robot.1);
        frontiers(&occupancy, planner.field(), robot, 0.2)
    }

    #[test]
    fn an_open_door_is_a_frontier_and_a_narrow_gap_is_none() {
        let room = [
            "##############      ",
            "#............#      ",
            "#............       ",
            "#............       ",
            "#............       ",
            "#............       ",
            "#............       ",
            "#............       ",
            "#............#      ",
            "#............#      ",
            "########  ####      ",
        ];
        let found = found(&room, (0.55, 0.55));
        assert_eq!(found.len(), 1, "{found:?}");
        let Frontier {
            at,
            length_m,
            way_m,
        } = found[0];
        assert!(at.minus(Point::new(1.25, 0.55)).length() < 0.11, "{at:?}");
        assert!((0.3..0.6).contains(&length_m), "{length_m}");
        assert!((0.6..0.9).contains(&way_m), "{way_m}");
    }

    #[test]
    fn what_the_robot_cannot_reach_is_no_frontier() {
        let rooms = [
            "##########################",
            "#...........#             ",
            "#...........#.............",
            "#...........#.............",
            "#...........#.............",
            "#...........#.............",
            "#...........#.............",
            "#...........#             ",
            "##########################",
        ];
        assert_eq!(found(&rooms, (0.55, 0.45)), []);
        assert_eq!(found(&rooms, (2.0, 0.45)).len(), 2);
        // Outside of the grid, the robot is nowhere.
        assert_eq!(found(&rooms, (9.0, 9.0)), []);
    }
}
