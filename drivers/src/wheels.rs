//! What the drivers of all wheels share. IO.
//!
//! A model is a [`Model`]: its protocol and its phases, which are pure. Everything else stands here:
//!
//! ```text
//!  clients --> driver: requests, subscribers --> Model: the bytes of the controllers
//!                ^                                  |
//!                +---- answers, log lines ---- Service: the rules, the newest command,
//!                                                   who wants the speeds, the outage
//! ```
//!
//! `service`, `motion`, `questions`, `sides`, `encoders`, `wiring`, `options`, `note` and `crc16` are pure;
//! `driver` passes on what clients want. `stream` runs a [`StreamModel`], whose controllers are at a byte
//! stream. `besides` serves what a base brings besides its wheels.
//!
//! Guarantees for clients of every model:
//!
//! - Speeds are mm/s per wheel, positive forward.
//! - A reply with speeds needs a measurement that began after the request. While the controllers are
//!   unreachable there is no reply.
//! - Subscribers get the speeds every `speeds_interval_ms`. One measurement serves all of them.
//! - A command that cannot be carried out immediately is dropped, never queued: after an outage the
//!   wheels stand still until a client sends a new command.
//! - A command with a wheel faster than `max_speed_mm_s` is dropped completely and does not reset
//!   the idle timer.
//! - The wheels stop `idle_stop_ms` after the last command, when the commanding client is gone, and
//!   when the driver ends. What happens if the driver is killed depends on the controllers.

pub(crate) mod besides;
mod crc16;
pub(crate) mod driver;
pub mod encoders;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod model;
mod motion;
mod note;
mod options;
mod questions;
mod service;
mod sides;
pub(crate) mod stream;
#[cfg(test)]
pub(crate) mod testing;
mod wiring;

pub use self::besides::Felt;
pub(crate) use self::crc16::crc16;
pub use self::model::{BatteryReading, Model, StreamAction, StreamModel};
pub use self::motion::Motion;
pub use self::note::{Note, Refusal, Special, StopReason};
pub use self::questions::{Measured, Questions};
pub use self::service::{Counters, Output, Rules, Service, StopFor};
pub use self::sides::Sides;
pub use self::wiring::Wiring;
