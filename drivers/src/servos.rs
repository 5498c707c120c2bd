//! What the drivers of all servo controllers share. IO.
//!
//! A model is a [`Model`]: how it carries out [`Order`]s. Everything else stands here:
//!
//! ```text
//!  clients --> driver: requests --> Servos: limits --> orders --> Model: the controller
//!                ^                                                  |
//!                +---- answers, log lines ---- Service: angles, speeds, refusals, the outage
//! ```
//!
//! `range`, `service` and `note` are pure; `driver` passes on what clients want.
//!
//! Guarantees for clients of every model:
//!
//! - Angles are whole degrees. By default 0 is a pulse of 2400 us, 90 of 1500 and 180 of 600; the
//!   file can describe a servo differently.
//! - A command that cannot be carried out completely is dropped and logged. Commands have no reply;
//!   clients can ask for the last angle of each servo.
//! - Servos hold their position when a client leaves and when the driver ends: they do not move, and
//!   an arm without pulses would fall. A servo that is `continuous` is a motor, so it stops when the
//!   client that turns it is gone, at a halt, and when the driver ends. What happens if the driver is
//!   killed depends on the model.
//! - While the controller is unreachable commands are dropped: a command carried out seconds later
//!   does more harm than good. Speed limits are kept.

pub(crate) mod driver;
mod note;
mod range;
mod service;

use std::time::Instant;

pub use self::note::Note;
pub use self::range::{MAX_SPEED, Refusal, ServoOptions, Servos};
pub use self::service::{Counters, Service};

/// A command to one servo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Turn it to an angle.
    Turn {
        servo: u8,
        /// The angle for clients, in degrees.
        angle: i32,
        /// The pulse width at that angle, in microseconds.
        us: f64,
    },
    /// How fast its pulse width changes.
    Speed {
        servo: u8,
        /// In 25 us/s, at most [`MAX_SPEED`]; 0 for no limit.
        speed: u16,
    },
    /// End its pulses.
    Release { servo: u8 },
}

/// The pure logic of a servo controller.
pub trait Model {
    /// Angles, speeds, refusals and the outage.
    fn service(&mut self) -> &mut Service;

    /// Whether commands reach the controller.
    fn is_connected(&self) -> bool;

    /// Sends these orders together.
    fn carry_out(&mut self, now: Instant, orders: &[Order]);

    /// Ends the movement of the servos that are on their way to an angle, where pulses are moved by the
    /// driver. By default, servos turn until they have the angle.
    fn hold(&mut self) {}
}
