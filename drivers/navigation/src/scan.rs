//! Laser scans in the plane frame. PURE.
//!
//! The messages of the scanner have degrees to the right, and millimetres with error codes below 20.
//! Here are radians to the left, metres, and a name for each kind of reading.

use std::time::Duration;

/// How a scanner measures, and which way up it is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Laser {
    /// The time of one turn.
    pub turn: Duration,
    /// The time from the end of a scan to its timestamp.
    pub delay: Duration,
    /// Whether it is mounted upside down, so that its left is on the right.
    pub is_mirrored: bool,
    /// Whether it turns to the right as seen in its own scans, and so measures their first point
    /// first.
    pub turns_right: bool,
}

/// The measurements of one turn of a scanner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// When the first beam was measured, since any fixed start.
    pub start: Duration,
    /// The time between two beams; zero if all were measured at once.
    pub beam_time: Duration,
    /// All beams in the order of measurement, at equal time intervals.
    pub beams: Vec<Beam>,
}

/// One direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beam {
    /// The direction from the scanner, in radians counter-clockwise from its front.
    pub angle_rad: f64,
    /// The result.
    pub echo: Echo,
}

/// The result of a beam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Echo {
    /// An object at this distance in metres.
    At(f64),
    /// No object within range.
    Nothing,
    /// An object that is too near to be measured.
    TooNear,
    /// An error: the beam says nothing.
    Invalid,
}

impl Scan {
    /// When a beam was measured.
    #[must_use]
    pub fn time_of(&self, index: usize) -> Duration {
        self.start + self.beam_time * u32::try_from(index).unwrap_or(u32::MAX)
    }

    /// The time of the last beam.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.time_of(self.beams.len().saturating_sub(1))
    }

    /// The time in the middle of the turn. A wrong turn rate rotates the beams before and after it
    /// in opposite directions, so this is the time at which a scan gives the best pose.
    #[must_use]
    pub fn middle(&self) -> Duration {
        self.start + (self.end() - self.start) / 2
    }
}

impl Beam {
    /// The distance in metres, if there is one.
    #[must_use]
    pub fn distance_m(&self) -> Option<f64> {
        match self.echo {
            Echo::At(distance_m) => Some(distance_m),
            Echo::Nothing | Echo::TooNear | Echo::Invalid => None,
        }
    }
}
