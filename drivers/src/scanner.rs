//! What the drivers of all laser scanners share. IO.
//!
//! A model is a [`Model`]: its protocol and its phases, which are pure. Everything else stands here:
//!
//! ```text
//!  clients --> driver: requests, subscribers --> Model: the bytes of the scanner
//!                                                  |            |
//!                     Service: who gets a scan <---+            v
//!                                               Turns: samples --> Layout: points of a scan
//! ```
//!
//! `service`, `note`, `turns`, `clock`, `layout`, `sectors` and `filter` are pure; `driver` runs a model
//! over its port, and `options` has the options of models that the user must say. `masked` follows what
//! the device `robot:0` says of the parts of the robot that its laser sees.
//! Scanners that send whole scans, such as those of Hokuyo, need no `turns` and no `layout`.
//!
//! Guarantees for clients of every model:
//!
//! - Angles are degrees, positive to the right, ascending; distances are millimetres in the same
//!   order. Values below 20 are not distances: 0 says that nothing is within range, and the others
//!   are codes of errors.
//! - The scan in a reply was complete after the request, and has its time. While no scanner works,
//!   the driver sends no reply (never an old scan) and publishes nothing.
//! - All subscribers get the same message, at most one per `publish_ms`.
//! - The driver describes the scanner: limits, angles and times. While no scanner works, it refuses.
//! - In the sectors that the device `robot:0` masks for this laser, all points have the code 1: nothing
//!   is known there. The driver starts without any, keeps the last ones while that device is away, and
//!   takes new ones with the next scan.

pub mod clock;
pub mod driver;
pub mod filter;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
pub mod layout;
mod masked;
mod model;
mod note;
pub mod options;
pub mod sectors;
mod service;
#[cfg(test)]
pub(crate) mod testing;
pub mod turns;

pub use self::model::Model;
pub use self::note::Note;
pub use self::service::{Counters, Measured, Output, Service};
