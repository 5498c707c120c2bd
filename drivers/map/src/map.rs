//! Maps in the `.roson` format: JSON with walls, gates, nodes and robots. PURE.
//!
//! A file uses the map frame: x to the right, **y down**, angles clockwise. A [`Map`] holds the plane
//! frame, with y up and angles counter-clockwise.
//!
//! Only `walls` is required. The parser ignores all keys that have no field in [`Map`], so files with other keys, dangling references, or either kind of line ends load as well.

use std::collections::HashMap;
use std::f64::consts::FRAC_PI_2;

use amber_values::MapPose;
use serde::Deserialize;

use crate::geometry::{Point, Pose, Segment};
use crate::graph::{Edge, Graph};

/// The maps included in the program: their names and their `.roson` text.
///
/// `flat` is a flat of 7.0 m x 5.6 m. `maze` is a maze of 3.6 m x 4.3 m with gates of 0.55 m, as
/// narrow as the laboratory of the original system.
pub const BUILT_IN: [(&str, &str); 2] = [
    ("flat", include_str!("../maps/flat.roson")),
    ("maze", include_str!("../maps/maze.roson")),
];

/// The largest coordinate of a map, in metres.
pub const MAX_EXTENT_M: f64 = 10_000.0;
/// A wall with a larger thickness counts as a line.
const MAX_THICKNESS_M: f64 = 10.0;
/// The maximum number of walls.
const MAX_WALLS: usize = 100_000;
/// The maximum number of links between nodes: a plan checks each of them, in less than a second.
const MAX_LINKS: usize = 20_000;
/// A gate that is blocked by more than this counts as a wall, and a link of nodes is closed.
const BLOCKED: f64 = 0.5;

/// Walls, open gates, start poses and nodes of a map, in the plane frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// The name in the file, or an empty string.
    pub name: String,
    /// The centre lines of walls, and of closed gates.
    pub walls: Vec<Segment>,
    /// The thickness of each of [`Map::walls`], in metres; 0 if the file does not state it.
    pub thicknesses_m: Vec<f64>,
    /// Open gates.
    pub gates: Vec<Segment>,
    /// The start poses of robots.
    pub robots: Vec<Pose>,
    /// Positions inside rooms.
    pub nodes: Vec<Point>,
    /// All nodes with their links; empty if the map has none.
    pub graph: Graph,
}

/// The reason why a map is rejected.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It is not JSON, or does not have this form.
    #[error("not a .roson map: {0}")]
    Form(#[from] serde_json::Error),
    /// The map has no walls.
    #[error("the map has no walls")]
    NoWalls,
    /// A coordinate is out of range.
    #[error("{0} {1:?}: coordinates must be at most {MAX_EXTENT_M} m")]
    Coordinates(&'static str, String),
    /// There are too many walls.
    #[error("more than {MAX_WALLS} walls: {0}")]
    TooMany(usize),
    /// There are too many links between nodes.
    #[error("more than {MAX_LINKS} links between nodes: {0}")]
    TooManyLinks(usize),
}

impl Map {
    /// Parses a map.
    ///
    /// # Errors
    /// The text is not such a map; the error names the position.
    pub fn parse(text: &str) -> Result<Self, MapError> {
        let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}'))?;
        let mut map = Self {
            name: file.name.unwrap_or_default(),
            ..Self::default()
        };
        for wall in file.walls {
            map.extend_walls(&wall)?;
        }
        for gate in file.gates.unwrap_or_default() {
            let closed = gate.blocked.unwrap_or_default() > BLOCKED;
            if closed {
                map.extend_walls(&gate)?;
            } else {
                map.gates.extend(gate.segment()?);
            }
        }
        map.check()?;
        let robots = file.robots.unwrap_or_default().into_iter();
        map.robots = robots
            .filter_map(|robot| robot.location)
            .map(Position::pose)
            .collect();
        let nodes = file.nodes.unwrap_or_default();
        let inside = nodes
            .iter()
            .filter(|node| node.kind.as_deref() != Some("gateNode"));
        map.nodes = inside
            .filter_map(|node| node.position)
            .map(|place| place.pose().at)
            .collect();
        map.graph = graph(nodes, &file.links.unwrap_or_default())?;
        Ok(map)
    }

    /// Checks the number of walls.
    pub(crate) fn check(&self) -> Result<(), MapError> {
        match self.walls.len() {
            0 => Err(MapError::NoWalls),
            many if many > MAX_WALLS => Err(MapError::TooMany(many)),
            _ => Ok(()),
        }
    }

    fn extend_walls(&mut self, line: &Line) -> Result<(), MapError> {
        if let Some(segment) = line.segment()? {
            let width_m = line.width.unwrap_or_default();
            self.walls.push(segment);
            self.thicknesses_m
                .push(if width_m > 0.0 && width_m <= MAX_THICKNESS_M {
                    width_m
                } else {
                    0.0
                });
        }
        Ok(())
    }

    /// The faces of all walls: four sides of a thick wall, or one line.
    #[must_use]
    pub fn faces(&self) -> Vec<Segment> {
        let thick = self.walls.iter().zip(&self.thicknesses_m);
        thick
            .flat_map(|(wall, width_m)| faces(*wall, *width_m))
            .collect()
    }

    /// A small flat with several rooms, included in the program.
    ///
    /// # Panics
    /// Never: a test loads it.
    #[must_use]
    pub fn flat() -> Self {
        let (_, text) = BUILT_IN[0];
        Self::parse(text).expect("the map that is part of the program")
    }
}

