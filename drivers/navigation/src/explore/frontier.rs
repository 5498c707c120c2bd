//! The boundary between reachable free space and unknown space. PURE.
//!
//! Only cells where the robot fits count. Therefore the thin unknown strips that beams leave along
//! walls are not frontiers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use amber_map::{Cell, Layout, Occupancy, Point};

use crate::grid::DistanceField;

/// Fewer cells are noise.
const MIN_CELLS: usize = 3;
/// How far a robot in a narrow place may be from the nearest place where it fits.
const ESCAPE_M: f64 = 0.5;
/// More room than this around the robot is of no use...
const WIDE_M: f64 = 0.4;
/// ...and a metre of room is worth a place so much farther from the middle.
const ROOM: f64 = 4.0;
/// The robot can look at everything that is this close to where it can turn.
const NEAR_M: f64 = 0.15;
/// The end of a narrow way to turn may be too small for a frontier. This far around it, the end of
/// the narrow space counts instead.
const AROUND_SCRAP_M: f64 = 0.3;
/// The cost of a way is counted in 1/100 mm, so that equal ways are equal.
const COST_PER_M: f64 = 100_000.0;

/// Neighbouring cells at the end of the free space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frontier {
    /// One of its cells, near its middle, with room for the robot.
    pub at: Point,
    /// How long it is, about.
    pub length_m: f64,
    /// The length of the shortest way there.
    pub way_m: f64,
    /// Whether the robot only just fits there.
    pub is_narrow: bool,
}

/// The frontiers that a robot at a position can reach, those first where it can turn on the spot: with
/// the clearance `turning_m`. Where it only just fits, with `clearance_m`, a frontier counts if the
/// robot has not been able to look at it from near by. `field` has the same layout as the grid.
#[must_use]
pub fn frontiers(
    occupancy: &Occupancy,
    field: &DistanceField,
    robot: Point,
    [clearance_m, turning_m]: [f64; 2],
) -> Vec<Frontier> {
    let wide = Reach::new(occupancy, field, robot, turning_m);
    let narrow = Reach::new(occupancy, field, robot, clearance_m);
    let Ends {
        frontiers: mut found,
        scraps,
    } = wide.ends(occupancy, field);
    let seen_from = wide.distances(field.layout());
    let is_hidden = |at: Point| {
        let is_near_scrap = |scrap: &Point| at.minus(*scrap).length() <= AROUND_SCRAP_M;
        seen_from
            .as_ref()
            .is_none_or(|near| near.distance_m(at) >= NEAR_M)
            || scraps.iter().any(is_near_scrap)
    };
    let narrow = narrow.ends(occupancy, field).frontiers.into_iter();
    found.extend(
        narrow
            .filter(|frontier| is_hidden(frontier.at))
            .map(|frontier| Frontier {
                is_narrow: true,
                ..frontier
            }),
    );
    found
}

/// The boundary of the space that the robot can reach.
#[derive(Default)]
struct Ends {
    frontiers: Vec<Frontier>,
    /// Cells of ends that are too small.
    scraps: Vec<Point>,
}

/// The possible destinations of the robot.
struct Reach {
    /// The costs of the shortest ways; the maximum if there is none.
    costs: Vec<u64>,
}

impl Reach {
    fn new(occupancy: &Occupancy, field: &DistanceField, robot: Point, clearance_m: f64) -> Self {
        let layout = occupancy.layout();
        let is_clear = |cell: usize| {
            let (column, row) = (cell % layout.columns, cell / layout.columns);
            field.distance_of_cell_m(column, row) >= clearance_m
                && occupancy.cell(column, row) == Cell::Free
        };
        Self {
            costs: match nearest(layout, robot, is_clear) {
                Some(start) => costs(layout, start, is_clear),
                None => vec![u64::MAX; layout.cells()],
            },
        }
    }

