//! What the drivers of all boards with pins share. IO.
//!
//! A board is a [`Model`]: how it carries out [`Order`]s, and what it reports. Everything else stands
//! here:
//!
//! ```text
//!  clients --> driver: requests --> Service: pins, limits --> orders --> Model: the board
//!                ^                                                         |
//!                +---- answers, updates, log lines ---- Service: values <--+
//! ```
//!
//! `pins` and `service` are pure; `driver` passes on what clients want.
//!
//! Guarantees for clients of every board:
//!
//! - Only the pins of the configuration are used, and only as it says. Nothing moves at the start.
//! - A command that cannot be carried out is refused with the reason, and dropped.
//! - What has a safe value gets it when the client that has set it is gone, at a halt, and when the
//!   driver ends. What happens if the driver is killed depends on the board.
//! - A value that is not known at this moment is absent, and never old.

pub(crate) mod driver;
pub mod pins;
mod service;

use amber_proto::board::{BoardInfo, DigitalCommand, PulseCommand, PwmCommand, ServoCommand};

pub use self::pins::{Mode, Pin, PinOptions, Pins, Place, Value};
pub use self::service::{Counters, Service, Spot, initial, told_mode};

/// A command of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Sets a digital output.
    Digital(DigitalCommand),
    /// Sets a PWM output.
    Pwm(PwmCommand),
    /// Turns a servo to an angle.
    Servo(ServoCommand),
    /// Sets the pulse of a servo.
    Pulse(PulseCommand),
}

/// A value for an output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// The index of the pin in the configuration.
    pub pin: usize,
    /// What it gets.
    pub value: Value,
}

/// The pure logic of a board.
pub trait Model {
    /// The pins with their values, refusals and the outage.
    fn service(&mut self) -> &mut Service;

    /// Sends these orders together.
    fn carry_out(&mut self, orders: &[Order]);

    /// What the board has said of itself.
    fn info(&self) -> BoardInfo;
}