/// The graph of these nodes; empty without links. Links of unknown nodes are ignored.
fn graph(nodes: Vec<Node>, links: &[NodeLink]) -> Result<Graph, MapError> {
    let mut places = Vec::new();
    let mut names = HashMap::new();
    for node in nodes {
        if let (Some(id), Some(position)) = (node.id, node.position) {
            if !position.is_valid() {
                return Err(MapError::Coordinates("node", id));
            }
            names.insert(id, places.len());
            places.push(position.pose().at);
        }
    }
    let open = links
        .iter()
        .filter(|link| link.blocked.unwrap_or_default() <= BLOCKED);
    let links = open.filter_map(|link| {
        let place = |id: &Option<String>| names.get(id.as_deref()?).copied();
        let (from, to) = (place(&link.from)?, place(&link.to)?);
        let length_m = places[to].minus(places[from]).length();
        let cost = link.cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        let cost = cost.unwrap_or(length_m);
        (from != to).then_some(Edge { from, to, cost })
    });
    let links: Vec<Edge> = links.collect();
    if links.len() > MAX_LINKS {
        return Err(MapError::TooManyLinks(links.len()));
    }
    match links.is_empty() {
        true => Ok(Graph::default()),
        false => Ok(Graph {
            places,
            edges: links,
        }),
    }
}

/// The faces of a wall, from its centre line and its thickness.
fn faces(wall: Segment, width_m: f64) -> Vec<Segment> {
    let along = wall.to.minus(wall.from);
    let length = along.length();
    if width_m == 0.0 || length == 0.0 {
        return vec![wall];
    }
    let aside = along.turned(FRAC_PI_2).times(width_m / 2.0 / length);
    let corners = [
        wall.from.plus(aside),
        wall.to.plus(aside),
        wall.to.minus(aside),
        wall.from.minus(aside),
    ];
    (0..4)
        .map(|index| Segment {
            from: corners[index],
            to: corners[(index + 1) % 4],
        })
        .collect()
}

#[derive(Deserialize)]
struct File {
    name: Option<String>,
    walls: Vec<Line>,
    gates: Option<Vec<Line>>,
    robots: Option<Vec<RobotEntry>>,
    nodes: Option<Vec<Node>>,
    #[serde(rename = "node-nodes")]
    links: Option<Vec<NodeLink>>,
}

#[derive(Deserialize)]
struct Line {
    id: Option<String>,
    blocked: Option<f64>,
    width: Option<f64>,
    from: Option<Position>,
    to: Option<Position>,
}

#[derive(Deserialize)]
struct RobotEntry {
    location: Option<Position>,
}

#[derive(Deserialize)]
struct Node {
    id: Option<String>,
    kind: Option<String>,
    position: Option<Position>,
}

#[derive(Deserialize)]
struct NodeLink {
    #[serde(rename = "nodeFromId")]
    from: Option<String>,
    #[serde(rename = "nodeToId")]
    to: Option<String>,
    cost: Option<f64>,
    blocked: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
struct Position {
    x: f64,
    y: f64,
    alpha: Option<f64>,
}

impl Position {
    fn pose(self) -> Pose {
        MapPose::new(self.x, self.y, self.alpha.unwrap_or_default()).into()
    }

