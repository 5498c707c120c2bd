//! A simulated MPU-6050, MPU-6500, MPU-9250 or MPU-9255: transfers on the bus in, replies out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. As in
//! [`ninedof`](crate::ninedof), a sample is computed only when it is read.
//!
//! The axes of the accelerometer and of the gyroscope are those of the robot: x to the right, y ahead,
//! z up. The magnetometer has x ahead, y to the right and z down, as in the real sensor.

use std::time::Duration;

use self::compass::Compass;
use self::inertial::Inertial;
pub use self::model::Model;
pub use self::twin::{DEVICE, Options};
use crate::motion_sensor::{Board, Chips, Senses};
use crate::ninedof::{Chip, Noise};

mod compass;
mod inertial;
mod model;
#[cfg(test)]
mod tests;
mod twin;

/// The address of the accelerometer and the gyroscope.
pub const ADDRESS: u8 = 0x68;
/// The address of the magnetometer.
pub const COMPASS_ADDRESS: u8 = 0x0C;

/// The sensor.
pub type Mpu = Board<MpuChips>;

/// Its chips.
#[derive(Clone, Debug)]
pub struct MpuChips {
    model: Model,
    inertial: Inertial,
    compass: Compass,
}

impl Chips for MpuChips {
    type Model = Model;
    /// 400 ug/sqrt(Hz) and 0.005 deg/s/sqrt(Hz) over 44 Hz, and 0.5 uT. On a driving robot it vibrates as
    /// the other board does.
    const NOISE: Noise = Noise {
        accel_g: 0.003,
        gyro_deg_s: 0.035,
        magnet_gauss: 0.005,
        ..Noise::USUAL
    };
    const SEED: u64 = 0x6D_70_75;

    fn most_bias_deg_s(model: Model) -> f64 {
        model.most_bias_deg_s()
    }

    fn new(model: Model, now: Duration) -> Self {
        Self {
            model,
            inertial: Inertial::new(model, now),
            compass: Compass::default(),
        }
    }

    fn chip(
        &mut self,
        now: Duration,
        address: u8,
        senses: &mut Senses<'_>,
    ) -> Option<&mut dyn Chip> {
        match address {
            ADDRESS => {
                (self.inertial).measure(now, &mut |time| senses.inertia(time));
                Some(&mut self.inertial)
            }
            COMPASS_ADDRESS if self.model.has_compass() && self.inertial.lets_compass_through() => {
                self.compass.measure(now, &mut |time| {
                    let [right, ahead, up] = senses.field_gauss(time);
                    [ahead, right, -up]
                });
                Some(&mut self.compass)
            }
            _ => None,
        }
    }
}
