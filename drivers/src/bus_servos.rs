//! What the drivers of all servos on a bus share. IO.
//!
//! ```text
//!  requests --> driver --> Bus: orders, one exchange at a time --> Maker: packets, registers
//!                 ^         |                                          |
//!                 +-- states, log lines <------- measurements <--------+
//! ```
//!
//! A maker of servos is a [`Maker`] with its [`Model`]s. `wire`, `bus`, `servo` and `logic` are pure;
//! `driver` passes on what clients want.
//!
//! Guarantees for clients of every maker:
//!
//! - Nothing moves at the start, nor after a servo or the adapter was away. Torque stays as it is.
//! - Commands concern all servos that they name, or none. The newest one counts.
//! - A servo that was told something reports it in its next measurement; otherwise it is told again.
//! - Torque is switched on without a jump: a servo first gets the angle that it has. If that is beyond its
//!   limits, it is not switched on.
//! - What a client moves stops when it is gone, at a halt, and when the driver ends. If the driver is
//!   killed, a guard process does it. Torque stays on. If the cable is pulled out, only servos stop that
//!   have a watchdog.
//! - The memory of a servo is not written. An exception is the mode of a servo that has it only there, if
//!   it differs from the configuration. [`tool`] writes more, for a person.

use std::fmt;
use std::time::{Duration, Instant};

use amber_driver::ClientId;

#[cfg(test)]
pub(crate) mod bench;
pub(crate) mod bus;
pub(crate) mod driver;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
pub mod logic;
mod options;
pub(crate) mod port;
pub(crate) mod probe;
mod servo;
pub mod tool;
pub mod wire;

pub use self::options::{Options, Preset, Rules};
use self::wire::{Found, Request};

/// A first register, and values for it and those behind it.
pub type Write = (u16, Vec<u8>);

/// A servo so near to an angle is there.
pub(crate) const NEAR_DEG: f64 = 2.0;

/// What makes a servo forget how it was set up.
pub(crate) const RESTARTED: &str = "a servo has restarted: check its supply";

/// For whom a servo moves, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// They want it.
    pub clients: Vec<ClientId>,
    /// It stops then. `None`: as the driver is configured.
    pub until: Option<Instant>,
}

/// How a servo is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It turns to angles.
    Joint,
    /// It turns on and on.
    Wheel,
}

/// What a servo has measured. Goals, positions and speeds have the units of the servo if they have no
/// other name.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Whether its motor is on.
    pub torque: bool,
    /// The goal that it was told.
    pub goal: i32,
    /// The speed that it was told.
    pub goal_speed: i32,
    /// Where it is.
    pub position: i32,
    /// The same.
    pub angle_deg: f64,
    /// How fast it turns.
    pub speed_deg_s: f64,
    /// The share of the supply that its motor gets, with its direction.
    pub load_percent: f64,
    /// The current of its motor, if it measures that.
    pub current_ma: Option<f64>,
    /// The voltage of its supply.
    pub voltage_v: f64,
    /// How warm it is.
    pub temperature_c: i32,
    /// Whether it turns.
    pub is_moving: bool,
    /// What it reports of itself, such as "is too hot".
    pub alarm: Option<&'static str>,
    /// Why it must be set up again, if that is so.
    pub lapse: Option<&'static str>,
}

/// The protocol and the registers of a maker.
pub trait Maker: fmt::Debug + Send + 'static {
    /// Its servos.
    type Model: Model;

    /// The first register that says what a servo is, and how many bytes.
    const IDENTITY: (u16, u8);
    /// The first register of what a servo was told and what it does, and how many bytes.
    const STATE: (u16, u8);

    /// A request as bytes.
    fn encode(request: &Request) -> Vec<u8>;

    /// What the first bytes on the line are.
    fn find(bytes: &[u8]) -> Found;

    /// How many bytes an answer with so many values has.
    fn answer_length(values: usize) -> usize;
}

/// A servo as it says itself what it is.
pub trait Model: fmt::Debug + fmt::Display + Clone + Send + 'static {
    /// Reads the registers [`Maker::IDENTITY`]. `None` if there are too few of them.
    fn decode(data: &[u8]) -> Option<Self>;

    /// What makes it what the configuration says. Nothing if it is so already. If it hears nothing for
    /// as long as `silence`, the driver is not there any more.
    ///
    /// # Errors
    /// It cannot be: the reason, such as "has no limits".
    fn set_up(&self, kind: Kind, silence: Duration) -> Result<Vec<Write>, String>;

    /// What it is told when the driver ends, so that it works with other programs.
    fn farewell(&self) -> Option<Write> {
        None
    }

    /// What would make it better, for the log.
    fn advice(&self) -> Option<&'static str> {
        None
    }

    /// Reads the registers [`Maker::STATE`], from an answer with this error. `None` if there are too
    /// few of them.
    fn measured(&self, error: u8, data: &[u8]) -> Option<Measured>;

    /// The angle at a step. 180 degrees is the middle of a turn.
    fn angle_deg(&self, step: i32) -> f64;

    /// The same the other way round, also between two steps.
    fn exact_step(&self, angle_deg: f64) -> f64;

    /// The smallest and the largest step that it may be told.
    fn limits(&self) -> (i32, i32);

    /// The homing offset that is stored in it, as its maker counts it, in its steps. `None` if it has
    /// none.
    fn homing_offset(&self) -> Option<i32> {
        None
    }

    /// The step nearest to another one that it may be told.
    fn within(&self, step: i32) -> i32 {
        let (least, most) = self.limits();
        step.max(least).min(most)
    }

    /// Whether it stays where it is when its motor is switched on, but for little.
    fn may_hold(&self, step: i32) -> bool {
        let way_deg = self.angle_deg(step) - self.angle_deg(self.within(step));
        way_deg.abs() <= NEAR_DEG
    }

    /// The step nearest to an angle, within the limits.
    ///
    /// # Errors
    /// The angle is beyond the limits: which ones.
    fn step(&self, angle_deg: f64) -> Result<i32, String> {
        let (least, most) = self.limits();
        let exact = self.exact_step(angle_deg);
        // A float is limited to the numbers of an integer. NaN is in no range.
        let step = exact.round() as i32;
        match exact.is_finite() && (least..=most).contains(&step) {
            true => Ok(step),
            false => Err(format!(
                "turns from {:.1} to {:.1} degrees, not to {angle_deg}",
                self.angle_deg(least),
                self.angle_deg(most),
            )),
        }
    }

    /// A speed as the servo has it.
    fn units(&self, speed_deg_s: f64) -> i32;

    /// Tells it a goal and the speed of the way there.
    fn goal(&self, step: i32, units: i32) -> Write;

    /// Tells a wheel its speed.
    fn speed(&self, units: i32) -> Write;

    /// Switches its motor on or off.
    fn torque(&self, is_on: bool) -> Write;

    /// Whether it answers together with others.
    fn is_in_groups(&self) -> bool;

    /// Above this it switches its motor off.
    fn max_temperature_c(&self) -> i32;
}
