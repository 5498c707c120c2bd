//! Values that clients and drivers share, with their conversions from and to messages.
//!
//! One file per value. Field names end with their units. `amber_client` re-exports all of them, so
//! clients do not need this crate.
//!
//! Conversions from messages are `From` if each message has a meaning, and `TryFrom` otherwise.
//! Messages whose lists are the columns of a table convert by [`Row`]. The whole crate is PURE.

#![warn(missing_docs)]

pub mod scan;

mod attitude;
mod camera;
mod even_scan;
mod finding;
mod hazard;
mod imu_reading;
mod joy;
mod laser;
mod map_pose;
mod marker_pose;
mod nav_sat_fix;
mod row;
mod sensors;
mod target;
mod trajectory_point;
mod vector;
mod wheel_speeds;

pub use attitude::Attitude;
pub use camera::{CameraOptics, OpticalFrame};
pub use even_scan::EvenScan;
pub use finding::Finding;
pub use hazard::Hazard;
pub use imu_reading::{ImuReading, STANDARD_GRAVITY_M_S2};
pub use joy::Joy;
pub use laser::{Laser, LaserScan, LearnedLaser};
pub use map_pose::MapPose;
pub use marker_pose::MarkerPose;
pub use nav_sat_fix::NavSatFix;
pub use row::{Row, UnequalColumns};
pub use scan::{Point, Scan, ScanError};
pub use sensors::{Sensors, UnknownSensor};
pub use target::Target;
pub use trajectory_point::TrajectoryPoint;
pub use vector::Vector;
pub use wheel_speeds::WheelSpeeds;
