//! What the drivers of all motion sensors share. IO.
//!
//! A model is a [`Model`]: its chips, each a [`Chip`](chip::Chip), and what their digits mean, which are
//! pure. Everything else stands here:
//!
//! ```text
//! driver (IO)  requests, threads --->  logic   (PURE)  requests, subscribers, times
//!    |                                   | service, calibration, attitude, units (PURE)
//!    +--- board (PURE)  the chips of the model, each on its own
//!           +--- i2c (IO)  /dev/i2c-N, or the bus of a simulated robot
//! ```
//!
//! Models are made of `options` (what all boards are told), `found` (which address a sensor has),
//! `setting` (registers that must keep a value) and `inertia` (ranges and digits).
//!
//! Guarantees for clients of every model:
//!
//! - The axes are right-handed: x to the right, y ahead, z up, provided that the board is mounted as
//!   the driver was told. Acceleration is the measured proper acceleration: 1000 milli-g up at rest.
//! - A message holds the requested groups that could be read at that moment. Values that cannot be
//!   read, and those of sensors that the board lacks, are missing, never old. If none can be read, the
//!   driver sends no reply and publishes nothing.
//! - Each client has its own publishing period, at least 5 ms, which starts again when the client
//!   subscribes again.
//! - A missing sensor does not affect the other sensors.
//! - The bias of the gyroscope at rest is subtracted. It comes from the calibration, or is measured
//!   at the start during one second in which the robot stands still.
//!
//! I2C has no checksums, so noise on the wires can change a value unnoticed.

pub mod attitude;
pub mod board;
pub mod calibration;
pub mod chip;
pub mod driver;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod found;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
pub mod inertia;
pub mod logic;
mod model;
pub mod mount;
pub mod options;
pub mod sensors;
pub mod service;
pub(crate) mod setting;
mod store;
pub mod units;

pub use self::model::Model;