    fn is_valid(self) -> bool {
        [self.x, self.y]
            .into_iter()
            .all(|number| number.abs() <= MAX_EXTENT_M)
    }
}

impl Line {
    /// The wall, unless it lacks an end.
    fn segment(&self) -> Result<Option<Segment>, MapError> {
        let (Some(from), Some(to)) = (self.from, self.to) else {
            return Ok(None);
        };
        if !(from.is_valid() && to.is_valid()) {
            let id = self.id.clone().unwrap_or_default();
            return Err(MapError::Coordinates("wall", id));
        }
        Ok(Some(Segment {
            from: from.pose().at,
            to: to.pose().at,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Write};
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::walls::Walls;

    const WALL: &str = r#"{"from": {"x": 0, "y": 1}, "to": {"x": 3, "y": 1.5}}"#;

    #[test]
    fn in_a_file_y_points_down_and_angles_are_clockwise() {
        let text = format!(
            r#"{{"name": "m", "walls": [{WALL}], "robots": [
                {{"id": "r", "location": {{"x": 1, "y": 2, "z": 1.0, "alpha": 1.5707963267948966}}}}
            ]}}"#
        );
        let map = Map::parse(&text).unwrap();
        assert_eq!(map.name, "m");
        assert_eq!(map.walls[0].to, Point::new(3.0, -1.5));
        assert_eq!(map.robots, [Pose::new(1.0, -2.0, -FRAC_PI_2)]);
        assert_eq!(
            MapPose::from(map.robots[0]),
            MapPose::new(1.0, 2.0, FRAC_PI_2)
        );
    }

