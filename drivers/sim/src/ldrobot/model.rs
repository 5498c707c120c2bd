//! The scanners, and their motor. PURE.

use std::time::Duration;

/// A laser scanner of LDROBOT.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// LD06: 12 m, 10 turns per second, 450 points in each
    Ld06,
    /// LD19, STL-19P: the same
    Ld19,
    /// STL-27L: 25 m, 10 turns per second, 2160 points in each
    #[value(name = "stl-27l")]
    Stl27l,
    /// LD14P: 8 m, 6 turns per second, 667 points in each
    #[value(name = "ld14p")]
    Ld14p,
}

impl Model {
    /// Measurements per second.
    pub(super) fn rate_hz(self) -> f64 {
        match self {
            Self::Ld06 | Self::Ld19 => 4_500.0,
            Self::Stl27l => 21_600.0,
            Self::Ld14p => 4_000.0,
        }
    }

    /// Turns per second.
    pub(super) fn usual_hz(self) -> f64 {
        match self {
            Self::Ld06 | Self::Ld19 | Self::Stl27l => 10.0,
            Self::Ld14p => 6.0,
        }
    }

    /// The limits of its distances in mm.
    pub(super) fn range_mm(self) -> (f64, f64) {
        match self {
            Self::Ld06 | Self::Ld19 => (20.0, 12_000.0),
            Self::Stl27l => (30.0, 25_000.0),
            Self::Ld14p => (100.0, 8_000.0),
        }
    }

    pub(super) fn has_ghosts(self) -> bool {
        matches!(self, Self::Ld06 | Self::Ld19)
    }

    /// How far what is seen at a distance is behind the head: an LD14P looks from the side.
    pub(super) fn behind_deg(self, mm: f64) -> f64 {
        match self {
            Self::Ld14p => ((0.119_23 * mm - 18.975_571) / (mm + 5.9))
                .atan()
                .to_degrees(),
            Self::Ld06 | Self::Ld19 | Self::Stl27l => 0.0,
        }
    }
}

/// The scanner is silent for this time after it was switched on.
const SILENT_S: f64 = 0.5;
/// Then the motor gets up to its speed in this time.
const RAMP_S: f64 = 1.5;

/// A motor that turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Motor {
    deg_s: f64,
    /// When it was switched on or got its speed, and where the head was.
    from: Duration,
    from_deg: f64,
    /// How long it is silent, and how long it then gets faster.
    silent_s: f64,
    ramp_s: f64,
}

impl Motor {
    /// Switched on.
    pub(super) fn starts(hz: f64, now: Duration) -> Self {
        Self {
            deg_s: 360.0 * hz,
            from: now,
            from_deg: 0.0,
            silent_s: SILENT_S,
            ramp_s: RAMP_S,
        }
    }

    /// With another speed.
    pub(super) fn continues(hz: f64, from_deg: f64, now: Duration) -> Self {
        Self {
            silent_s: 0.0,
            ramp_s: 0.0,
            from_deg,
            ..Self::starts(hz, now)
        }
    }

    /// When the first point is measured.
    pub(super) fn sends_from(self) -> Duration {
        self.from + Duration::from_secs_f64(self.silent_s)
    }

    fn running_s(self, time: Duration) -> f64 {
        time.saturating_sub(self.sends_from()).as_secs_f64()
    }

    /// How far the head has turned from its front.
    pub(super) fn turned_deg(self, time: Duration) -> f64 {
        let running_s = self.running_s(time);
        let at_speed_s = match running_s < self.ramp_s {
            true => running_s * running_s / (2.0 * self.ramp_s),
            false => running_s - self.ramp_s / 2.0,
        };
        self.from_deg + self.deg_s * at_speed_s
    }

    pub(super) fn speed_deg_s(self, time: Duration) -> f64 {
        let running_s = self.running_s(time);
        match running_s < self.ramp_s {
            true => self.deg_s * running_s / self.ramp_s,
            false => self.deg_s,
        }
    }
}
