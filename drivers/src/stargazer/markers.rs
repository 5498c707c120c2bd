//! Computes the position of the robot from the positions of markers. PURE.
//!
//! Files use map coordinates: metres with x to the right and **y down**, and degrees clockwise from
//! x. A StarGazer uses y up, but also counts degrees clockwise. The manufacturer's guide states no
//! direction; this follows from the code of other drivers, which all negate the angle and keep x
//! and y.

use std::collections::BTreeMap;

use amber_values::MarkerPose;
use serde::Deserialize;

use super::protocol::Sighting;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct MarkerFile {
    pub marker: Vec<Marker>,
}

/// A marker in a file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Its number.
    pub id: u32,
    /// Position to the right on the map.
    pub x_m: f64,
    /// Position down on the map.
    pub y_m: f64,
    /// Clockwise from x on the map: the direction of a robot for which the device reports 0
    /// degrees.
    #[serde(default)]
    pub heading_deg: f64,
}

/// Converts sightings to poses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Markers {
    /// The markers of the map; if empty, poses are relative to the marker.
    map: BTreeMap<u32, Marker>,
    /// The marker to which the device refers all sightings.
    reference: Option<u32>,
    /// The heading that the sensor reports when the robot faces 0 degrees.
    mounted_deg: f64,
}

/// The reason why a marker file is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// A marker is defined twice.
    #[error("marker {0} is defined twice")]
    Twice(u32),
    /// A coordinate is NaN or infinite.
    #[error("marker {0}: its coordinates must be finite numbers")]
    Place(u32),
    /// The reference marker is not defined.
    #[error("the reference marker {0} is not among the markers")]
    Reference(u32),
}

impl Markers {
    /// Creates a converter: to map coordinates with `file`, otherwise relative to the marker.
    ///
    /// # Errors
    /// See [`MarkerError`].
    pub fn new(
        file: MarkerFile,
        reference: Option<u32>,
        mounted_deg: f64,
    ) -> Result<Self, MarkerError> {
        let mut map = BTreeMap::new();
        for marker in file.marker {
            let Marker { id, x_m, y_m, .. } = marker;
            let numbers = [x_m, y_m, marker.heading_deg];
            if !numbers.into_iter().all(f64::is_finite) {
                return Err(MarkerError::Place(id));
            }
            if map.insert(id, marker).is_some() {
                return Err(MarkerError::Twice(id));
            }
        }
        if let Some(reference) = reference
            && !map.contains_key(&reference)
        {
            return Err(MarkerError::Reference(reference));
        }
        Ok(Self {
            map,
            reference,
            mounted_deg,
        })
    }

    /// The pose of the robot, without times.
    ///
    /// # Errors
    /// The number of the nearest marker, if none in view is on the map.
    pub fn pose(&self, seen: &[Sighting]) -> Result<MarkerPose, u32> {
        let on_map = seen.iter().find_map(|sighting| self.by(sighting));
        on_map.ok_or_else(|| seen.first().map_or(0, |nearest| nearest.marker))
    }

    /// Whether poses from different markers share one frame.
    pub fn is_map(&self) -> bool {
        !self.map.is_empty()
    }

    fn by(&self, seen: &Sighting) -> Option<MarkerPose> {
        let heading_deg = seen.heading_deg - self.mounted_deg;
        if self.map.is_empty() {
            return Some(MarkerPose {
                x_cm: seen.x_cm,
                y_cm: seen.y_cm,
                z_cm: seen.height_cm,
                heading_deg: wrap_deg(heading_deg),
                marker: seen.marker,
                timestamp_ms: None,
                lost_ms: None,
            });
        }
        let marker = self.map.get(&self.reference.unwrap_or(seen.marker))?;
        // Rotates the marker's frame onto the map and flips y.
        let (sin, cos) = marker.heading_deg.to_radians().sin_cos();
        let (x_cm, y_cm) = (seen.x_cm, -seen.y_cm);
        Some(MarkerPose {
            x_cm: marker.x_m * 100.0 + x_cm * cos - y_cm * sin,
            y_cm: marker.y_m * 100.0 + x_cm * sin + y_cm * cos,
            z_cm: seen.height_cm,
            heading_deg: wrap_deg(marker.heading_deg + heading_deg),
            marker: seen.marker,
            timestamp_ms: None,
            lost_ms: None,
        })
    }
}

