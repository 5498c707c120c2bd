//! RflySim: the UDP interface of the drone simulator CopterSim.
//!
//! - [`ports`]: which port has which meaning, for each vehicle (PURE)
//! - [`codec`]: all packets, both directions (PURE)
//! - [`mapping`]: frames and units (PURE)
//! - [`shown`]: Amber's robot as a vehicle (PURE)
//! - [`foreign`]: a vehicle as Amber's devices, with its targets in `course` (PURE)
//! - [`session`]: all vehicles of a gateway (PURE)
//! - `driver`: the options of `amber driver rflysim` (IO)
//! - [`limits`]: every maximum, with its reason

pub mod codec;
mod course;
pub mod driver;
pub mod foreign;
pub mod limits;
pub mod mapping;
pub mod ports;
pub mod session;
pub mod shown;
