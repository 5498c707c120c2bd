//! RflySim: the UDP interface of the drone simulator CopterSim.
//!
//! - `ports`: which port has which meaning, for each vehicle (PURE)
//! - [`codec`]: all packets, both directions (PURE)

pub mod codec;
pub mod ports;
