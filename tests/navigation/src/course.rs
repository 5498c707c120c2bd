//! A closed tour through a map. PURE.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use amber_map::{Map, Point, Segment};
use amber_navigation::grid::{DistanceField, Layout};

pub(super) const CELL_M: f64 = 0.05;
/// The tour stays this far from walls.
pub(super) const CLEARANCE_M: f64 = 0.18;
/// Cells closer to walls than this cost more.
const COMFORT_M: f64 = 0.35;
/// The distance between points of the tour.
pub(super) const SPACING_M: f64 = 0.02;
/// How often the corners of the tour are smoothed.
const SMOOTHING: usize = 200;

/// Walls, and a closed tour between them.
#[derive(Clone, Debug)]
pub struct Course {
    /// The walls of the map.
    pub walls: Vec<Segment>,
    /// Positions inside.
    pub inside: Vec<Point>,
    /// The tour; its end is next to its start.
    pub path: Vec<Point>,
    /// How many of the next points the robot looks at to see where on the tour it is. One leads
    /// into a dead end, where the robot may stay; more also lead out of it.
    pub(super) look_points: usize,
}

impl Course {
    /// A tour that visits all nodes of a map which can be reached, each next from the nearest.
    ///
    /// `None` if there are less than two.
    #[must_use]
    pub fn new(map: &Map, walls: Vec<Segment>) -> Option<Self> {
        let layout = Layout::around_walls(&walls, 0.1, CELL_M).ok()?;
        let field = DistanceField::from_walls(layout, &walls, 1.0);
        let mut left = map.nodes.clone();
        let first = left.pop()?;
        let mut at = first;
        let mut path: Vec<Point> = Vec::new();
        loop {
            let ways = left.iter().enumerate().filter_map(|(index, node)| {
                let way = shortest(&field, at, *node)?;
                Some((length_m(&way), index, way))
            });
            let Some((_, index, way)) = ways.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            at = left.swap_remove(index);
            path.extend(way);
        }
        path.extend(shortest(&field, at, first)?);
        let path = smooth(&field, resample(&path));
        (path.len() > 10).then_some(Self {
            walls,
            inside: map.nodes.clone(),
            path,
            look_points: 1,
        })
    }

    /// The length of the tour in metres.
    #[must_use]
    pub fn length_m(&self) -> f64 {
        length_m(&self.path)
    }
}

fn length_m(path: &[Point]) -> f64 {
    path.windows(2)
        .map(|pair| pair[1].minus(pair[0]).length())
        .sum()
}

/// The cheapest way between two positions (Dijkstra).
fn shortest(field: &DistanceField, from: Point, to: Point) -> Option<Vec<Point>> {
    let layout = *field.layout();
    let (start, goal) = (layout.index_at(from)?, layout.index_at(to)?);
    let mut costs = vec![u32::MAX; layout.cells()];
    let mut before = vec![usize::MAX; layout.cells()];
    let mut queue = BinaryHeap::from([Reverse((0, goal))]);
    costs[goal] = 0;
    while let Some(Reverse((cost, index))) = queue.pop() {
        if index == start {
            break;
        }
        if cost > costs[index] {
            continue;
        }
        let (column, row) = (index % layout.columns, index / layout.columns);
        for (dx, dy) in [
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (1, -1),
            (-1, 1),
            (-1, -1),
        ] {
            let (Some(x), Some(y)) = (column.checked_add_signed(dx), row.checked_add_signed(dy))
            else {
                continue;
            };
            if x >= layout.columns || y >= layout.rows {
                continue;
            }
            let distance_m = field.distance_of_cell_m(x, y);
            if distance_m < CLEARANCE_M {
                continue;
            }
            let step = if dx != 0 && dy != 0 { 1414.0 } else { 1000.0 };
            let factor = 1.0 + 4.0 * ((COMFORT_M - distance_m) / COMFORT_M).max(0.0);
            let next_cost = cost + (step * factor) as u32;
            let next = layout.index(x, y);
            if next_cost < costs[next] {
                costs[next] = next_cost;
                before[next] = index;
                queue.push(Reverse((next_cost, next)));
            }
        }
    }
    if costs[start] == u32::MAX {
        return None;
    }
    let mut way = Vec::new();
    let mut index = start;
    while index != usize::MAX {
        way.push(layout.centre(index % layout.columns, index / layout.columns));
        index = before[index];
    }
    Some(way)
}

/// Points with equal distances on the same line.
fn resample(path: &[Point]) -> Vec<Point> {
    let mut points = Vec::new();
    let mut rest_m = 0.0;
    for pair in path.windows(2) {
        let way = pair[1].minus(pair[0]);
        let length_m = way.length();
        while rest_m < length_m {
            points.push(pair[0].plus(way.times(rest_m / length_m)));
            rest_m += SPACING_M;
        }
        rest_m -= length_m;
    }
    points
}

/// Rounds the corners as far as the walls allow.
fn smooth(field: &DistanceField, mut path: Vec<Point>) -> Vec<Point> {
    let count = path.len();
    for _ in 0..SMOOTHING {
        for index in 0..count {
            let (before, after) = (path[(index + count - 1) % count], path[(index + 1) % count]);
            let middle = before.plus(after).times(0.5);
            if field.distance_m(middle) >= CLEARANCE_M {
                path[index] = middle;
            }
        }
    }
    resample(&path)
}
