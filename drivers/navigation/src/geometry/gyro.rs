//! Compares a gyroscope with the wheels. PURE.
//!
//! If the scans turn the other way than the wheels, the gyroscope tells which of them is right.

use std::time::Duration;

use crate::odometry::Odometry;

/// The least turns by the wheels.
const MIN_TURNS_RAD: f64 = 1.0;
/// Less of the motion in common decides nothing.
const MIN_CORRELATION: f64 = 0.6;
/// A reading stands for the time since the one before, but at most for this.
const MAX_STEP: Duration = Duration::from_millis(300);

/// The sums of the turn rates so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gyro {
    last: Option<Duration>,
    turns_rad: f64,
    both: f64,
    gyro: f64,
    wheels: f64,
}

/// How the gyroscope turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As the wheels say.
    LikeWheels,
    /// The other way.
    Opposite,
    /// There is no gyroscope, or too few turns.
    Unknown,
}

impl Gyro {
    pub(super) fn add(&mut self, time: Duration, turn_rad_s: f64, odometry: &Odometry) {
        if !turn_rad_s.is_finite() {
            return;
        }
        let before = self.last.replace(time).unwrap_or(time);
        let passed_s = time.saturating_sub(before).min(MAX_STEP).as_secs_f64();
        let driven_rad_s = odometry.twist(time).turn_rad_s;
        self.turns_rad += driven_rad_s.abs() * passed_s;
        self.both += driven_rad_s * turn_rad_s * passed_s;
        self.gyro += turn_rad_s.powi(2) * passed_s;
        self.wheels += driven_rad_s.powi(2) * passed_s;
    }

    pub(super) fn verdict(&self) -> Verdict {
        if self.turns_rad < MIN_TURNS_RAD {
            return Verdict::Unknown;
        }
        let correlation = self.both / (self.gyro * self.wheels).sqrt();
        if correlation >= MIN_CORRELATION {
            Verdict::LikeWheels
        } else if correlation <= -MIN_CORRELATION {
            Verdict::Opposite
        } else {
            Verdict::Unknown
        }
    }
}
