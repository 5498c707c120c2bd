//! How the scanner is to be, and at which angles it sees. PURE.

use std::time::Duration;

use crate::hokuyo::scip::Geometry;

/// How the scanner is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether it sees weak echoes, too.
    pub high_sensitivity: bool,
    /// Of the motor: 0 for the usual speed, up to 10 for slower ones, 99 for
    /// the initial one.
    pub motor_speed: u8,
    /// At which angles points are said to be.
    pub angles: Angles,
    /// How far scans are apart that subscribers get, at least.
    pub publish: Duration,
    /// The laser goes off when nobody has wanted a scan for so long.
    pub laser_idle: Option<Duration>,
    /// The longest silence within a reply.
    pub timeout: Duration,
}

/// At which angles points are said to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Angles {
    /// Where the original said for an URG-04LX, up to 0.35 degrees off; exact
    /// for other scanners
    #[default]
    Compatible,
    /// Where they are
    Exact,
}

/// The angles of all points in degrees, positive to the right, ascending.
pub(super) fn angles(geometry: Geometry, angles: Angles) -> Vec<f64> {
    /// The original's end of an URG-04LX's view, and its step.
    const END: f64 = 119.885;
    const STEP: f64 = 0.352_085_168_869_309_85;
    let is_urg = Geometry {
        rpm: Geometry::URG_04LX.rpm,
        ..geometry
    } == Geometry::URG_04LX;
    let steps = (geometry.first..=geometry.last).rev();
    match angles {
        Angles::Compatible if is_urg => steps
            .map(|step| END - STEP * f64::from(step - geometry.first))
            .collect(),
        Angles::Compatible | Angles::Exact => steps
            .map(|step| {
                let left = f64::from(step) - f64::from(geometry.front);
                // Not -0 straight ahead.
                0.0 - left * 360.0 / f64::from(geometry.steps_per_turn)
            })
            .collect(),
    }
}