    #[test]
    fn the_example_in_the_documentation_loads() {
        let page = include_str!("../../../docs/maps.md");
        let (_, rest) = page.split_once("```json\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let map = Map::parse(example).unwrap();
        assert_eq!(map.name, "room");
        assert_eq!((map.walls.len(), map.gates.len()), (4, 1));
        assert_eq!(MapPose::from(map.robots[0]), MapPose::new(1.5, 1.5, 0.0));
    }

    #[test]
    fn a_robot_can_turn_at_every_node_of_the_maps_in_the_program() {
        const RADIUS_M: f64 = 0.25; // 370 mm x 330 mm
        for (name, text) in BUILT_IN {
            let map = Map::parse(text).unwrap();
            assert_eq!((map.name.as_str(), map.robots.len()), (name, 1));
            let walls = Walls::new(map.faces());
            for node in map.nodes.into_iter().chain([map.robots[0].at]) {
                let clearance_m = walls.clearance_m(node);
                assert!(
                    clearance_m > RADIUS_M,
                    "{name}: {clearance_m} m at {node:?}"
                );
            }
        }
    }

    #[test]
    fn optional_parts_may_be_missing_or_invalid() {
        for text in [
            format!(r#"{{"walls": [{WALL}]}}"#),
            format!("{{\r\n\"walls\": [{WALL}]\r\n}}\r\n"),
            format!("\u{feff}{{\"walls\": [{WALL}]}}"),
            format!(r#"{{"walls": [{WALL}, {{"from": null, "to": null}}], "gates": null}}"#),
            format!(r#"{{"walls": [{WALL}], "sofas": 3, "space-walls": [{{"wallId": "gone"}}]}}"#),
            format!(r#"{{"walls": [{WALL}], "nodes": [{{"id": "n", "position": null}}]}}"#),
        ] {
            assert_eq!(Map::parse(&text).expect(&text).walls.len(), 1, "{text}");
        }
    }

    #[test]
    fn a_closed_gate_is_a_wall() {
        for (blocked, walls, open) in [("0.0", 1, 1), ("1.0", 2, 0)] {
            let gate = WALL.replacen('{', &format!("{{\"blocked\": {blocked}, "), 1);
            let text = format!(r#"{{"walls": [{WALL}], "gates": [{gate}]}}"#);
            let map = Map::parse(&text).expect(&text);
            assert_eq!((map.walls.len(), map.gates.len()), (walls, open), "{text}");
        }
    }

    #[test]
    fn nodes_and_their_open_links_are_a_graph() {
        let node = |id: &str, kind: &str, x: f64| {
            format!(r#"{{"id": "{id}", "kind": "{kind}", "position": {{"x": {x}, "y": 1}}}}"#)
        };
        let link = |from: &str, to: &str, more: &str| {
            format!(r#"{{"nodeFromId": "{from}", "nodeToId": "{to}"{more}}}"#)
        };
        let text = format!(
            r#"{{"walls": [{WALL}], "nodes": [{}, {}, {}], "node-nodes": [{}, {}, {}, {}]}}"#,
            node("A", "spaceNode", 0.5),
            node("G", "gateNode", 1.5),
            node("B", "spaceNode", 3.5),
            link("A", "G", ""),
            link("G", "B", r#", "cost": 7.5, "blocked": 0.0"#),
            link("B", "G", r#", "cost": 2.0, "blocked": 1.0"#),
            link("B", "gone", ""),
        );
        let map = Map::parse(&text).unwrap();
        assert_eq!(map.nodes.len(), 2);
        let places: Vec<f64> = map.graph.places.iter().map(|at| at.x).collect();
        assert_eq!(places, [0.5, 1.5, 3.5]);
        let link = |from, to, cost| Edge { from, to, cost };
        assert_eq!(map.graph.edges, [link(0, 1, 1.0), link(1, 2, 7.5)]);
        assert_eq!(Map::parse(&map.to_roson()).unwrap(), map);
    }

    #[test]
    fn a_thick_wall_has_four_faces() {
        let text = r#"{"walls": [
            {"width": 0.2, "from": {"x": 0, "y": 1}, "to": {"x": 3, "y": 1}},
            {"width": 0, "from": {"x": 0, "y": 5}, "to": {"x": 3, "y": 5}},
            {"width": -1, "from": {"x": 0, "y": 6}, "to": {"x": 3, "y": 6}}
        ]}"#;
        let map = Map::parse(text).unwrap();
        let faces = map.faces();
        assert_eq!((map.walls.len(), faces.len()), (3, 6));
        let walls = Walls::new(faces);
        let down = |y: f64| walls.cast(Point::new(1.5, y), -FRAC_PI_2, 10.0).unwrap();
        assert!((down(0.0) - 0.9).abs() < 1e-9, "the upper face at 0.9 m");
        assert!((down(-2.0) - 3.0).abs() < 1e-9, "a line at 5 m");
        let beside = walls.cast(Point::new(-1.0, -1.0), 0.0, 10.0).unwrap();
        assert!((beside - 1.0).abs() < 1e-9, "its end");
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, error) in [
            (
                "",
                "not a .roson map: EOF while parsing a value at line 1 column 0",
            ),
            (
                "{}",
                "not a .roson map: missing field `walls` at line 1 column 2",
            ),
            (r#"{"walls": []}"#, "the map has no walls"),
            (
                r#"{"walls": [{"id": "W7", "from": {"x": 1e9, "y": 0}, "to": {"x": 0, "y": 0}}]}"#,
                "wall \"W7\": coordinates must be at most 10000 m",
            ),
        ] {
            assert_eq!(Map::parse(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn the_flat_has_rooms_and_a_robot() {
        let map = Map::flat();
        assert!(map.walls.len() > 15);
        assert!(map.gates.len() >= 4);
        assert_eq!(map.robots.len(), 1);
        for gate in &map.gates {
            assert!(gate.to.minus(gate.from).length() >= 0.8, "{gate:?}");
        }
    }

    #[test]
    fn old_maps_load() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maps");
        if !folder.is_dir() {
            let _ = writeln!(
                io::stderr(),
                "SKIP maps: {} does not exist",
                folder.display()
            );
            return;
        }
        for (name, walls, gates, robots) in [
            ("Test7", 7, 0, 1),
            ("MazeRoboLabFullMap", 30, 0, 0),
            ("MazeRoboLabSplitIntoRooms8", 29, 9, 0),
        ] {
            let text = fs::read_to_string(folder.join(format!("{name}.roson"))).unwrap();
            let map = Map::parse(&text).expect(name);
            let counts = (map.walls.len(), map.gates.len(), map.robots.len());
            assert_eq!(counts, (walls, gates, robots), "{name}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_no_harm(text in ".{0,200}") {
            let _ = Map::parse(&text);
        }
    }
}
