//! The sensor in the robot. PURE.

use super::{Model, Mpu};
use crate::device;

device::extra! {
    /// Add a motion sensor of the MPU family, on a bus of its own
    "mpu" by I2c: Model => |model, setup| Mpu::of_seed(model, setup.seed);
    "call imu data": "acceleration and turn rate"
}
