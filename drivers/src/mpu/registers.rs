//! The registers of the sensors, and their settings and scales. PURE.

use super::part::Part;
use crate::motion_sensor::chip::Sample;
use crate::motion_sensor::inertia::{Inertia, Ranges, place};
use crate::motion_sensor::setting::{Setting, changed};
use crate::motion_sensor::units::Measured;

pub(super) const SMPLRT_DIV: u8 = 0x19;
pub(super) const CONFIG: u8 = 0x1A;
pub(super) const GYRO_CONFIG: u8 = 0x1B;
pub(super) const ACCEL_CONFIG: u8 = 0x1C;
/// An MPU-6050 does not have this register: its CONFIG filters both.
pub(super) const ACCEL_CONFIG_2: u8 = 0x1D;
pub(super) const INT_PIN_CFG: u8 = 0x37;
pub(super) const INT_ENABLE: u8 = 0x38;
pub(super) const USER_CTRL: u8 = 0x6A;
pub(super) const PWR_MGMT_1: u8 = 0x6B;
pub(super) const PWR_MGMT_2: u8 = 0x6C;
pub(super) const WHO_AM_I: u8 = 0x75;

/// In PWR_MGMT_1: all registers get their first values. Clears itself.
pub(super) const RESET: u8 = 0x80;
/// In PWR_MGMT_1: awake, with the clock of the gyroscope, which is the most accurate.
pub(super) const AWAKE: u8 = 0x01;
/// In INT_PIN_CFG: the magnetometer is on the bus. Also set without one, since a sensor that was
/// reset shows by its absence.
const BYPASS: u8 = 0x02;
/// In INT_ENABLE and INT_STATUS: a sample is ready.
const DATA_READY: u8 = 0x01;
/// The sample rate is 1000 Hz divided by one more than this: 200 Hz, that of the shortest period of
/// a subscription.
const DIVIDER: u8 = 4;

/// One burst: INT_PIN_CFG, INT_ENABLE, a register without meaning, INT_STATUS, and the data:
/// accelerometer, temperature, gyroscope. The data of one burst are of one sample.
pub(super) type Burst = [u8; 18];
/// The registers from SMPLRT_DIV to ACCEL_CONFIG_2.
pub(super) type Configs = [u8; 5];

/// The ranges and the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    ranges: Ranges,
    /// The place in the table below, which is what the registers have.
    low_pass: u8,
}

/// What registers have for the ranges, and digits per unit.
const CODES: [u8; 4] = [0, 1, 2, 3];
const PER_G: [f64; 4] = [16_384.0, 8_192.0, 4_096.0, 2_048.0];
const PER_DEG_S: [f64; 4] = [131.0, 65.5, 32.8, 16.4];
/// From 1 on. With 0, the rate of the samples would be another one.
const LOW_PASS_HZ: [u16; 6] = [184, 94, 44, 21, 10, 5];

impl Default for Scale {
    /// 4 g, 500 degrees per second, 44 Hz.
    fn default() -> Self {
        Self::with(Ranges::default())
    }
}

impl Scale {
    /// With these ranges, and 44 Hz.
    #[must_use]
    pub fn with(ranges: Ranges) -> Self {
        Self {
            ranges,
            low_pass: 3,
        }
    }

    /// Another filter.
    ///
    /// # Errors
    /// The sensors do not have it.
    pub fn with_low_pass_hz(self, low_pass_hz: u16) -> Result<Self, String> {
        let low_pass = place(&LOW_PASS_HZ, low_pass_hz)? + 1;
        Ok(Self { low_pass, ..self })
    }

    /// The settings of an awake sensor, in the order in which they are written.
    pub(super) fn settings(self, part: &Part) -> Vec<Setting> {
        let filter = part
            .filters_apart
            .then_some((ACCEL_CONFIG_2, self.low_pass, 0x0F));
        let all = [
            Some((PWR_MGMT_2, 0x00, 0xFF)),
            Some((USER_CTRL, 0x00, 0xFF)),
            Some((INT_PIN_CFG, BYPASS, 0xFF)),
            Some((INT_ENABLE, DATA_READY, 0xFF)),
            Some((CONFIG, self.low_pass, 0x7F)),
            filter,
            Some((SMPLRT_DIV, DIVIDER, 0xFF)),
            Some((GYRO_CONFIG, self.ranges.gyro(CODES) << 3, 0xFB)),
            Some((ACCEL_CONFIG, self.ranges.accel(CODES) << 3, 0xF8)),
        ];
        let setting = |(register, value, mask)| Setting::masked(register, value, mask);
        all.into_iter().flatten().map(setting).collect()
    }

    /// The quantities of a sample, on the axes of the board.
    pub(super) fn measured(self, digits: &Inertia) -> Measured {
        let mg = 1000.0 / self.ranges.accel(PER_G);
        digits.measured(mg, 1.0 / self.ranges.gyro(PER_DEG_S))
    }
}

