//! A path through the map. PURE.
//!
//! 1. A* (Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of minimum cost
//!    paths", 1968) over the cells whose clearance is at least [`Config::clearance_m`]. A metre
//!    costs more near walls, so the path keeps to the middle of a narrow passage.
//! 2. Shortcuts by line of sight, as in Theta* (Nash et al., 2007): a straight piece replaces a part
//!    of the path where it is not more expensive.
//! 3. Corners are rounded where there is room.
//!
//! With the node graph of a map ([`Planner::with_graph`]), the path follows its links instead, see
//! `graph`. If there is no path, the error contains the reason.

mod graph;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use amber_map::{Graph, Point, Segment, Walls};

use crate::grid::{DistanceField, GridError, Layout, Occupancy};
use crate::path::Path;

/// The cost of a path is counted in 1/100 mm, so that equal paths are equal.
const COST_PER_M: f64 = 100_000.0;
/// Clearances beyond this do not make a path cheaper.
const FAR_M: f64 = 0.6;
/// The border of the grid around the walls.
const BORDER_M: f64 = 0.3;
/// The distance of the points of a finished path.
const SPACING_M: f64 = 0.05;
/// The distance of the points of walls.
const WALL_SPACING_M: f64 = 0.01;
/// How often corners are rounded a little.
const ROUNDS: usize = 60;
/// A corner is rounded only where this much clearance remains.
const ROUND_CLEARANCE_M: f64 = 0.27;
/// How far a start in a narrow place may be from the nearest wide place.
const ESCAPE_M: f64 = 0.4;
/// A path may have at most this many pieces that are tried for a shortcut: a limit for time.
const MAX_SHORTCUT: usize = 400;

/// Maps with more cells get cells of twice the size, so that a search stays below a second.
const MAX_CELLS: usize = 1_000_000;

/// The configuration of a [`Planner`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The side length of a cell in metres.
    pub cell_m: f64,
    /// The smallest distance of the robot's centre from a wall: half its width and a margin.
    pub clearance_m: f64,
    /// The extra cost near walls: a metre at clearance `c` costs
    /// `1 + near_cost_m2 * (1/c - 1/0.6)^2`.
    pub near_cost_m2: f64,
    /// A path may come this much nearer to unknown cells than to walls, in metres.
    pub unknown_m: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cell_m: 0.025,
            clearance_m: 0.2,
            near_cost_m2: 0.15,
            unknown_m: 0.08,
        }
    }
}

/// The reason why there is no path.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NoPath {
    /// The robot is where it cannot be.
    #[error("the robot is too near to a wall, or outside the map")]
    Start,
    /// The goal is not free.
    #[error("the target is too near to a wall or an obstacle, or outside the map")]
    Goal,
    /// Start and goal are not connected.
    #[error("no passage to the target is at least {0:.2} m wide")]
    Closed(f64),
    /// The robot cannot drive to any node of the graph.
    #[error("the robot cannot reach a node of the map's graph")]
    FarFromGraph,
    /// No node of the graph leads to the target.
    #[error("the target cannot be reached from a node of the map's graph")]
    GoalFarFromGraph,
    /// No way along the graph connects start and goal.
    #[error("the links of the map's nodes do not lead to the target")]
    Unlinked,
}

/// The map has no node graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the map has no links between nodes (`node-nodes`)")]
pub struct NoGraph;

/// Plans paths on a map.
#[derive(Clone, Debug)]
pub struct Planner {
    config: Config,
    walls: Walls,
    field: DistanceField,
    /// The path follows these links, if there are some.
    graph: Option<Graph>,
}

/// The clearance of each cell, with obstacles that are not on the map.
struct Clearances<'a> {
    planner: &'a Planner,
    /// In metres; empty without obstacles.
    changed: Vec<f32>,
}

impl Planner {
    /// Prepares a map.
    ///
    /// # Errors
    /// The map is empty or too large for the cells.
    pub fn new(config: Config, walls: &[Segment]) -> Result<Self, GridError> {
        let mut layout = Layout::around_walls(walls, BORDER_M, config.cell_m)?;
        if layout.cells() > MAX_CELLS {
            layout = Layout::around_walls(walls, BORDER_M, 2.0 * config.cell_m)?;
        }
        Ok(Self {
            config,
            walls: Walls::new(walls.to_vec()),
            field: DistanceField::from_walls(layout, walls, FAR_M),
            graph: None,
        })
    }

