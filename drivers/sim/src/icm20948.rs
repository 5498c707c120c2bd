//! A simulated ICM-20948 with its magnetometer AK09916: transfers on the bus in, replies out. PURE.
//!
//! The axes of the accelerometer and of the gyroscope are those of the robot: x to the right, y ahead,
//! z up. The magnetometer has x to the right, y back and z down, as in the real sensor. Programs reach
//! it in both ways: on the main bus, or by the bus that the sensor itself is the master of.

use std::time::Duration;

use self::inertial::Inertial;
pub use self::twin::{DEVICE, Model, Options};
use crate::motion_sensor::{Board, Chips, Senses};
use crate::ninedof::{Chip, Noise};

mod compass;
mod inertial;
#[cfg(test)]
mod tests;
mod twin;

/// The address of the accelerometer and the gyroscope.
pub const ADDRESS: u8 = 0x69;
/// The address of the magnetometer.
pub const COMPASS_ADDRESS: u8 = 0x0C;

/// The sensor.
pub type Icm20948 = Board<IcmChips>;

/// Its chips.
#[derive(Clone, Debug)]
pub struct IcmChips(Inertial);

impl Chips for IcmChips {
    type Model = Model;
    /// 230 ug/sqrt(Hz) and 0.015 deg/s/sqrt(Hz) over 50 Hz, and 0.5 uT.
    const NOISE: Noise = Noise {
        accel_g: 0.002,
        gyro_deg_s: 0.1,
        magnet_gauss: 0.005,
        ..Noise::USUAL
    };
    const SEED: u64 = 0x69_63_6D;

    fn new(_model: Model, now: Duration) -> Self {
        Self(Inertial::new(now))
    }

    fn chip(
        &mut self,
        now: Duration,
        address: u8,
        senses: &mut Senses<'_>,
    ) -> Option<&mut dyn Chip> {
        let sensor = &mut self.0;
        match address {
            ADDRESS => {
                sensor.measure(now, senses);
                Some(sensor)
            }
            COMPASS_ADDRESS => sensor.compass_on_main_bus(now, senses),
            _ => None,
        }
    }
}
