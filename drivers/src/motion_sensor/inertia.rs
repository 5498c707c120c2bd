//! What chips with an accelerometer and a gyroscope share: ranges, and digits. PURE.

use super::units::{Axes, Measured};

/// The ranges. All families have the same, each with codes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// Places in the tables below.
    accel: u8,
    gyro: u8,
}

const ACCEL_G: [u16; 4] = [2, 4, 8, 16];
const GYRO_DEG_S: [u16; 4] = [250, 500, 1_000, 2_000];

impl Default for Ranges {
    /// 4 g, 500 degrees per second.
    fn default() -> Self {
        Self { accel: 1, gyro: 1 }
    }
}

impl Ranges {
    /// Another range of the accelerometer.
    ///
    /// # Errors
    /// The sensors do not have it.
    pub fn with_accel_g(self, accel_g: u16) -> Result<Self, String> {
        let accel = place(&ACCEL_G, accel_g)?;
        Ok(Self { accel, ..self })
    }

    /// Another range of the gyroscope.
    ///
    /// # Errors
    /// The sensors do not have it.
    pub fn with_gyro_deg_s(self, gyro_deg_s: u16) -> Result<Self, String> {
        let gyro = place(&GYRO_DEG_S, gyro_deg_s)?;
        Ok(Self { gyro, ..self })
    }

    /// The entry of a table for the accelerometer, from the smallest range on.
    pub(crate) fn accel<T: Copy>(self, table: [T; 4]) -> T {
        table[usize::from(self.accel)]
    }

    /// The entry of a table for the gyroscope, from the smallest range on.
    pub(crate) fn gyro<T: Copy>(self, table: [T; 4]) -> T {
        table[usize::from(self.gyro)]
    }
}

/// The place of a value in a table.
pub(crate) fn place(table: &[u16], value: u16) -> Result<u8, String> {
    let found = (0..).zip(table).find(|(_, it)| **it == value);
    found.map(|(place, _)| place).ok_or_else(|| {
        let all: Vec<_> = table.iter().map(u16::to_string).collect();
        format!("{value} is none of {}", all.join(", "))
    })
}

/// The digits of a sample, x y z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inertia {
    pub(crate) accel: [i16; 3],
    pub(crate) gyro: [i16; 3],
}

impl Inertia {
    /// The quantities, on the axes of the board. A digit is worth so much.
    pub(crate) fn measured(&self, mg: f64, deg_s: f64) -> Measured {
        let scaled =
            |digits: [i16; 3], unit: f64| -> Axes { digits.map(|it| f64::from(it) * unit) };
        Measured {
            accel_mg: Some(scaled(self.accel, mg)),
            gyro_deg_s: Some(scaled(self.gyro, deg_s)),
            magnet_mgauss: None,
        }
    }
}
