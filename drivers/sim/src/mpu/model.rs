//! The sensors. PURE.

/// A motion sensor of the MPU family.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// MPU-6050: accelerometer and gyroscope
    #[value(name = "mpu6050")]
    Mpu6050,
    /// MPU-6500: accelerometer and gyroscope
    #[value(name = "mpu6500")]
    Mpu6500,
    /// MPU-9250: with a magnetometer
    #[value(name = "mpu9250")]
    Mpu9250,
    /// MPU-9255: with a magnetometer
    #[value(name = "mpu9255")]
    Mpu9255,
    /// Another chip (ICM-20689) that is sold as MPU-6050
    Copy,
}

impl Model {
    /// What the register WHO_AM_I says.
    pub(super) fn who_am_i(self) -> u8 {
        match self {
            Self::Mpu6050 => 0x68,
            Self::Mpu6500 => 0x70,
            Self::Mpu9250 => 0x71,
            Self::Mpu9255 => 0x73,
            Self::Copy => 0x98,
        }
    }

    /// The register PWR_MGMT_1 after power-on: asleep or awake.
    pub(super) fn first_power(self) -> u8 {
        match self {
            Self::Mpu6050 | Self::Copy => 0x40,
            Self::Mpu6500 | Self::Mpu9250 | Self::Mpu9255 => 0x01,
        }
    }

    pub(super) fn has_compass(self) -> bool {
        matches!(self, Self::Mpu9250 | Self::Mpu9255)
    }

    /// The temperature of 0 in degrees Celsius, and digits per degree.
    pub(super) fn temperature_scale(self) -> (f64, f64) {
        match self {
            Self::Mpu6050 => (36.53, 340.0),
            Self::Mpu6500 | Self::Mpu9250 | Self::Mpu9255 => (21.0, 333.87),
            Self::Copy => (25.0, 326.8),
        }
    }

    /// The largest bias of its gyroscope at rest, in degrees per second.
    pub(super) fn most_bias_deg_s(self) -> f64 {
        match self {
            Self::Mpu6050 => 20.0,
            Self::Mpu6500 | Self::Mpu9250 | Self::Mpu9255 | Self::Copy => 5.0,
        }
    }
}
