//! The two models of laser scanner. PURE.

use std::f64::consts::PI;
use std::time::Duration;

/// A model of laser scanner.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// 240 degrees, 5.6 m, 10 scans per second
    #[default]
    #[value(name = "urg-04lx")]
    Urg04Lx,
    /// 270 degrees, 60 m, 40 scans per second
    #[value(name = "utm-30lx")]
    Utm30Lx,
}

/// One turn of the laser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// When it passed step 0.
    pub start: Duration,
    /// How long a full turn takes.
    pub turn: Duration,
}

/// The measurements of one turn, one entry for each step from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Millimetres, or a code below [`Model::min_mm`] for a missing distance.
    pub distances: Vec<u32>,
    /// The strength of the echoes, without a unit.
    pub intensities: Vec<u32>,
}

impl Model {
    /// The name in replies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Urg04Lx => "URG-04LX",
            Self::Utm30Lx => "UTM-30LX",
        }
    }

    /// The smallest valid distance; smaller values are codes.
    #[must_use]
    pub fn min_mm(self) -> u32 {
        match self {
            Self::Urg04Lx => 20,
            Self::Utm30Lx => 23,
        }
    }

    /// The largest valid distance.
    #[must_use]
    pub fn max_mm(self) -> u32 {
        match self {
            Self::Urg04Lx => 5_600,
            Self::Utm30Lx => 60_000,
        }
    }

    /// Steps of a full turn.
    #[must_use]
    pub fn steps_per_turn(self) -> u32 {
        match self {
            Self::Urg04Lx => 1_024,
            Self::Utm30Lx => 1_440,
        }
    }

    /// The first measured step.
    #[must_use]
    pub fn first_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 44,
            Self::Utm30Lx => 0,
        }
    }

    /// The last measured step.
    #[must_use]
    pub fn last_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 725,
            Self::Utm30Lx => 1_080,
        }
    }

    /// The last step that can be requested.
    #[must_use]
    pub fn end_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 768,
            Self::Utm30Lx => 1_080,
        }
    }

    /// The step that faces ahead.
    #[must_use]
    pub fn front_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 384,
            Self::Utm30Lx => 540,
        }
    }

    /// Turns of the laser per minute.
    #[must_use]
    pub fn rpm(self) -> u32 {
        match self {
            Self::Urg04Lx => 600,
            Self::Utm30Lx => 2_400,
        }
    }

    /// The direction of a step: radians counter-clockwise from ahead.
    #[must_use]
    pub fn angle(self, step: u32) -> f64 {
        let steps = f64::from(step) - f64::from(self.front_step());
        steps * 2.0 * PI / f64::from(self.steps_per_turn())
    }

    /// When the beam of a step is sent.
    #[must_use]
    pub fn beam_time(self, sweep: Sweep, step: u32) -> Duration {
        sweep.start + sweep.turn * step / self.steps_per_turn()
    }

    /// The duration of the measuring part of a turn.
    #[must_use]
    pub fn sweep_time(self, turn: Duration) -> Duration {
        turn * (self.last_step() + 1) / self.steps_per_turn()
    }

    pub(super) fn nothing(self) -> u32 {
        match self {
            Self::Urg04Lx => 0,
            Self::Utm30Lx => 1,
        }
    }

    pub(super) fn too_near(self) -> u32 {
        match self {
            Self::Urg04Lx => 6,
            Self::Utm30Lx => 4,
        }
    }

    pub(super) fn not_measured(self) -> u32 {
        19
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_on_the_right() {
        for (model, first, last) in [
            (Model::Urg04Lx, -119.531, 119.883),
            (Model::Utm30Lx, -135.0, 135.0),
        ] {
            let degrees = |step| model.angle(step).to_degrees();
            assert!((degrees(model.first_step()) - first).abs() < 0.001);
            assert!((degrees(model.last_step()) - last).abs() < 0.001);
            assert_eq!(degrees(model.front_step()), 0.0);
        }
    }
}