/// Decodes a burst, and compares all settings that were read with it.
pub(super) fn inertia(settings: &[Setting], burst: Burst, configs: Configs) -> Sample<Inertia> {
    let [pins, interrupts, _, status, data @ ..] = burst;
    if (pins, interrupts) == (0, 0) {
        return Sample::Lost("it has lost its settings: it was reset, or its power failed");
    }
    let change = changed(settings, INT_PIN_CFG, &[pins, interrupts]);
    if let Some(change) = change.or_else(|| changed(settings, SMPLRT_DIV, &configs)) {
        return Sample::Changed(change);
    }
    let word = |k: usize| i16::from_be_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = Inertia {
        accel: [word(0), word(1), word(2)],
        // The temperature is between them.
        gyro: [word(4), word(5), word(6)],
    };
    match status & DATA_READY {
        0 => Sample::Old(digits),
        _ => Sample::Fresh(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::super::part;
    use super::*;

    /// The bytes listed in the hardware sheet: 2 g, 500 degrees per second.
    const DATA: [u8; 14] = [
        0xF8, 0x00, 0x04, 0x00, 0x40, 0x00, 0xF0, 0xB0, 0x02, 0x8F, 0xFD, 0x71, 0x19, 0x96,
    ];

    fn burst(head: [u8; 4]) -> Burst {
        [&head[..], &DATA].concat().try_into().unwrap()
    }

    fn scale(accel_g: u16, gyro_deg_s: u16) -> Scale {
        let ranges = Ranges::default().with_accel_g(accel_g).unwrap();
        Scale::with(ranges.with_gyro_deg_s(gyro_deg_s).unwrap())
    }

    fn settings(who_am_i: u8) -> Vec<Setting> {
        scale(2, 500).settings(part::named(who_am_i).unwrap())
    }

    #[test]
    fn the_settings_are_those_of_the_hardware_sheet() {
        let written = |who_am_i| {
            let settings = settings(who_am_i).into_iter();
            settings
                .map(|it| [it.register, it.value])
                .collect::<Vec<_>>()
        };
        let mpu_9250 = [
            [0x6C, 0x00],
            [0x6A, 0x00],
            [0x37, 0x02],
            [0x38, 0x01],
            [0x1A, 0x03],
            [0x1D, 0x03],
            [0x19, 0x04],
            [0x1B, 0x08],
            [0x1C, 0x00],
        ];
        assert_eq!(written(0x71), mpu_9250);
        let mpu_6050 = written(0x68);
        assert_eq!(mpu_6050.len(), 8);
        assert!(!mpu_6050.contains(&[0x1D, 0x03]));
    }

    #[test]
    fn bytes_are_decoded_to_digits_and_quantities() {
        let configs = [0x04, 0x03, 0x08, 0x00, 0x03];
        let digits = Inertia {
            accel: [-2048, 1024, 16384],
            gyro: [655, -655, 6550],
        };
        let fresh = inertia(&settings(0x71), burst([0x02, 0x01, 0, 0x01]), configs);
        assert_eq!(fresh, Sample::Fresh(digits));
        let old = inertia(&settings(0x71), burst([0x02, 0x01, 0xFF, 0xFE]), configs);
        assert_eq!(old, Sample::Old(digits));
        for (accel_g, gyro_deg_s, times) in [(2, 500, 1.0), (16, 2_000, 8.0)] {
            let measured = scale(accel_g, gyro_deg_s).measured(&digits);
            let expected = [-125.0, 62.5, 1000.0].map(|mg| mg * times);
            assert_eq!(measured.accel_mg, Some(expected));
            let [x, y, z] = measured.gyro_deg_s.unwrap();
            let near = |rate: f64, expected: f64| (rate / expected - 1.0).abs() < 0.002;
            let times = if gyro_deg_s == 500 { 1.0 } else { 4.0 };
            assert!(near(x, 10.0 * times) && near(y, -10.0 * times) && near(z, 100.0 * times));
        }
    }

    #[test]
    fn lost_and_changed_settings_are_detected() {
        let good = [0x04, 0x03, 0x08, 0x00, 0x03];
        let head = [0x02, 0x01, 0, 1];
        for who_am_i in [0x68, 0x71] {
            let settings = settings(who_am_i);
            let reset = inertia(&settings, burst([0, 0, 0, 1]), [0; 5]);
            assert!(matches!(reset, Sample::Lost(_)), "{reset:?}");
            for place in 0..5 {
                let mut configs = good;
                // Twice the range, or another filter.
                configs[place] ^= if place < 2 { 0x01 } else { 0x18 };
                configs[place] ^= if place == 4 { 0x1C } else { 0x00 };
                let changed = inertia(&settings, burst(head), configs);
                let is_unused = who_am_i == 0x68 && place == 4;
                let is_there = matches!(changed, Sample::Changed(change)
                    if usize::from(change.register) == 0x19 + place);
                assert_eq!(is_there, !is_unused, "{who_am_i:#x} {place}: {changed:?}");
            }
            for head in [[0x22, 0x01, 0, 1], [0x00, 0x01, 0, 1], [0x02, 0x00, 0, 1]] {
                let changed = inertia(&settings, burst(head), good);
                assert!(matches!(changed, Sample::Changed(_)), "{head:?}");
            }
        }
    }

    #[test]
    fn other_filters_are_refused() {
        let scale = Scale::default();
        assert!(scale.with_low_pass_hz(260).is_err());
        assert_eq!(scale.with_low_pass_hz(5).unwrap().low_pass, 6);
        assert_eq!(scale.with_low_pass_hz(184).unwrap().low_pass, 1);
    }
}