    /// Prepares a grid. Unknown cells are closed, and a path keeps away from them.
    #[must_use]
    pub fn of_occupancy(config: Config, occupancy: &Occupancy) -> Self {
        if occupancy.layout().cells() > MAX_CELLS {
            return Self::of_occupancy(config, &occupancy.coarser());
        }
        Self {
            config,
            walls: Walls::new(occupancy.lines()),
            field: DistanceField::with_unknown(occupancy, FAR_M, config.unknown_m),
            graph: None,
        }
    }

    /// Plans along the node graph of the map from now on.
    ///
    /// # Errors
    /// The graph has no links.
    pub fn with_graph(self, graph: Graph) -> Result<Self, NoGraph> {
        match graph.edges.is_empty() {
            true => Err(NoGraph),
            false => Ok(Self {
                graph: Some(graph),
                ..self
            }),
        }
    }

    /// How many links of the graph the robot cannot follow: they come too near to walls.
    #[must_use]
    pub fn narrow_links(&self) -> usize {
        let clearances = Clearances::new(self, &[]);
        let graph = self.graph.as_ref();
        graph.map_or(0, |graph| {
            let is_free = |link: &&amber_map::Edge| {
                let (from, to) = (graph.places[link.from], graph.places[link.to]);
                clearances.line_cost(from, to).is_none()
            };
            graph.edges.iter().filter(is_free).count()
        })
    }

    /// Points of the walls within a distance of a position.
    pub fn wall_points(&self, at: Point, within_m: f64) -> impl Iterator<Item = Point> + '_ {
        let walls = self.walls.segments().iter();
        walls.flat_map(move |wall| points_of(wall, at, within_m))
    }

    /// The distance from a position to the nearest wall of the map, at most 0.6 m.
    #[must_use]
    pub fn clearance_m(&self, at: Point) -> f64 {
        self.field.distance_m(at)
    }

    /// A path from a position to within a radius of a target, around obstacles that are not on the
    /// map.
    ///
    /// The path ends at the target if the robot fits there, and else at the nearest place where it
    /// does.
    ///
    /// # Errors
    /// There is no path.
    pub fn plan(
        &self,
        start: Point,
        target: Point,
        radius_m: f64,
        obstacles: &[Point],
    ) -> Result<Path, NoPath> {
        let clearances = Clearances::new(self, obstacles);
        let from = clearances.nearest(start, ESCAPE_M).ok_or(NoPath::Start)?;
        // A margin, so that arriving at the end of the path is arriving at the target.
        let to = clearances
            .nearest(target, 0.8 * radius_m)
            .ok_or(NoPath::Goal)?;
        let end = match self.field.layout().index_at(target) == Some(to) {
            true => target,
            false => clearances.centre(to),
        };
        let corners = match &self.graph {
            Some(graph) => clearances.along_graph(graph, from, (to, end))?,
            None => clearances
                .corners(from, to, end)
                .ok_or(NoPath::Closed(2.0 * self.config.clearance_m))?,
        };
        let mut points = clearances.rounded(&corners);
        // The way out of a narrow place, or within the first cell.
        points.insert(0, start);
        Path::new(points).ok_or(NoPath::Start)
    }
}

impl<'a> Clearances<'a> {
    fn new(planner: &'a Planner, obstacles: &[Point]) -> Self {
        let layout = planner.field.layout();
        let mut changed = Vec::new();
        if !obstacles.is_empty() {
            changed = (0..layout.cells())
                .map(|cell| {
                    let (column, row) = (cell % layout.columns, cell / layout.columns);
                    planner.field.distance_of_cell_m(column, row) as f32
                })
                .collect();
        }
        let reach = (FAR_M / layout.cell_m).ceil() as usize;
        for obstacle in obstacles {
            let Some((column, row)) = layout.cell_at(*obstacle) else {
                continue;
            };
            for row in row.saturating_sub(reach)..=(row + reach).min(layout.rows - 1) {
                for column in
                    column.saturating_sub(reach)..=(column + reach).min(layout.columns - 1)
                {
                    let distance_m = layout.centre(column, row).minus(*obstacle).length();
                    let cell: &mut f32 = &mut changed[layout.index(column, row)];
                    *cell = cell.min(distance_m as f32);
                }
            }
        }
        Self { planner, changed }
    }

