//! Settings of the scanner, and its angles. PURE.

use std::time::Duration;

use crate::hokuyo::scip::Geometry;
use crate::scanner::layout::urg_angles;

/// Settings of the scanner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether it detects weak echoes.
    pub high_sensitivity: bool,
    /// Motor speed: 0 for normal, 1 to 10 for slower, 99 for the initial speed.
    pub motor_speed: u8,
    /// Angle convention for reported points.
    pub angles: Angles,
    /// Minimum interval between scans for subscribers.
    pub publish: Duration,
    /// The laser turns off after this time without requests or subscribers.
    pub laser_idle: Option<Duration>,
    /// The longest silence within a reply.
    pub timeout: Duration,
}

/// Angle convention for reported points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Angles {
    /// As the original reported them for an URG-04LX, up to 0.35 degrees off; exact for other
    /// scanners
    #[default]
    Compatible,
    /// Exact angles
    Exact,
}

/// The angles of all points in degrees, positive to the right, ascending.
pub(super) fn angles(geometry: Geometry, angles: Angles) -> Vec<f64> {
    let is_urg = Geometry {
        rpm: Geometry::URG_04LX.rpm,
        ..geometry
    } == Geometry::URG_04LX;
    let steps = (geometry.first..=geometry.last).rev();
    match angles {
        Angles::Compatible if is_urg => urg_angles(),
        Angles::Compatible | Angles::Exact => steps
            .map(|step| {
                let left = f64::from(step) - f64::from(geometry.front);
                // Avoids -0 straight ahead.
                0.0 - left * 360.0 / f64::from(geometry.steps_per_turn)
            })
            .collect(),
    }
}
