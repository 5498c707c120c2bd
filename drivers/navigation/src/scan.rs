//! Laser scans in the plane frame. PURE.
//!
//! The messages of the scanner have degrees to the right, and millimetres with error codes below 20.
//! Here are radians to the left, metres, and a name for each kind of reading.

use std::f64::consts::TAU;
use std::time::Duration;

/// A scan with fewer beams does not look all around.
const MIN_ROUND_BEAMS: usize = 32;

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

    /// The mean angle between two neighbouring beams, in radians; `None` with less than two beams.
    #[must_use]
    pub fn spacing_rad(&self) -> Option<f64> {
        let (first, last) = (self.beams.first()?, self.beams.last()?);
        let steps = self.beams.len() - 1;
        (steps > 0).then(|| (last.angle_rad - first.angle_rad).abs() / steps as f64)
    }

    /// Whether the scanner looks all around: the first beam is beside the last one.
    #[must_use]
    pub fn is_round(&self) -> bool {
        let spacing_rad = self.spacing_rad().unwrap_or_default();
        let count = self.beams.len();
        // Between the last beam and the first one there may be half a step more than elsewhere.
        count >= MIN_ROUND_BEAMS && spacing_rad * (count as f64 + 0.5) >= TAU
    }

    /// The time of a whole turn; zero if it is unknown.
    #[must_use]
    pub fn turn_time(&self) -> Duration {
        match self.spacing_rad() {
            Some(spacing_rad) if spacing_rad > 0.0 => self.beam_time.mul_f64(TAU / spacing_rad),
            _ => Duration::ZERO,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// So many beams, this many degrees apart, each measured after a millisecond.
    fn scan(count: u32, apart_deg: f64) -> Scan {
        let beams = (0..count).map(|index| Beam {
            angle_rad: (180.0 - apart_deg * f64::from(index)).to_radians(),
            echo: Echo::Nothing,
        });
        Scan {
            start: Duration::ZERO,
            beam_time: Duration::from_millis(1),
            beams: beams.collect(),
        }
    }

    #[test]
    fn the_beams_tell_the_time_of_a_turn_and_whether_they_are_all_around() {
        for (count, apart_deg, is_round, turn_ms) in [
            (360, 1.0, true, 360.0),
            (450, 0.8, true, 450.0),
            // A sector of 2 degrees is left out.
            (358, 1.0, false, 360.0),
            (682, 360.0 / 1024.0, false, 1024.0),
            (1, 1.0, false, 0.0),
            (0, 1.0, false, 0.0),
        ] {
            let scan = scan(count, apart_deg);
            assert_eq!(scan.is_round(), is_round, "{count} {apart_deg}");
            let found_ms = scan.turn_time().as_secs_f64() * 1_000.0;
            assert!((found_ms - turn_ms).abs() < 0.01, "{count}: {found_ms} ms");
        }
    }
}
