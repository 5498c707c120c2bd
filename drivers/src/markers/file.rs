//! The file of known markers. PURE.
//!
//! It has map coordinates: metres with x to the right and **y down**, and degrees clockwise from x. The
//! simulation writes such a file.

use std::collections::BTreeMap;

use amber_map::MapPose;
use amber_navigation::markers::{COUNT, Known, Places};
use serde::Deserialize;

/// The file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MarkerFile {
    /// The side of the black squares, and the height of their centres above the floor: of all that have
    /// none of their own.
    pub(crate) side_m: Option<f64>,
    pub(crate) height_m: Option<f64>,
    pub(crate) marker: Vec<Marker>,
}

/// A marker in the file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marker {
    id: u32,
    /// The place of its centre on the map.
    x_m: f64,
    y_m: f64,
    /// The direction in which it looks, clockwise from x.
    heading_deg: f64,
    side_m: Option<f64>,
    height_m: Option<f64>,
}

/// Why a file is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FileError {
    #[error("marker {0} is defined twice")]
    Twice(u32),
    #[error("marker {0}: the dictionary has the markers 0 to {last}", last = COUNT - 1)]
    Number(u32),
    #[error("marker {0}: its place must be finite numbers")]
    Place(u32),
    #[error("marker {0}: its side must be given, from 0.01 to 5 m")]
    Side(u32),
    #[error("marker {0}: its height must be given, from 0 to 20 m")]
    Height(u32),
}

impl MarkerFile {
    /// The markers in the plane frame.
    pub(crate) fn places(&self) -> Result<Places, FileError> {
        let mut known = BTreeMap::new();
        for marker in &self.marker {
            let id = marker.id;
            if id >= COUNT {
                return Err(FileError::Number(id));
            }
            let numbers = [marker.x_m, marker.y_m, marker.heading_deg];
            if !numbers.into_iter().all(f64::is_finite) {
                return Err(FileError::Place(id));
            }
            let side_m = marker.side_m.or(self.side_m);
            let side_m = side_m.filter(|side_m| (0.01..=5.0).contains(side_m));
            let height_m = marker.height_m.or(self.height_m);
            let height_m = height_m.filter(|height_m| (0.0..=20.0).contains(height_m));
            let heading_rad = marker.heading_deg.to_radians();
            let place = Known {
                pose: MapPose::new(marker.x_m, marker.y_m, heading_rad).into(),
                height_m: height_m.ok_or(FileError::Height(id))?,
                side_m: side_m.ok_or(FileError::Side(id))?,
            };
            if known.insert(id, place).is_some() {
                return Err(FileError::Twice(id));
            }
        }
        Ok(Places::new(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Result<Places, FileError> {
        toml::from_str::<MarkerFile>(text).unwrap().places()
    }

    const MARKER: &str = "[[marker]]\nid = 3\nx_m = 1.5\ny_m = 2.0\nheading_deg = 90\n";

    #[test]
    fn places_are_turned_into_the_plane() {
        let places = places(&format!(
            "side_m = 0.2\nheight_m = 0.25\n{MARKER}side_m = 0.1"
        ))
        .unwrap();
        let known = places.known(3).unwrap();
        assert_eq!((known.side_m, known.height_m), (0.1, 0.25));
        assert_eq!((known.pose.at.x, known.pose.at.y), (1.5, -2.0));
        assert!((known.pose.heading + std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert_eq!(places.known(4), None);
    }

    #[test]
    fn the_file_of_the_simulation_is_read() {
        let map = amber_map::Map::flat();
        let walls = amber_sim::camera::markers::WallMarkers::on(&map.faces());
        let places = places(&walls.file()).unwrap();
        assert!(!walls.all().is_empty());
        for marker in walls.all() {
            let known = places.known(marker.id.into()).unwrap();
            assert!(known.pose.at.minus(marker.pose.at).length() < 1e-3);
            assert!(amber_map::wrap(known.pose.heading - marker.pose.heading).abs() < 1e-3);
        }
    }

    #[test]
    fn invalid_files_are_rejected() {
        let sizes = "side_m = 0.2\nheight_m = 0.25\n";
        for (text, error) in [
            (format!("{sizes}{MARKER}{MARKER}"), FileError::Twice(3)),
            (format!("side_m = 0.2\n{MARKER}"), FileError::Height(3)),
            (format!("height_m = 0.2\n{MARKER}"), FileError::Side(3)),
            (
                format!("side_m = 9.0\nheight_m = 1.0\n{MARKER}"),
                FileError::Side(3),
            ),
            (
                format!("{sizes}{}", MARKER.replace("1.5", "nan")),
                FileError::Place(3),
            ),
            (
                format!("{sizes}{}", MARKER.replace("id = 3", "id = 50")),
                FileError::Number(50),
            ),
        ] {
            assert_eq!(places(&text), Err(error));
        }
    }
}
