//! Values that clients and drivers share, with their conversions from and to messages.
//!
//! One file per value. Field names end with their units. `amber_client` re-exports all of them, so
//! clients do not need this crate.
//!
//! Conversions from messages are `From` if each message has a meaning, and `TryFrom` otherwise. The
//! whole crate is PURE.

pub mod scan;

mod marker_pose;
mod wheel_speeds;

pub use marker_pose::MarkerPose;
pub use scan::{Point, Scan, ScanError};
pub use wheel_speeds::WheelSpeeds;
