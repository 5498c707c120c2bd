//! The board in the robot. PURE.

use super::Lsm6dsox;
use crate::device;

device::extra! {
    /// Add motion sensors LSM6DSOX and LIS3MDL, or relatives, on a bus of their own
    "lsm6dsox" by I2c: Model => |model, setup| Lsm6dsox::of_seed(model, setup.seed);
    "call imu data": "acceleration and turn rate"
}

/// A board with a sensor of the family.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// LSM6DSOX and LIS3MDL
    #[value(name = "lsm6dsox")]
    Lsm6dsox,
    /// LSM6DS33 and LIS3MDL
    #[value(name = "lsm6ds33")]
    Lsm6ds33,
    /// LSM6DSR and LIS3MDL
    #[value(name = "lsm6dsr")]
    Lsm6dsr,
    /// LSM6DSOX without a magnetometer
    Alone,
}

impl Model {
    pub(super) fn who_am_i(self) -> u8 {
        match self {
            Self::Lsm6dsox | Self::Alone => 0x6C,
            Self::Lsm6ds33 => 0x69,
            Self::Lsm6dsr => 0x6B,
        }
    }

    pub(super) fn has_compass(self) -> bool {
        self != Self::Alone
    }
}