    /// The ends of what can be reached at unknown cells.
    fn ends(&self, occupancy: &Occupancy, field: &DistanceField) -> Ends {
        let layout = *occupancy.layout();
        let is_end = |cell: usize| {
            let (column, row) = (cell % layout.columns, cell / layout.columns);
            let mut sides = around(&layout, column, row).filter(|side| side.is_straight);
            self.costs[cell] < u64::MAX
                && sides.any(|side| occupancy.cell(side.column, side.row) == Cell::Unknown)
        };
        let mut left: Vec<bool> = (0..layout.cells()).map(is_end).collect();
        let mut ends = Ends::default();
        for first in 0..layout.cells() {
            let cells = group(&layout, first, &mut left);
            let centre = |cell: &usize| layout.centre(cell % layout.columns, cell / layout.columns);
            if cells.len() < MIN_CELLS {
                ends.scraps.extend(cells.iter().map(centre));
                continue;
            }
            let sum = cells.iter().map(centre).fold(Point::default(), Point::plus);
            let mean = sum.times(1.0 / cells.len() as f64);
            // Near its middle, but where the robot can turn.
            let price = |cell: &usize| {
                let room_m = field.distance_m(centre(cell)).min(WIDE_M);
                centre(cell).minus(mean).length() - ROOM * room_m
            };
            let best = cells.iter().min_by(|a, b| price(a).total_cmp(&price(b)));
            ends.frontiers.extend(best.map(|best| Frontier {
                at: centre(best),
                length_m: cells.len() as f64 * layout.cell_m,
                way_m: self.costs[*best] as f64 / COST_PER_M,
                is_narrow: false,
            }));
        }
        ends
    }

    /// The distances to the nearest cell that can be reached; `None` if there is none.
    fn distances(&self, layout: &Layout) -> Option<DistanceField> {
        let cells = self.costs.iter().map(|cost| match *cost {
            u64::MAX => Cell::Free,
            _ => Cell::Occupied,
        });
        let reached = Occupancy::from_cells(*layout, cells.collect()).ok()?;
        let is_any = self.costs.iter().any(|cost| *cost < u64::MAX);
        is_any.then(|| DistanceField::from_occupancy(&reached, 2.0 * NEAR_M))
    }
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
        let field = DistanceField::from_occupancy(&occupancy, 0.5);
        frontiers(
            &occupancy,
            &field,
            Point::new(robot.0, robot.1),
            [0.2, 0.22],
        )
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
            is_narrow,
        } = found[0];
        assert!(!is_narrow);
        assert!(at.minus(Point::new(1.25, 0.55)).length() < 0.11, "{at:?}");
        assert!((0.3..0.6).contains(&length_m), "{length_m}");
        assert!((0.6..0.9).contains(&way_m), "{way_m}");
    }

    #[test]
    fn a_gate_in_which_the_robot_can_turn_on_one_line_is_a_frontier() {
        // The robot fits into three columns of the gate, and can turn in the middle one. Its end is one
        // cell.
        let room = [
            "                  ",
            "                  ",
            "#.....#.....#     ",
            "#######.....######",
            "#................#",
            "#................#",
            "#................#",
            "#................#",
            "#................#",
            "##################",
        ];
        let found = found(&room, (0.85, 0.35));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].is_narrow);
        let gate = Point::new(0.95, 0.75);
        assert!(found[0].at.minus(gate).length() < 0.11, "{found:?}");
    }

    #[test]
    fn what_the_robot_cannot_reach_is_no_frontier() {
        let rooms = [
            "##########################",
            "#...........#             ",
            "#...........#             ",
            "#...........#.............",
            "#...........#.............",
            "#...........#.............",
            "#...........#.............",
            "#...........#.............",
            "#...........#             ",
            "#...........#             ",
            "##########################",
        ];
        assert_eq!(found(&rooms, (0.55, 0.45)), []);
        assert_eq!(found(&rooms, (2.0, 0.45)).len(), 2);
        // Outside of the grid, the robot is nowhere.
        assert_eq!(found(&rooms, (9.0, 9.0)), []);
    }
}
