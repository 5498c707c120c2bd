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
use crate::i2c::{Reply, Transfer};
use crate::ninedof::{Axes, Chip, Errors, Noise, Truth, carry_out};

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

/// The noise of the sensor: 400 ug/sqrt(Hz) and 0.005 deg/s/sqrt(Hz) over 44 Hz, and 0.5 uT. On a driving
/// robot it vibrates as the other board does.
const NOISE: Noise = Noise {
    accel_g: 0.003,
    gyro_deg_s: 0.035,
    magnet_gauss: 0.005,
    ..Noise::USUAL
};
/// The errors are not those of the other board.
const OTHER_SEED: u64 = 0x6D_70_75;

/// The sensor.
#[derive(Clone, Debug)]
pub struct Mpu {
    model: Model,
    inertial: Inertial,
    compass: Compass,
    errors: Errors,
}

impl Mpu {
    /// Creates a sensor that was just powered on.
    #[must_use]
    pub fn new(model: Model, errors: Errors, now: Duration) -> Self {
        Self {
            model,
            inertial: Inertial::new(model, now),
            compass: Compass::default(),
            errors,
        }
    }

    /// Creates a sensor with the errors of a seed.
    #[must_use]
    pub fn of_seed(model: Model, seed: u64) -> Self {
        let errors = Errors::drawn(seed ^ OTHER_SEED, NOISE, model.most_bias_deg_s());
        Self::new(model, errors, Duration::ZERO)
    }

    /// A power cycle: the settings are lost.
    pub fn restart(&mut self, now: Duration) {
        *self = Self::new(self.model, self.errors.clone(), now);
    }

    /// The measurement errors.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Carries out a transfer.
    pub fn transfer(&mut self, now: Duration, transfer: &Transfer, truth: Truth) -> Reply {
        self.errors.drift(now);
        let errors = &mut self.errors;
        let chip: &mut dyn Chip = match transfer.address {
            ADDRESS => {
                self.inertial.measure(now, &mut |time| {
                    let motion = truth(time);
                    (errors.accel(motion), errors.gyro(motion))
                });
                &mut self.inertial
            }
            COMPASS_ADDRESS if self.model.has_compass() && self.inertial.lets_compass_through() => {
                self.compass.measure(now, &mut |time| {
                    let [right, ahead, up] = errors.magnet(truth(time));
                    [ahead, right, -up]
                });
                &mut self.compass
            }
            _ => return Reply::Nak,
        };
        carry_out(chip, now, transfer)
    }
}

/// A value as digits, limited to the range.
fn digits(axes: Axes, per_unit: f64) -> [i16; 3] {
    // The conversion limits.
    axes.map(|value| (value * per_unit).round() as i16)
}
