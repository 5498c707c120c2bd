//! The node graph of a map: places, and the links between them along which a robot may drive. PURE.

use crate::geometry::Point;

/// Places and the links between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The positions of all nodes, also of those at gates.
    pub places: Vec<Point>,
    /// The links that are open. Each has one direction.
    pub edges: Vec<Edge>,
}

/// A link from one place to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The index of the place where it begins.
    pub from: usize,
    /// The index of the place where it ends.
    pub to: usize,
    /// Its cost, usually its length in metres.
    pub cost: f64,
}
