//! Heading and tilt. PURE.

use amber_proto::ninedof;

/// Heading and tilt of a robot at rest or at constant speed. Acceleration looks like tilt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attitude {
    /// Degrees clockwise from magnetic north, in [0, 360). Wrong by tens of degrees unless
    /// `heading_calibrated`.
    pub heading_deg: f64,
    /// Whether the magnetometer has been calibrated on this robot. `false` also if the driver does
    /// not report it. Pitch and roll need no calibration.
    pub heading_calibrated: bool,
    /// Degrees, positive when the front is up.
    pub pitch_deg: f64,
    /// Degrees, positive when the right side is down.
    pub roll_deg: f64,
}

impl From<ninedof::Attitude> for Attitude {
    fn from(attitude: ninedof::Attitude) -> Self {
        Self {
            heading_deg: attitude.heading_deg().into(),
            heading_calibrated: attitude.heading_calibrated(),
            pitch_deg: attitude.pitch_deg().into(),
            roll_deg: attitude.roll_deg().into(),
        }
    }
}

/// The message has single precision.
impl From<Attitude> for ninedof::Attitude {
    #[allow(clippy::cast_possible_truncation)]
    fn from(attitude: Attitude) -> Self {
        Self {
            heading_deg: Some(attitude.heading_deg as f32),
            pitch_deg: Some(attitude.pitch_deg as f32),
            roll_deg: Some(attitude.roll_deg as f32),
            heading_calibrated: Some(attitude.heading_calibrated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_each_field() {
        let attitude = Attitude {
            heading_deg: 359.5,
            heading_calibrated: true,
            pitch_deg: -1.0,
            roll_deg: 2.0,
        };
        let message = ninedof::Attitude::from(attitude);
        assert_eq!((message.pitch_deg(), message.roll_deg()), (-1.0, 2.0));
        assert_eq!(Attitude::from(message), attitude);
    }
}
