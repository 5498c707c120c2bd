//! One channel of a Maestro: its pulse and the servo's shaft. PURE.

use super::PERIOD;

/// The maximum speed of a shaft.
const SHAFT_DEG_PER_S: f64 = 350.0;

/// The angle of a shaft that never received a pulse.
const MIDDLE_DEG: f64 = 90.0;

/// The distance below which pulses and shafts have reached their targets.
const ARRIVED: f64 = 1e-6;

/// A channel with its servo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Servo {
    /// Quarters of a microsecond; 0 for no pulse.
    target: u16,
    pulse: f64,
    /// Quarters of a microsecond per 10 ms; 0 for no limit.
    speed: u16,
    /// The same per 80 ms.
    acceleration: u16,
    /// The current change of the pulse, per 10 ms.
    pace: f64,
    shaft_deg: f64,
}

impl Default for Servo {
    fn default() -> Self {
        Self {
            target: 0,
            pulse: 0.0,
            speed: 0,
            acceleration: 0,
            pace: 0.0,
            shaft_deg: MIDDLE_DEG,
        }
    }
}

impl Servo {
    /// The target pulse width, in microseconds; 0 for none.
    #[must_use]
    pub fn target_us(&self) -> f64 {
        f64::from(self.target) / 4.0
    }

    /// The pulse width, in microseconds; 0 for none.
    #[must_use]
    pub fn pulse_us(&self) -> f64 {
        self.pulse / 4.0
    }

    /// The shaft angle: 0 degrees for 2400 us, 180 for 600 us.
    #[must_use]
    pub fn angle_deg(&self) -> f64 {
        self.shaft_deg
    }

    pub(super) fn pulse_quarters(&self) -> u16 {
        self.pulse.round() as u16
    }

    pub(super) fn without_power(self) -> Self {
        Self {
            shaft_deg: self.shaft_deg,
            ..Self::default()
        }
    }

    pub(super) fn set_target(&mut self, target: u16) {
        // The position of a servo without pulses is unknown, so it jumps.
        if target == 0 || self.target == 0 {
            self.pulse = target.into();
            self.pace = 0.0;
        }
        self.target = target;
        if self.speed == 0 && self.acceleration == 0 {
            self.pulse = target.into();
        }
    }

    pub(super) fn set_speed(&mut self, speed: u16) {
        self.speed = speed;
    }

    pub(super) fn set_acceleration(&mut self, acceleration: u16) {
        self.acceleration = acceleration.min(255);
    }

    /// Whether the pulse is still changing.
    pub(super) fn is_moving(&self) -> bool {
        self.pulse != f64::from(self.target)
    }

    /// Whether nothing will move.
    pub(super) fn is_at_rest(&self) -> bool {
        let turns = self.target != 0 && (self.shaft_deg - self.wanted_deg()).abs() > ARRIVED;
        !self.is_moving() && !turns
    }

    /// Computes the next pulse.
    pub(super) fn step(&mut self) {
        self.step_pulse();
        if self.target != 0 {
            let most = SHAFT_DEG_PER_S * PERIOD.as_secs_f64();
            let way = self.wanted_deg() - self.shaft_deg;
            self.shaft_deg += way.clamp(-most, most);
        }
    }

    fn step_pulse(&mut self) {
        let way = f64::from(self.target) - self.pulse;
        let fastest = match self.speed {
            0 => f64::INFINITY,
            speed => f64::from(speed),
        };
        if self.acceleration == 0 {
            self.pace = fastest;
        } else {
            // Per 10 ms, in each 10 ms; no faster than it can brake.
            let acceleration = f64::from(self.acceleration) / 8.0;
            let braking = (2.0 * acceleration * way.abs()).sqrt();
            let faster = self.pace + 2.0 * acceleration;
            self.pace = faster.min(fastest).min(braking.max(acceleration));
        }
        let step = way.clamp(-2.0 * self.pace, 2.0 * self.pace);
        self.pulse += step;
        if (f64::from(self.target) - self.pulse).abs() < 0.5 {
            self.pulse = self.target.into();
            self.pace = 0.0;
        }
    }

    fn wanted_deg(&self) -> f64 {
        (2_400.0 - self.pulse_us()) / 10.0
    }
}