/// Normalizes an angle to above -180 and up to 180.
pub(super) fn wrap_deg(angle: f64) -> f64 {
    let turned = angle.rem_euclid(360.0);
    if turned > 180.0 {
        turned - 360.0
    } else {
        turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(marker: u32, heading_deg: f64, x_cm: f64, y_cm: f64) -> Sighting {
        Sighting {
            marker,
            heading_deg,
            x_cm,
            y_cm,
            height_cm: 240.0,
        }
    }

    fn markers(text: &str, reference: Option<u32>) -> Result<Markers, MarkerError> {
        Markers::new(toml::from_str(text).unwrap(), reference, 0.0)
    }

    /// Marker 7 is aligned with the map; marker 9 is turned right by a quarter turn.
    const FILE: &str = "
        [[marker]]
        id = 7
        x_m = 1.0
        y_m = 2.0
        [[marker]]
        id = 9
        x_m = 4.0
        y_m = 3.0
        heading_deg = 90
    ";

    #[track_caller]
    fn check(pose: Result<MarkerPose, u32>, expected: (f64, f64, f64, u32)) {
        let pose = pose.unwrap();
        let found = [pose.x_cm, pose.y_cm, pose.heading_deg];
        let wanted = [expected.0, expected.1, expected.2];
        let near = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near && pose.marker == expected.3, "{pose:?}");
    }

    #[test]
    fn without_a_map_poses_are_relative_to_the_marker() {
        let markers = Markers::default();
        check(
            markers.pose(&[seen(5, 175.0, -3.66, 8.0)]),
            (-3.66, 8.0, 175.0, 5),
        );
    }

    #[test]
    fn on_a_map_y_points_down_and_angles_stay_clockwise() {
        let markers = markers(FILE, None).unwrap();
        // Ahead along the marker's x, and to its left, which is up on the map.
        check(
            markers.pose(&[seen(7, 30.0, 50.0, 20.0)]),
            (150.0, 180.0, 30.0, 7),
        );
        // The marker's x points down on the map, so its left is to the right.
        check(
            markers.pose(&[seen(9, 0.0, 50.0, 20.0)]),
            (420.0, 350.0, 90.0, 9),
        );
        check(
            markers.pose(&[seen(9, -135.0, 0.0, 0.0)]),
            (400.0, 300.0, -45.0, 9),
        );
    }

    #[test]
    fn unknown_markers_are_skipped_and_named() {
        let markers = markers(FILE, None).unwrap();
        let unknown = seen(8, 0.0, 1.0, 1.0);
        check(
            markers.pose(&[unknown, seen(7, 0.0, 0.0, 0.0)]),
            (100.0, 200.0, 0.0, 7),
        );
        assert_eq!(markers.pose(&[unknown, seen(6, 0.0, 0.0, 0.0)]), Err(8));
    }

    #[test]
    fn with_a_reference_marker_only_its_position_matters() {
        let markers = markers(FILE, Some(7)).unwrap();
        check(
            markers.pose(&[seen(8, 0.0, 10.0, 0.0)]),
            (110.0, 200.0, 0.0, 8),
        );
    }

    #[test]
    fn the_mounting_angle_is_subtracted() {
        let file: MarkerFile = toml::from_str(FILE).unwrap();
        let turned = Markers::new(file, None, 90.0).unwrap();
        check(
            turned.pose(&[seen(7, 90.0, 0.0, 0.0)]),
            (100.0, 200.0, 0.0, 7),
        );
        let plain = Markers::new(MarkerFile::default(), None, 90.0).unwrap();
        check(
            plain.pose(&[seen(7, -90.0, 1.0, 2.0)]),
            (1.0, 2.0, 180.0, 7),
        );
    }

    #[test]
    fn invalid_files_are_rejected() {
        let twice = format!("{FILE}[[marker]]\nid = 7\nx_m = 0\ny_m = 0\n");
        assert_eq!(markers(&twice, None), Err(MarkerError::Twice(7)));
        assert_eq!(markers(FILE, Some(8)), Err(MarkerError::Reference(8)));
        let nan = "[[marker]]\nid = 3\nx_m = nan\ny_m = 0\n";
        assert_eq!(markers(nan, None), Err(MarkerError::Place(3)));
    }

    #[test]
    fn angles_stay_within_a_turn() {
        for (angle, wrapped) in [
            (0.0, 0.0),
            (180.0, 180.0),
            (-180.0, 180.0),
            (270.0, -90.0),
            (-270.0, 90.0),
        ] {
            assert_eq!(wrap_deg(angle), wrapped);
        }
    }
}
