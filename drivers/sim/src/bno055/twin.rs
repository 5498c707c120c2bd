//! The sensor in the robot. PURE.

use super::Bno055;
use crate::device;

device::extra! {
    /// Add a motion sensor BNO055, on a bus of its own
    "bno055" by I2c: Model => |model, setup| Bno055::of_seed(model, setup.seed);
    "call imu data": "acceleration and turn rate"
}

/// The sensor has no variants.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// BNO055
    #[value(name = "bno055")]
    Bno055,
}
