//! The sensor in the robot. PURE.

use super::Icm20948;
use crate::device;

device::extra! {
    /// Add a motion sensor ICM-20948, on a bus of its own
    "icm20948" by I2c: Model => |model, setup| Icm20948::of_seed(model, setup.seed);
    "call imu data": "acceleration and turn rate"
}

/// The sensor has no variants.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// ICM-20948, with its magnetometer
    #[value(name = "icm20948")]
    Icm20948,
}