    fn layout(&self) -> &Layout {
        self.planner.field.layout()
    }

    fn centre(&self, cell: usize) -> Point {
        let layout = self.layout();
        layout.centre(cell % layout.columns, cell / layout.columns)
    }

    /// The corners of the best path between two cells; `end` replaces the centre of the last one.
    fn corners(&self, from: usize, to: usize, end: Point) -> Option<Vec<Point>> {
        let cells = self.search(from, to)?;
        let mut points: Vec<Point> = cells.iter().map(|cell| self.centre(*cell)).collect();
        if let Some(last) = points.last_mut() {
            *last = end;
        }
        Some(self.shortened(&points))
    }

    fn of_cell_m(&self, cell: usize) -> f64 {
        let columns = self.layout().columns;
        self.changed.get(cell).map_or_else(
            || {
                self.planner
                    .field
                    .distance_of_cell_m(cell % columns, cell / columns)
            },
            |clearance_m| f64::from(*clearance_m),
        )
    }

    fn at_m(&self, at: Point) -> f64 {
        let cell = self.layout().index_at(at);
        cell.map_or(0.0, |cell| self.of_cell_m(cell))
    }

    fn is_free(&self, cell: usize) -> bool {
        self.of_cell_m(cell) >= self.planner.config.clearance_m
    }

    /// The cost of a metre.
    fn price(&self, clearance_m: f64) -> f64 {
        let near = (1.0 / clearance_m.max(0.01) - 1.0 / FAR_M).max(0.0);
        1.0 + self.planner.config.near_cost_m2 * near * near
    }

