//! A pose on the map. PURE.

use amber_proto::{drive_to_point, location, mapping};

/// A pose in the map frame, which files, messages and the command line use: x to the right,
/// **y down**, angles clockwise from x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MapPose {
    /// To the right, in metres.
    pub x_m: f64,
    /// Down, in metres.
    pub y_m: f64,
    /// The heading in radians, clockwise from x.
    pub heading_rad: f64,
    /// The quality of the pose, from 0 to 1.
    pub quality: f64,
    /// The time of this pose, in milliseconds since the Unix epoch by the clock of the robot.
    pub timestamp_ms: Option<i64>,
}

impl MapPose {
    /// Amber's location driver gives a smaller quality to a pose that is not decided, and to one whose
    /// scans are old. Other drivers, such as the original one, have other measures.
    pub const DECIDED: f64 = 0.3;

    /// Creates an exact pose from metres and radians.
    #[must_use]
    pub const fn new(x_m: f64, y_m: f64, heading_rad: f64) -> Self {
        Self {
            x_m,
            y_m,
            heading_rad,
            quality: 1.0,
            timestamp_ms: None,
        }
    }

    /// Whether the robot knows its position; all values are 0 until it does.
    pub fn is_known(&self) -> bool {
        [self.x_m, self.y_m, self.heading_rad, self.quality] != [0.0; 4]
    }

    /// Whether the robot is there: otherwise, the pose is unknown, a guess, or old. `tells_quality` is
    /// whether its driver reports a quality with details, as Amber's does.
    pub fn is_decided(&self, tells_quality: bool) -> bool {
        self.is_known() && (!tells_quality || self.quality >= Self::DECIDED)
    }
}

/// Several devices have their own messages with the same fields.
macro_rules! map_pose {
    ($message:ty) => {
        /// A missing number is 0.
        impl From<$message> for MapPose {
            fn from(message: $message) -> Self {
                Self {
                    x_m: message.x(),
                    y_m: message.y(),
                    heading_rad: message.alfa(),
                    quality: message.p(),
                    timestamp_ms: message.time_stamp.filter(|ms| *ms > 0),
                }
            }
        }

        impl From<MapPose> for $message {
            fn from(pose: MapPose) -> Self {
                Self {
                    x: Some(pose.x_m),
                    y: Some(pose.y_m),
                    p: Some(pose.quality),
                    alfa: Some(pose.heading_rad),
                    time_stamp: pose.timestamp_ms,
                }
            }
        }
    };
}

map_pose!(location::Location);
map_pose!(drive_to_point::Location);
map_pose!(mapping::Location);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_each_field() {
        let pose = MapPose {
            quality: 0.5,
            timestamp_ms: Some(1_448_000_000_123),
            ..MapPose::new(1.0, -2.0, 3.0)
        };
        let message = location::Location::from(pose);
        assert_eq!((message.x(), message.y()), (1.0, -2.0));
        assert_eq!((message.alfa(), message.p()), (3.0, 0.5));
        assert_eq!(MapPose::from(message), pose);
        assert_eq!(MapPose::from(drive_to_point::Location::from(pose)), pose);
    }

    #[test]
    fn a_pose_of_zeros_is_unknown() {
        let pose = MapPose::from(location::Location::default());
        assert_eq!(pose, MapPose::default());
        assert!(!pose.is_known());
        assert!(MapPose::new(0.0, 0.0, 0.0).is_known());
    }
}
