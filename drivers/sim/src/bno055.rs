//! A simulated BNO055, which computes its attitude itself: transfers on the bus in, replies out. PURE.
//!
//! Its axes are those of the robot: x to the right, y ahead, z up. It starts slowly, and answers nobody
//! meanwhile.

use std::time::Duration;

use self::chip::Bno;
pub use self::twin::{DEVICE, Model, Options};
use crate::motion_sensor::{Board, Chips, Senses};
use crate::ninedof::{Chip, Noise};

mod chip;
mod fusion;
#[cfg(test)]
mod tests;
mod twin;

/// The address.
pub const ADDRESS: u8 = 0x28;

/// The sensor.
pub type Bno055 = Board<BnoChips>;

/// Its only chip.
#[derive(Clone, Debug)]
pub struct BnoChips(Bno);

impl Chips for BnoChips {
    type Model = Model;
    /// 150 ug/sqrt(Hz) and 0.014 deg/s/sqrt(Hz) over 30 to 60 Hz, and 0.3 uT.
    const NOISE: Noise = Noise {
        accel_g: 0.0015,
        gyro_deg_s: 0.1,
        magnet_gauss: 0.003,
        ..Noise::USUAL
    };
    const SEED: u64 = 0x62_6E_6F;

    fn most_bias_deg_s(_model: Model) -> f64 {
        1.0
    }

    fn new(_model: Model, now: Duration) -> Self {
        Self(Bno::new(now))
    }

    fn chip(
        &mut self,
        now: Duration,
        address: u8,
        senses: &mut Senses<'_>,
    ) -> Option<&mut dyn Chip> {
        if address != ADDRESS || !self.0.is_started(now) {
            return None;
        }
        self.0.measure(now, senses);
        Some(&mut self.0)
    }
}
