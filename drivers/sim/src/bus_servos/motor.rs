//! The motor of a servo. PURE.
//!
//! Simplified: it reaches its speed at once or with an acceleration, carries no load, and neither swings
//! nor sags.

use std::time::Duration;

/// A motor that is blocked for so long reports an overload.
const OVERLOAD: Duration = Duration::from_secs(2);

/// How fast a person turns it by hand, in steps per second.
const HAND: f64 = 700.0;

/// Short enough for a speed that changes on the way.
const STEP_S: f64 = 0.005;

/// What a motor is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Drive {
    /// It has no power.
    Off,
    /// It turns to a place, with this speed in steps per second.
    To {
        /// In steps.
        place: f64,
        /// More than 0.
        speed: f64,
    },
    /// It turns on and on, with this speed in steps per second.
    On(f64),
}

/// A motor with its shaft.
#[derive(Clone, Copy, Debug)]
pub struct Motor {
    /// Where its shaft is, in steps; more than a turn is possible.
    pub(crate) shaft: f64,
    /// Steps per second.
    pub(crate) speed: f64,
    /// Whether something holds its shaft.
    pub is_blocked: bool,
    blocked_for: Duration,
    /// Where a person turns it, in steps.
    hand: Option<f64>,
}

impl Motor {
    /// It rests at a place.
    pub(crate) fn at(shaft: f64) -> Self {
        Self {
            shaft,
            speed: 0.0,
            is_blocked: false,
            blocked_for: Duration::ZERO,
            hand: None,
        }
    }

    /// From now on, a person turns its shaft by so many steps. A motor with power is too strong for that.
    pub(crate) fn turn_by_hand(&mut self, steps: f64) {
        self.hand = Some(self.shaft + steps);
    }

    /// Whether time changes it.
    pub(crate) fn is_busy(&self, has_power: bool) -> bool {
        let resists = has_power && self.is_blocked;
        self.speed != 0.0 || resists || self.hand.is_some()
    }

    /// Whether it was blocked for so long that it reports it.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.blocked_for >= OVERLOAD
    }

    /// What it has of being blocked is over.
    pub(crate) fn relax(&mut self) {
        self.blocked_for = Duration::ZERO;
    }

    /// It is to do something else, with an acceleration in steps per second squared; 0 for at once.
    pub(crate) fn decide(&mut self, drive: Drive, acceleration: f64) {
        self.decide_after(STEP_S, drive, acceleration);
    }

    /// Time passes.
    pub(crate) fn advance(&mut self, passed: Duration, drive: Drive, acceleration: f64) {
        let hand = self.hand.filter(|_| drive == Drive::Off);
        let drive = hand.map_or(drive, |place| Drive::To { place, speed: HAND });
        self.hand = hand.filter(|_| self.wants(drive) != 0.0);
        if self.speed == 0.0 {
            self.decide(drive, acceleration);
        }
        if self.is_blocked && self.wants(drive) != 0.0 {
            self.speed = 0.0;
            self.blocked_for += passed;
            return;
        }
        let mut rest_s = passed.as_secs_f64().min(60.0);
        while rest_s > 0.0 && self.speed != 0.0 {
            let step_s = rest_s.min(STEP_S);
            rest_s -= step_s;
            let step = self.speed * step_s;
            self.shaft = match drive {
                Drive::To { place, .. } if step.abs() >= (place - self.shaft).abs() => place,
                _ => self.shaft + step,
            };
            self.decide_after(step_s, drive, acceleration);
        }
    }

    /// The speed that it would have without inertia.
    pub(crate) fn wants(&self, drive: Drive) -> f64 {
        match drive {
            Drive::Off => 0.0,
            Drive::On(speed) => speed,
            // It has arrived.
            Drive::To { place, .. } if (place - self.shaft).abs() < 0.5 => 0.0,
            Drive::To { place, speed } => speed.copysign(place - self.shaft),
        }
    }

    fn decide_after(&mut self, passed_s: f64, drive: Drive, acceleration: f64) {
        let wanted = self.wants(drive);
        self.speed = match acceleration > 0.0 && wanted != 0.0 {
            true => {
                let most = acceleration * passed_s;
                self.speed + (wanted - self.speed).clamp(-most, most)
            }
            false => wanted,
        };
    }
}
