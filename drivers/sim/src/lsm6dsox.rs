//! A simulated LSM6DSOX or a relative, with the magnetometer LIS3MDL beside it: transfers on the bus
//! in, replies out. PURE.
//!
//! The axes of both are those of the robot, as on the boards of Adafruit and Pololu: x to the right,
//! y ahead, z up.

use std::time::Duration;

use self::compass::Compass;
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
pub const ADDRESS: u8 = 0x6A;
/// The address of the magnetometer.
pub const COMPASS_ADDRESS: u8 = 0x1C;

/// The board.
pub type Lsm6dsox = Board<LsmChips>;

/// Its chips.
#[derive(Clone, Debug)]
pub struct LsmChips {
    inertial: Inertial,
    compass: Option<Compass>,
}

impl Chips for LsmChips {
    type Model = Model;
    /// 70 ug/sqrt(Hz) and 0.004 deg/s/sqrt(Hz) over 100 Hz, and 0.4 uT.
    const NOISE: Noise = Noise {
        accel_g: 0.001,
        gyro_deg_s: 0.04,
        magnet_gauss: 0.004,
        ..Noise::USUAL
    };
    const SEED: u64 = 0x6C_73_6D;

    fn new(model: Model, now: Duration) -> Self {
        Self {
            inertial: Inertial::new(model.who_am_i(), now),
            compass: model.has_compass().then(Compass::new),
        }
    }

    fn chip(
        &mut self,
        now: Duration,
        address: u8,
        senses: &mut Senses<'_>,
    ) -> Option<&mut dyn Chip> {
        match (address, &mut self.compass) {
            (ADDRESS, _) => {
                (self.inertial).measure(now, &mut |time| senses.inertia(time));
                Some(&mut self.inertial)
            }
            (COMPASS_ADDRESS, Some(compass)) => {
                compass.measure(now, &mut |time| senses.field_gauss(time));
                Some(compass)
            }
            _ => None,
        }
    }
}
