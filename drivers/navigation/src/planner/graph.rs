//! A path along the node graph of a map. PURE.
//!
//! The robot drives to a node, along the links, and from a node to the target: Dijkstra's algorithm
//! ("A note on two problems in connexion with graphs", 1959) over the nodes. A link counts only if the
//! robot fits along it, so obstacles that are not on the map close links.
//!
//! All nodes that a free straight line joins with the start are candidates for the first one. If there
//! are none, the nearest nodes are, with a path of the grid; the same is done at the target. If a
//! free straight line joins start and target, no node is needed. So the direction of a link does not
//! bind a robot that sees the node behind it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use amber_map::{Graph, Point};

use super::{COST_PER_M, Clearances, NoPath};

/// Without a node in sight, so many of the nearest ones are tried: each takes a search of the grid.
const NEAREST: usize = 3;

/// A way between the robot or the target and a node.
#[derive(Clone, Debug)]
struct Access {
    node: usize,
    length_m: f64,
    /// From the start to the node, or from the node to the target, with both ends.
    points: Vec<Point>,
}

/// The start or end of a search: a cell, and the position in it.
type Place = (usize, Point);

impl Clearances<'_> {
    /// The corners of the best path along a graph.
    pub(super) fn along_graph(
        &self,
        graph: &Graph,
        from: usize,
        to: Place,
    ) -> Result<Vec<Point>, NoPath> {
        let start = (from, self.centre(from));
        if self.line_cost(start.1, to.1).is_some() {
            return Ok(vec![start.1, to.1]);
        }
        let first = self.accesses(graph, start);
        if first.is_empty() {
            return Err(NoPath::FarFromGraph);
        }
        let mut last = self.accesses(graph, to);
        if last.is_empty() {
            return Err(NoPath::GoalFarFromGraph);
        }
        for access in &mut last {
            access.points.reverse();
        }
        self.join(graph, &first, &last).ok_or(NoPath::Unlinked)
    }

    /// The ways from a place to nodes.
    fn accesses(&self, graph: &Graph, (cell, at): Place) -> Vec<Access> {
        let distance_m = |node: usize| graph.places[node].minus(at).length();
        let nodes = 0..graph.places.len();
        let in_sight = nodes.clone().filter_map(|node| {
            self.line_cost(at, graph.places[node])?;
            Some(Access {
                node,
                length_m: distance_m(node),
                points: vec![at, graph.places[node]],
            })
        });
        let in_sight: Vec<Access> = in_sight.collect();
        if !in_sight.is_empty() {
            return in_sight;
        }
        let mut nearest: Vec<usize> = nodes.collect();
        nearest.sort_by(|a, b| distance_m(*a).total_cmp(&distance_m(*b)));
        let by_grid = nearest.into_iter().take(NEAREST).filter_map(|node| {
            let goal = self.layout().index_at(graph.places[node])?;
            let free = self.is_free(goal).then_some(goal)?;
            let mut points = self.corners(cell, free, graph.places[node])?;
            if let Some(first) = points.first_mut() {
                *first = at;
            }
            let length_m = points
                .windows(2)
                .map(|pair| pair[1].minus(pair[0]).length());
            Some(Access {
                node,
                length_m: length_m.sum(),
                points,
            })
        });
        by_grid.collect()
    }

    /// The cheapest way from one of the first accesses along links to one of the last.
    fn join(&self, graph: &Graph, first: &[Access], last: &[Access]) -> Option<Vec<Point>> {
        let cost = |cost: f64| (cost * COST_PER_M).round() as u64;
        let mut links = vec![Vec::new(); graph.places.len()];
        for link in &graph.edges {
            let (from, to) = (graph.places[link.from], graph.places[link.to]);
            if self.line_cost(from, to).is_some() {
                links[link.from].push(*link);
            }
        }
        let mut costs = vec![u64::MAX; graph.places.len()];
        let mut before = vec![None; graph.places.len()];
        let mut waiting = BinaryHeap::new();
        for access in first {
            let sum = cost(access.length_m);
            if sum < costs[access.node] {
                costs[access.node] = sum;
                waiting.push((Reverse(sum), access.node));
            }
        }
        while let Some((Reverse(sum), node)) = waiting.pop() {
            if sum > costs[node] {
                continue;
            }
            for link in &links[node] {
                let next = sum.saturating_add(cost(link.cost).max(1));
                if next < costs[link.to] {
                    costs[link.to] = next;
                    before[link.to] = Some(node);
                    waiting.push((Reverse(next), link.to));
                }
            }
        }
        let end = last
            .iter()
            .filter(|access| costs[access.node] < u64::MAX)
            .min_by_key(|access| costs[access.node].saturating_add(cost(access.length_m)))?;
        let mut nodes = vec![end.node];
        while let Some(node) = nodes.last().and_then(|node| before[*node]) {
            nodes.push(node);
        }
        nodes.reverse();
        let begin = first.iter().find(|access| access.node == nodes[0])?;
        let mut points = begin.points.clone();
        points.extend(nodes.iter().skip(1).map(|node| graph.places[*node]));
        points.extend(end.points.iter().skip(1));
        Some(points)
    }
}

