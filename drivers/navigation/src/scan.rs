//! Laser scans. PURE.

use std::time::Duration;

/// One measurement of a laser scanner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beam {
    /// The direction from the scanner, in radians counter-clockwise from its front.
    pub angle_rad: f64,
    /// The measured distance in metres.
    pub distance_m: f64,
    /// When it was measured, in seconds after [`Scan::time`].
    pub delay_s: f64,
}

/// The measurements of one turn of a scanner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// The time of the first measurement, since any fixed start.
    pub time: Duration,
    /// The valid measurements in the order of their angles; leave out beams without an echo.
    pub beams: Vec<Beam>,
}

impl Scan {
    /// The time of the last measurement.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.time + Duration::from_secs_f64(self.length_s())
    }

    /// The time in the middle of the turn. A wrong turn rate rotates the beams before and after it
    /// in opposite directions, so this is the time at which a scan gives the best pose.
    #[must_use]
    pub fn middle(&self) -> Duration {
        self.time + Duration::from_secs_f64(self.length_s() / 2.0)
    }

    fn length_s(&self) -> f64 {
        let longest = |longest: f64, beam: &Beam| longest.max(beam.delay_s);
        // More than a minute is invalid, and must not overflow a duration.
        self.beams.iter().fold(0.0, longest).min(60.0)
    }
}
