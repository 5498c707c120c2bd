//! A pose from a marker on the ceiling. PURE.

use amber_proto::stargazer::LocalizationData;

/// A pose of the robot, found by a StarGazer from a marker on the ceiling.
///
/// The message does not name the frame. If the driver has a file of markers, the frame is the map:
/// x to the right, y down. Otherwise it is relative to the marker, with y up. Headings are
/// clockwise in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkerPose {
    /// Centimetres.
    pub x_cm: f64,
    /// Centimetres.
    pub y_cm: f64,
    /// From the sensor up to the marker, in centimetres.
    pub z_cm: f64,
    /// Degrees, clockwise.
    pub heading_deg: f64,
    /// The number of the marker in view.
    pub marker: u32,
    /// Milliseconds since the driver started.
    pub timestamp_ms: Option<u32>,
    /// Only in the answer to a request while no marker is in view: the age of the pose in
    /// milliseconds. Drivers of the original system never set it.
    pub lost_ms: Option<u32>,
}

impl From<LocalizationData> for MarkerPose {
    fn from(data: LocalizationData) -> Self {
        Self {
            x_cm: data.x_pos.into(),
            y_cm: data.y_pos.into(),
            z_cm: data.z_pos.into(),
            heading_deg: data.angle.into(),
            marker: data.marker_id,
            timestamp_ms: data.timestamp,
            lost_ms: data.lost_ms,
        }
    }
}

/// The message has single precision: about 0.1 mm at 10 m.
impl From<MarkerPose> for LocalizationData {
    #[allow(clippy::cast_possible_truncation)]
    fn from(pose: MarkerPose) -> Self {
        Self {
            x_pos: pose.x_cm as f32,
            y_pos: pose.y_cm as f32,
            z_pos: pose.z_cm as f32,
            angle: pose.heading_deg as f32,
            marker_id: pose.marker,
            timestamp: pose.timestamp_ms,
            lost_ms: pose.lost_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_each_field() {
        let pose = MarkerPose {
            x_cm: -3.5,
            y_cm: 33.25,
            z_cm: 200.5,
            heading_deg: 175.125,
            marker: 534,
            timestamp_ms: Some(1234),
            lost_ms: Some(20),
        };
        let message = LocalizationData::from(pose);
        assert_eq!((message.x_pos, message.y_pos), (-3.5, 33.25));
        assert_eq!((message.z_pos, message.angle), (200.5, 175.125));
        assert_eq!(MarkerPose::from(message), pose);
        let fresh = MarkerPose {
            timestamp_ms: None,
            lost_ms: None,
            ..pose
        };
        assert_eq!(MarkerPose::from(LocalizationData::from(fresh)), fresh);
    }
}
