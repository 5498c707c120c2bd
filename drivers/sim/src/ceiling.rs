//! Markers on the ceiling, and which of them can be seen from below. PURE.
//!
//! A marker is in view when it is not too far away and no wall stands between.

use std::fmt::Write;

use crate::geometry::{Point, Pose, Segment, Walls, wrap};
use crate::map::{Map, to_map};

/// From the sensor up to the markers.
pub const HEIGHT_M: f64 = 2.4;

/// How far to the side a marker can be seen.
pub const VIEW_M: f64 = 2.0;

/// How far markers are apart where a map does not say where rooms are.
const GRID_M: f64 = 2.0;

/// No ceiling has more: so many numbers there are.
const MAX_MARKERS: usize = 312;

/// How much each marker is turned more than the one before.
const TURN_DEG: f64 = 100.0;

/// A marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// Its number.
    pub id: u32,
    /// Where it is, and how it is turned.
    pub pose: Pose,
}

/// All markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceiling {
    markers: Vec<Marker>,
}

/// A marker as it is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Its number.
    pub id: u32,
    /// Where the robot is in the frame of the marker.
    pub pose: Pose,
}

impl Ceiling {
    /// One marker in the middle of each room that the map names, or else a
    /// grid between the outermost walls. Each is turned another way.
    #[must_use]
    pub fn over(map: &Map) -> Self {
        let places = match map.nodes.is_empty() {
            true => grid(&map.walls),
            false => map.nodes.clone(),
        };
        let markers = places.into_iter().take(MAX_MARKERS).zip(0u32..);
        let marker = |(at, index): (Point, u32)| Marker {
            id: 2 + 2 * index,
            pose: Pose {
                at,
                heading: wrap((f64::from(index) * TURN_DEG).to_radians()),
            },
        };
        Self {
            markers: markers.map(marker).collect(),
        }
    }

    /// The markers that can be seen from a place, the nearest first.
    #[must_use]
    pub fn seen_from(&self, pose: Pose, walls: &Walls) -> Vec<Seen> {
        let mut seen: Vec<_> = (self.markers.iter())
            .filter(|marker| marker.pose.at.minus(pose.at).length() <= VIEW_M)
            .filter(|marker| walls.is_open(pose.at, marker.pose.at))
            .map(|marker| Seen {
                id: marker.id,
                pose: relative(marker.pose, pose),
            })
            .collect();
        let way = |seen: &Seen| seen.pose.at.length();
        seen.sort_by(|a, b| way(a).total_cmp(&way(b)));
        seen
    }

    /// Where the robot is in the frame of a marker, whether that is in view or not.
    #[must_use]
    pub fn from_marker(&self, id: u32, pose: Pose) -> Option<Pose> {
        let marker = self.markers.iter().find(|marker| marker.id == id)?;
        Some(relative(marker.pose, pose))
    }

    /// A file that says where the markers are, for drivers, as on the map:
    /// metres with y down, degrees clockwise.
    #[must_use]
    pub fn file(&self) -> String {
        let mut text =
            "# Markers on the ceiling: metres with y down, degrees clockwise.\n".to_owned();
        for marker in &self.markers {
            let (x, y, heading) = to_map(marker.pose);
            let heading = heading.to_degrees();
            let id = marker.id;
            // Writing to a text cannot fail.
            let _ = write!(
                text,
                "\n[[marker]]\nid = {id}\nx_m = {x:.4}\ny_m = {y:.4}\nheading_deg = {heading:.4}\n"
            );
        }
        text
    }
}

fn relative(from: Pose, pose: Pose) -> Pose {
    Pose {
        at: pose.at.minus(from.at).turned(-from.heading),
        heading: wrap(pose.heading - from.heading),
    }
}

fn grid(walls: &[Segment]) -> Vec<Point> {
    let (low, high) = Walls::new(walls.to_vec()).bounds();
    let size = high.minus(low);
    // Large maps have fewer markers than they need.
    let step_m = GRID_M.max((size.x * size.y / MAX_MARKERS as f64).sqrt());
    let count = |length: f64| (length / step_m).ceil().max(1.0) as u32;
    let (columns, rows) = (count(size.x), count(size.y));
    let place = |index: u32| {
        let (column, row) = (index % columns, index / columns);
        let part = |index: u32, count: u32| (f64::from(index) + 0.5) / f64::from(count);
        low.plus(Point::new(
            size.x * part(column, columns),
            size.y * part(row, rows),
        ))
    };
    (0..columns * rows).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_room_of_the_flat_has_a_marker_that_is_turned_its_own_way() {
        let map = Map::flat();
        let ceiling = Ceiling::over(&map);
        assert_eq!(ceiling.markers.len(), 6);
        let walls = Walls::new(map.walls);
        for marker in &ceiling.markers {
            let seen = ceiling.seen_from(marker.pose, &walls);
            assert_eq!(seen[0].id, marker.id);
            assert!(seen[0].pose.at.length() < 1e-9 && seen[0].pose.heading.abs() < 1e-9);
        }
    }

    #[test]
    fn behind_walls_and_far_away_there_is_none() {
        let map = Map::flat();
        let ceiling = Ceiling::over(&map);
        let walls = Walls::new(map.walls);
        let ids = |x, y| -> Vec<u32> {
            let seen = ceiling.seen_from(crate::map::from_map(x, y, 0.0), &walls);
            seen.iter().map(|seen| seen.id).collect()
        };
        // In the hall: its middle, through a door, and its end.
        assert_eq!(ids(3.6, 2.6), [2, 6]);
        assert_eq!(ids(0.4, 2.9), [0; 0]);
        assert_eq!(ids(2.1, 4.0), [10]);
    }

    #[test]
    fn poses_are_in_the_frame_of_the_marker() {
        let ceiling = Ceiling {
            markers: vec![Marker {
                id: 7,
                pose: Pose::new(1.0, 2.0, 90f64.to_radians()),
            }],
        };
        let robot = Pose::new(1.0, 3.0, 135f64.to_radians());
        let seen = ceiling.from_marker(7, robot).unwrap();
        assert!(
            seen.at.minus(Point::new(1.0, 0.0)).length() < 1e-9,
            "{seen:?}"
        );
        assert!((seen.heading.to_degrees() - 45.0).abs() < 1e-9);
        assert_eq!(ceiling.from_marker(8, robot), None);
        let file = "id = 7\nx_m = 1.0000\ny_m = -2.0000\nheading_deg = -90.0000\n";
        assert!(ceiling.file().ends_with(file), "{}", ceiling.file());
    }

    #[test]
    fn a_map_without_rooms_has_a_grid() {
        let map = Map {
            nodes: Vec::new(),
            ..Map::flat()
        };
        let ceiling = Ceiling::over(&map);
        assert_eq!(ceiling.markers.len(), 4 * 3);
        let huge =
            Map::parse(r#"{"walls": [{"from": {"x": 0, "y": 0}, "to": {"x": 9000, "y": 9000}}]}"#);
        assert!(Ceiling::over(&huge.unwrap()).markers.len() <= MAX_MARKERS);
    }
}