#[cfg(test)]
mod tests {
    use amber_map::{Edge, Map, MapPose, Pose};

    use super::super::{Config, NoGraph, Planner};
    use super::*;

    fn at(x: f64, y: f64) -> Point {
        Pose::from(MapPose::new(x, y, 0.0)).at
    }

    fn flat() -> Planner {
        let map = Map::flat();
        let planner = Planner::new(Config::default(), &map.faces()).unwrap();
        planner.with_graph(map.graph).unwrap()
    }

    /// The distance of the path from a place.
    fn passes_m(planner: &Planner, from: Point, to: Point, place: Point) -> f64 {
        let path = planner.plan(from, to, 0.1, &[]).unwrap();
        path.project(place, 0.0, f64::INFINITY).left_m.abs()
    }

    #[test]
    fn the_path_follows_the_links() {
        let planner = flat();
        assert_eq!(planner.narrow_links(), 0);
        // From one room into another, by the doors and the middle of the hall.
        let (from, to) = (at(1.0, 1.0), at(5.0, 1.2));
        for place in [at(1.4, 2.0), at(3.5, 2.6), at(5.5, 2.0)] {
            let distance_m = passes_m(&planner, from, to, place);
            assert!(distance_m < 0.2, "{place:?}: {distance_m}");
        }
    }

    #[test]
    fn without_walls_between_the_robot_needs_no_node() {
        let path = flat().plan(at(1.0, 1.0), at(1.8, 1.4), 0.1, &[]).unwrap();
        let straight_m = 0.8_f64.hypot(0.4);
        assert!((path.length_m() - straight_m).abs() < 0.05);
    }

    #[test]
    fn obstacles_close_links() {
        let planner = flat();
        let (from, to) = (at(2.1, 4.3), at(5.7, 4.4));
        // By the door between the two rooms, or by the hall.
        let door = at(4.4, 4.7);
        assert!(passes_m(&planner, from, to, door) < 0.1);
        let around = planner.plan(from, to, 0.1, &[door]).unwrap();
        assert!(
            around
                .project(at(3.5, 2.6), 0.0, f64::INFINITY)
                .left_m
                .abs()
                < 0.3
        );
    }

    #[test]
    fn links_have_a_direction() {
        // Three nodes in the hall.
        let link = |from, to| Edge {
            from,
            to,
            cost: 1.0,
        };
        let graph = Graph {
            places: vec![at(1.4, 2.3), at(3.5, 2.6), at(5.5, 2.3)],
            edges: vec![link(0, 1), link(1, 2)],
        };
        let planner = flat();
        let clearances = Clearances::new(&planner, &[]);
        let access = |node: usize| Access {
            node,
            length_m: 0.0,
            points: vec![graph.places[node]],
        };
        let there = clearances.join(&graph, &[access(0)], &[access(2)]);
        assert_eq!(there, Some(graph.places.clone()));
        assert_eq!(clearances.join(&graph, &[access(2)], &[access(0)]), None);
    }

    #[test]
    fn a_start_without_a_node_in_sight_uses_the_grid() {
        let map = Map::flat();
        let mut graph = map.graph.clone();
        // No node in the room at the upper left, and none in its door.
        for (x, y) in [(1.4, 1.0), (1.4, 1.9), (1.4, 2.3)] {
            let gone = graph.places.iter().position(|place| *place == at(x, y));
            let gone = gone.unwrap();
            graph
                .edges
                .retain(|link| link.from != gone && link.to != gone);
            graph.places[gone] = at(-50.0, -50.0);
        }
        let planner = Planner::new(Config::default(), &map.faces()).unwrap();
        let planner = planner.with_graph(graph).unwrap();
        let path = planner.plan(at(0.5, 0.5), at(5.5, 1.0), 0.1, &[]).unwrap();
        assert_eq!(path.at(0.0), at(0.5, 0.5));
        assert!(path.end().minus(at(5.5, 1.0)).length() < 0.02);
    }

    #[test]
    fn without_a_way_the_reason_is_named() {
        let map = Map::flat();
        let grid = || Planner::new(Config::default(), &map.faces()).unwrap();
        assert_eq!(grid().with_graph(Graph::default()).unwrap_err(), NoGraph);
        // Two nodes that are far from everything, and two in one room.
        let graph = |places: [(f64, f64); 2]| Graph {
            places: places.map(|(x, y)| at(x, y)).to_vec(),
            edges: vec![Edge {
                from: 0,
                to: 1,
                cost: 1.0,
            }],
        };
        let rooms = (at(1.0, 1.0), at(5.0, 1.2));
        let planner = grid().with_graph(graph([(-9.0, -9.0), (-8.0, -9.0)]));
        let error = planner.unwrap().plan(rooms.0, rooms.1, 0.1, &[]);
        assert_eq!(error.unwrap_err(), NoPath::FarFromGraph);
        // The second node is in the other room: the link goes through walls.
        let planner = grid().with_graph(graph([(1.4, 1.0), (5.5, 1.0)]));
        let planner = planner.unwrap();
        assert_eq!(planner.narrow_links(), 1);
        let error = planner.plan(rooms.0, rooms.1, 0.1, &[]);
        assert_eq!(error.unwrap_err(), NoPath::Unlinked);
    }
}
