//! Writes maps in the `.roson` format. PURE.

use amber_values::MapPose;
use serde_json::{Value, json};

use crate::geometry::{Point, Pose, Segment};
use crate::map::Map;

/// The height of walls in the file. Nothing here uses it, but other programs require it.
const HEIGHT_M: f64 = 1.0;
/// Opaque black.
const COLOUR: &str = "ff000000";
/// Coordinates are rounded to a tenth of a millimetre.
const STEPS_PER_M: f64 = 1e4;

impl Map {
    /// The map as the text of a `.roson` file, one wall per line. [`Map::parse`] reads it; closed
    /// gates have become walls.
    #[must_use]
    pub fn to_roson(&self) -> String {
        let walls = self.walls.iter().zip(1..).map(|(wall, number)| {
            let width = self
                .thicknesses_m
                .get(number - 1)
                .copied()
                .unwrap_or_default();
            json!({
                "type": "wall", "id": format!("Wall{number}"), "width": rounded(width),
                "height": HEIGHT_M, "color": COLOUR, "from": from(wall), "to": to(wall),
            })
        });
        let gates = self
            .gates
            .iter()
            .zip(self.walls.len() + 1..)
            .map(|(gate, number)| {
                json!({
                    "type": "gate", "id": format!("Wall{number}"), "kind": "door", "blocked": 0.0,
                    "from": from(gate), "to": to(gate),
                })
            });
        // The graph first: its links name its places by their numbers.
        let outside = |node: &&Point| !self.graph.places.contains(node);
        let places = self.graph.places.iter();
        let places = places.chain(self.nodes.iter().filter(outside)).zip(1..);
        let nodes = places.map(|(node, number): (_, usize)| {
            let is_inside = self.nodes.contains(node);
            json!({
                "type": "node", "id": node_id(number),
                "kind": if is_inside { "spaceNode" } else { "gateNode" },
                "position": place(*node),
            })
        });
        let links = self.graph.edges.iter().map(|link| {
            json!({
                "type": "node-nodes", "nodeFromId": node_id(link.from + 1),
                "nodeToId": node_id(link.to + 1), "cost": rounded(link.cost), "blocked": 0.0,
            })
        });
        let robots = self.robots.iter().zip(1..).map(|(robot, number)| {
            let at = MapPose::from(*robot);
            json!({
                "type": "robot", "id": format!("Robot{number}"), "kind": "robot",
                "location": {
                    "x": rounded(at.x_m), "y": rounded(at.y_m), "z": 0.0,
                    "alpha": rounded(at.heading_rad),
                },
            })
        });
        let sections = [
            ("walls", lines(walls)),
            ("gates", lines(gates)),
            ("nodes", lines(nodes)),
            ("node-nodes", lines(links)),
            ("robots", lines(robots)),
        ];
        let mut text = format!("{{\n  \"name\": {}", Value::from(self.name.as_str()));
        for (key, lines) in sections {
            text += &format!(",\n  \"{key}\": [{lines}]");
        }
        text + "\n}\n"
    }
}

fn node_id(number: usize) -> String {
    format!("Node{number}")
}

/// One element per line.
fn lines(elements: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = elements.map(|element| format!("\n    {element}")).collect();
    if lines.is_empty() {
        return String::new();
    }
    lines.join(",") + "\n  "
}

fn from(line: &Segment) -> Value {
    place(line.from)
}

fn to(line: &Segment) -> Value {
    place(line.to)
}

/// A position in the frame of files, with y down.
fn place(at: Point) -> Value {
    let place = MapPose::from(Pose { at, heading: 0.0 });
    json!({"x": rounded(place.x_m), "y": rounded(place.y_m)})
}

fn rounded(value: f64) -> f64 {
    // A sum, so that -0 becomes 0.
    (value * STEPS_PER_M).round() / STEPS_PER_M + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_map_is_read_as_it_was() {
        let flat = Map::flat();
        let text = flat.to_roson();
        let back = Map::parse(&text).unwrap();
        assert_eq!(back, flat);
        assert_eq!(back.to_roson(), text);
    }

    #[test]
    fn other_programs_find_all_keys_that_they_require() {
        let map = Map {
            name: "a \"new\" map".to_owned(),
            walls: vec![Segment {
                from: Point::new(0.0, -1.0),
                to: Point::new(0.123_456, 0.0),
            }],
            ..Map::default()
        };
        let text = map.to_roson();
        let value: Value = serde_json::from_str(&text).unwrap();
        let wall = &value["walls"][0];
        for key in ["type", "id", "width", "height", "color", "from", "to"] {
            assert!(!wall[key].is_null(), "{key}: {text}");
        }
        assert_eq!(wall["from"], json!({"x": 0.0, "y": 1.0}));
        assert_eq!(wall["to"], json!({"x": 0.1235, "y": 0.0}));
        assert_eq!(Map::parse(&text).unwrap().name, map.name);
    }
}