    /// The nearest free cell within a distance that no wall separates from a position.
    fn nearest(&self, at: Point, within_m: f64) -> Option<usize> {
        let layout = self.layout();
        let here = layout.index_at(at)?;
        if self.is_free(here) {
            return Some(here);
        }
        let (column, row) = layout.cell_at(at)?;
        let reach = (within_m / layout.cell_m).ceil() as usize;
        let rows = row.saturating_sub(reach)..=(row + reach).min(layout.rows - 1);
        rows.flat_map(|row| {
            let columns = column.saturating_sub(reach)..=(column + reach).min(layout.columns - 1);
            columns.map(move |column| (column, row))
        })
        .filter(|(column, row)| self.is_free(layout.index(*column, *row)))
        .map(|(column, row)| (layout.centre(column, row), layout.index(column, row)))
        .map(|(centre, cell)| (centre.minus(at).length(), centre, cell))
        .filter(|(distance_m, ..)| *distance_m <= within_m)
        .filter(|(_, centre, _)| self.planner.walls.is_open(at, *centre))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)))
        .map(|(_, _, cell)| cell)
    }

    /// A*: the cells from start to goal.
    fn search(&self, start: usize, goal: usize) -> Option<Vec<usize>> {
        let layout = self.layout();
        let columns = layout.columns;
        let cost = |length_m: f64| (length_m * COST_PER_M).round() as u64;
        let (straight_m, diagonal_m) = (layout.cell_m, layout.cell_m * 2.0_f64.sqrt());
        // The shortest way over cells without any obstacle.
        let rest = |cell: usize| {
            let dx = (cell % columns).abs_diff(goal % columns);
            let dy = (cell / columns).abs_diff(goal / columns);
            let diagonal = dx.min(dy) as f64 * diagonal_m;
            cost(diagonal + dx.abs_diff(dy) as f64 * straight_m)
        };
        let mut costs = vec![u64::MAX; layout.cells()];
        let mut before = vec![usize::MAX; layout.cells()];
        let mut waiting = BinaryHeap::from([(Reverse(rest(start)), start)]);
        costs[start] = 0;
        while let Some((Reverse(total), cell)) = waiting.pop() {
            if cell == goal {
                let mut cells = vec![goal];
                let mut cell = goal;
                while cell != start {
                    cell = before[cell];
                    cells.push(cell);
                }
                cells.reverse();
                return Some(cells);
            }
            if total > costs[cell].saturating_add(rest(cell)) {
                continue;
            }
            let (column, row) = (cell % columns, cell / columns);
            for (dx, dy) in NEIGHBOURS {
                let (Some(column), Some(row)) =
                    (column.checked_add_signed(dx), row.checked_add_signed(dy))
                else {
                    continue;
                };
                if column >= columns || row >= layout.rows {
                    continue;
                }
                let next = layout.index(column, row);
                let clearance_m = self.of_cell_m(next);
                if clearance_m < self.planner.config.clearance_m {
                    continue;
                }
                let step_m = if dx != 0 && dy != 0 {
                    diagonal_m
                } else {
                    straight_m
                };
                let sum = costs[cell] + cost(step_m * self.price(clearance_m)).max(1);
                if sum < costs[next] {
                    costs[next] = sum;
                    before[next] = cell;
                    waiting.push((Reverse(sum + rest(next)), next));
                }
            }
        }
        None
    }

    /// The points of a path without those that a straight line replaces at no higher cost.
    fn shortened(&self, points: &[Point]) -> Vec<Point> {
        let mut sums = vec![0.0];
        for pair in points.windows(2) {
            let last = sums.last().copied().unwrap_or_default();
            sums.push(last + self.line_cost(pair[0], pair[1]).unwrap_or(f64::INFINITY));
        }
        let mut short = Vec::new();
        let mut index = 0;
        while index + 1 < points.len() {
            short.push(points[index]);
            let last = (index + MAX_SHORTCUT).min(points.len() - 1);
            index = (index + 1..=last)
                .rev()
                .find(|end| {
                    let line = self.line_cost(points[index], points[*end]);
                    line.is_some_and(|cost| cost <= (sums[*end] - sums[index]) * 1.001)
                })
                .unwrap_or(index + 1);
        }
        short.extend(points.last());
        short
    }

    /// The cost of a straight line, if it is free.
    fn line_cost(&self, from: Point, to: Point) -> Option<f64> {
        let way = to.minus(from);
        let length_m = way.length();
        let steps = (length_m / self.layout().cell_m * 2.0).ceil().max(1.0);
        let mut cost = 0.0;
        for step in 0..=steps as u32 {
            let clearance_m = self.at_m(from.plus(way.times(f64::from(step) / steps)));
            if clearance_m < self.planner.config.clearance_m {
                return None;
            }
            cost += length_m / (steps + 1.0) * self.price(clearance_m);
        }
        Some(cost)
    }

    /// Evenly spaced points with rounded corners.
    fn rounded(&self, points: &[Point]) -> Vec<Point> {
        let Some(path) = Path::new(points.iter().copied()) else {
            return Vec::new();
        };
        let steps = (path.length_m() / SPACING_M).ceil().max(1.0);
        let mut even: Vec<Point> = (0..=steps as u32)
            .map(|step| path.at(path.length_m() * f64::from(step) / steps))
            .collect();
        for _ in 0..ROUNDS {
            for index in 1..even.len().saturating_sub(1) {
                let middle = even[index - 1].plus(even[index + 1]).times(0.5);
                let moved = even[index].plus(middle.minus(even[index]).times(0.5));
                let allowed_m = self.at_m(even[index]).min(ROUND_CLEARANCE_M);
                if self.at_m(moved) >= allowed_m {
                    even[index] = moved;
                }
            }
        }
        even
    }
}

/// Evenly spaced points of the part of a wall that is within a distance of a position.
fn points_of(wall: &Segment, at: Point, within_m: f64) -> impl Iterator<Item = Point> + use<> {
    let from = wall.from;
    let way = wall.to.minus(from);
    let length_m = way.length();
    let along = way.times(1.0 / length_m.max(1e-9));
    let beside_m = at.minus(from).dot(along);
    let square = within_m * within_m - at.minus(from.plus(along.times(beside_m))).length().powi(2);
    let half_m = square.max(0.0).sqrt();
    let first_m = (beside_m - half_m).max(0.0);
    let last_m = (beside_m + half_m).min(length_m);
    let steps = ((last_m - first_m) / WALL_SPACING_M).ceil();
    let is_near = square >= 0.0 && last_m >= first_m;
    let count = if is_near { steps as u32 + 1 } else { 0 };
    (0..count).map(move |step| {
        let way_m = first_m + (last_m - first_m) * f64::from(step) / steps.max(1.0);
        from.plus(along.times(way_m))
    })
}

const NEIGHBOURS: [(isize, isize); 8] = [
    (1, 0),
    (0, 1),
    (-1, 0),
    (0, -1),
    (1, 1),
    (-1, 1),
    (-1, -1),
    (1, -1),
];

#[cfg(test)]
mod tests;
