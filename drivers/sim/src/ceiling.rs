//! Markers on the ceiling, and their visibility from below. PURE.
//!
//! A marker is in view if it is near enough and no wall is in between.

use std::fmt::Write;

use amber_map::{Map, MapPose, Point, Pose, Segment, Walls, wrap};

/// The file with the markers, in the folder of the devices.
pub const FILE: &str = "markers.toml";

/// The height of the markers above the sensor.
pub const HEIGHT_M: f64 = 2.4;

/// The horizontal distance at which a marker is visible. At this height the field of view has a
/// diameter of 2.5 to 3 m.
pub const VIEW_M: f64 = 1.4;

/// The distance between markers if the map does not name rooms: in the middle of four markers, all
/// of them are visible.
const GRID_M: f64 = 1.95;

/// The maximum number of markers. A larger map therefore has places without any.
const MAX_MARKERS: usize = 312;

/// The rotation of each marker relative to the previous one.
const TURN_DEG: f64 = 100.0;

/// A type of mark, for ceilings up to 2.9 m.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkType {
    /// 3 x 3 dots: 31 different marks.
    #[default]
    Hld1S,
    /// 4 x 4 dots: 4095 different marks.
    Hld1L,
}

impl MarkType {
    /// The name of the type, as in the parameter `MarkType`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hld1S => "HLD1S",
            Self::Hld1L => "HLD1L",
        }
    }

    /// The ids of all marks, ascending: 2, 16, 18, 32 and so on. Each dot is a bit, each row a
    /// hexadecimal digit. The dots in the corners are the same in all marks, so they have no bits
    /// in the id.
    fn ids(self) -> impl Iterator<Item = u32> {
        let dots = match self {
            Self::Hld1S => 0x272,
            Self::Hld1L => 0x6FF6,
        };
        (1..=dots).filter(move |id| id & !dots == 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// Its number.
    pub id: u32,
    /// Its position and rotation.
    pub pose: Pose,
}

/// All markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceiling {
    markers: Vec<Marker>,
    mark_type: MarkType,
}

/// A visible marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Its number.
    pub id: u32,
    /// The robot's pose in the frame of the marker.
    pub pose: Pose,
}

impl Ceiling {
    /// One marker in the middle of each room of the map, or a grid between the outermost walls.
    /// Each is rotated differently.
    #[must_use]
    pub fn over(map: &Map) -> Self {
        let places = match map.nodes.is_empty() {
            true => grid(&map.walls),
            false => map.nodes.clone(),
        };
        let count = places.len().min(MAX_MARKERS);
        let mark_type = match count <= MarkType::Hld1S.ids().count() {
            true => MarkType::Hld1S,
            false => MarkType::Hld1L,
        };
        let markers = places.into_iter().zip(0u32..).zip(mark_type.ids());
        let marker = |((at, index), id): ((Point, u32), u32)| Marker {
            id,
            pose: Pose {
                at,
                heading: wrap((f64::from(index) * TURN_DEG).to_radians()),
            },
        };
        Self {
            markers: markers.take(count).map(marker).collect(),
            mark_type,
        }
    }

    /// The type of all markers.
    #[must_use]
    pub fn mark_type(&self) -> MarkType {
        self.mark_type
    }

    /// The markers visible from a pose, the nearest first.
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

    /// The robot's pose in the frame of a marker, visible or not.
    #[must_use]
    pub fn from_marker(&self, id: u32, pose: Pose) -> Option<Pose> {
        let marker = self.markers.iter().find(|marker| marker.id == id)?;
        Some(relative(marker.pose, pose))
    }

    /// A marker file for drivers, in map coordinates: metres with y down, degrees clockwise.
    #[must_use]
    pub fn file(&self) -> String {
        let mut text =
            "# Markers on the ceiling: metres with y down, degrees clockwise.\n".to_owned();
        for marker in &self.markers {
            let MapPose {
                x_m,
                y_m,
                heading_rad,
                ..
            } = marker.pose.into();
            let heading_deg = heading_rad.to_degrees();
            let id = marker.id;
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[marker]]\nid = {id}\nx_m = {x_m:.4}\ny_m = {y_m:.4}\n\
                 heading_deg = {heading_deg:.4}\n"
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
    // Large maps have fewer markers than full coverage needs.
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
    fn each_room_of_the_flat_has_a_marker_with_its_own_rotation() {
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
    fn ids_match_real_marks() {
        let ids: Vec<u32> = MarkType::Hld1S.ids().collect();
        assert_eq!(
            (&ids[..8], ids.len()),
            (&[2, 16, 18, 32, 34, 48, 50, 64][..], 31)
        );
        assert_eq!(ids.last(), Some(&626));
        let ids: Vec<u32> = MarkType::Hld1L.ids().collect();
        assert_eq!((ids.len(), ids.last()), (4_095, Some(&28_662)));
    }

    #[test]
    fn markers_behind_walls_or_far_away_are_not_visible() {
        let map = Map::flat();
        let ceiling = Ceiling::over(&map);
        let walls = Walls::new(map.walls);
        let ids = |x, y| -> Vec<u32> {
            let seen = ceiling.seen_from(MapPose::new(x, y, 0.0).into(), &walls);
            seen.iter().map(|seen| seen.id).collect()
        };
        // In the hall: in its middle, through a door, and at its end.
        assert_eq!(ids(3.4, 2.2), [2, 18]);
        assert_eq!(ids(0.4, 2.9), [0; 0]);
        assert_eq!(ids(2.1, 4.0), [34]);
    }

    #[test]
    fn poses_are_in_the_frame_of_the_marker() {
        let ceiling = Ceiling {
            markers: vec![Marker {
                id: 7,
                pose: Pose::new(1.0, 2.0, 90f64.to_radians()),
            }],
            mark_type: MarkType::default(),
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
        let ceiling = Ceiling::over(&huge.unwrap());
        assert!(ceiling.markers.len() <= MAX_MARKERS);
        assert_eq!(ceiling.mark_type(), MarkType::Hld1L);
        assert_eq!(ceiling.markers[1].id, 4);
    }
}
