//! The registers of the LSM303DLHC and of the L3G4200D, L3GD20 and L3GD20H: settings and data.
//! PURE.

use crate::motion_sensor::chip::{Change, Digits, Sample};
use crate::motion_sensor::sensors::Sensor;

/// Raw digits of the chips, x y z; `None` for a sensor without data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw {
    /// Twelve bits, left-justified.
    pub accel: Option<[i16; 3]>,
    /// Sixteen bits.
    pub gyro: Option<[i16; 3]>,
    /// Twelve bits, right-justified.
    pub magnet: Option<[i16; 3]>,
}

/// The sensitivity of the magnetometer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// Up to 2.5 gauss, 1.5 milligauss per digit: several times the field of the Earth and a robot
    /// together.
    Fine,
    /// Up to 8.1 gauss, 4.3 milligauss per digit, as in the original.
    Coarse,
}

/// A register and the value that it must keep.
pub(super) type Setting = [u8; 2];

pub(super) const ACCEL_ADDRESS: u8 = 0x19;
pub(super) const MAGNET_ADDRESS: u8 = 0x1E;

/// Possible addresses of a gyroscope. They depend on the chip and on the level at one pin.
pub(super) const GYRO_ADDRESSES: [u8; 4] = [0x6B, 0x6A, 0x69, 0x68];

pub(super) const WHO_AM_I: u8 = 0x0F;
/// The first of three identity registers; they hold three letters.
pub(super) const MAGNET_ID: u8 = 0x0A;

/// Normal power, 400 Hz; ±4 g, high resolution, block data update.
pub(super) const ACCEL_SETTINGS: [Setting; 2] = [[0x20, 0x77], [0x23, 0x98]];
/// 760 or 800 Hz, bandwidth 50 Hz; ±500 degrees per second, block data update. The second register
/// is written first, so that it applies to the first sample.
pub(super) const GYRO_SETTINGS: [Setting; 2] = [[0x23, 0x90], [0x20, 0xEF]];

/// The first of fourteen registers, counting up: settings, status and data.
pub(super) const INERTIAL: u8 = FIRST | 0x80;
const FIRST: u8 = 0x20;
/// The first setting after the chip got power: it does not measure.
const INERTIAL_OFF: u8 = 0x07;
/// The settings of the magnetometer after it got power.
const MAGNET_OFF: [u8; 3] = [0x10, 0x20, 0x03];
/// Settings and data of the magnetometer: nine registers.
pub(super) const MAGNET_SETTINGS: u8 = 0x00;
/// Bit 0: the magnetometer has a sample.
pub(super) const MAGNET_STATUS: u8 = 0x09;

/// Temperature on, 220 Hz; the gain; continuous measurement.
pub(super) fn magnet_settings(gain: Gain) -> [Setting; 3] {
    let gain = match gain {
        Gain::Fine => 0x60,
        Gain::Coarse => 0xE0,
    };
    [[0x00, 0x9C], [0x01, gain], [0x02, 0x00]]
}

/// The name of a gyroscope with this identity.
pub(super) fn gyro_name(who_am_i: u8) -> Option<&'static str> {
    match who_am_i {
        0xD3 => Some("L3G4200D"),
        0xD4 => Some("L3GD20"),
        0xD7 => Some("L3GD20H"),
        _ => None,
    }
}

/// Decodes the registers from [`INERTIAL`], which must have these settings. The data are
/// little-endian, x y z.
pub(super) fn inertial_sample(settings: &[Setting], bytes: [u8; 14]) -> Sample<[i16; 3]> {
    let [first, .., status, _, _, _, _, _, _] = bytes;
    if first == INERTIAL_OFF {
        return Sample::Reset;
    }
    for &[register, set] in settings {
        let found = bytes[usize::from(register - FIRST)];
        if found != set {
            return Sample::Changed(Change {
                register,
                set,
                found,
            });
        }
    }
    let data = &bytes[8..];
    let axis = |k: usize| i16::from_le_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = [axis(0), axis(1), axis(2)];
    match status & 0x08 {
        0 => Sample::Old(digits),
        _ => Sample::Fresh(digits),
    }
}

/// Decodes the registers from [`MAGNET_SETTINGS`]: big-endian, x z y. They do not show whether a
/// sample is new, but a chip that is set up measures.
pub(super) fn magnet_sample(gain: Gain, bytes: [u8; 9]) -> Sample<[i16; 3]> {
    const OVERFLOW: i16 = -4096;
    let [cra, crb, mr, data @ ..] = bytes;
    let all = [cra, crb, mr];
    if all == MAGNET_OFF {
        return Sample::Reset;
    }
    for ([register, set], found) in magnet_settings(gain).into_iter().zip(all) {
        if found != set {
            return Sample::Changed(Change {
                register,
                set,
                found,
            });
        }
    }
    let axis = |k: usize| i16::from_be_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = [axis(0), axis(2), axis(1)];
    match digits.contains(&OVERFLOW) {
        true => Sample::Overflow,
        false => Sample::Fresh(digits),
    }
}

impl Raw {
    /// The digits of one sensor.
    pub(super) fn of(sensor: Sensor, digits: [i16; 3]) -> Self {
        let only = |which| (which == sensor).then_some(digits);
        Self {
            accel: only(Sensor::Accel),
            gyro: only(Sensor::Gyro),
            magnet: only(Sensor::Magnet),
        }
    }
}

impl Digits for Raw {
    fn and(self, other: Self) -> Self {
        Self {
            accel: self.accel.or(other.accel),
            gyro: self.gyro.or(other.gyro),
            magnet: self.magnet.or(other.magnet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes listed in the hardware sheet.
    #[test]
    fn bytes_are_decoded_to_digits() {
        let accel = |data: [u8; 7]| {
            let settings = [0x77, 0, 0, 0x98, 0, 0, 0];
            let mut bytes = [0; 14];
            bytes[..7].copy_from_slice(&settings);
            bytes[7..].copy_from_slice(&data);
            inertial_sample(&ACCEL_SETTINGS, bytes)
        };
        assert_eq!(
            accel([0x0F, 0x00, 0xFC, 0x00, 0x02, 0x00, 0x20]),
            Sample::Fresh([-1024, 512, 8192])
        );
        assert_eq!(
            accel([0x00, 0x3B, 0x02, 0xC5, 0xFD, 0x52, 0x16]),
            Sample::Old([571, -571, 5714])
        );
        assert_eq!(
            magnet_sample(
                Gain::Coarse,
                [0x9C, 0xE0, 0x00, 0x00, 0x2E, 0xFF, 0xAE, 0xFF, 0xE9]
            ),
            Sample::Fresh([46, -23, -82])
        );
    }

    #[test]
    fn lost_and_changed_settings_of_accelerometer_and_gyroscope_are_detected() {
        let mut bytes = [0; 14];
        for settings in [ACCEL_SETTINGS, GYRO_SETTINGS] {
            bytes[0] = INERTIAL_OFF;
            assert_eq!(inertial_sample(&settings, bytes), Sample::Reset);
            for [register, set] in settings {
                bytes[usize::from(register - FIRST)] = set;
            }
            assert_eq!(inertial_sample(&settings, bytes), Sample::Old([0; 3]));
            // Twice the range.
            bytes[3] ^= 0x30;
            let changed = inertial_sample(&settings, bytes);
            assert!(matches!(changed, Sample::Changed(change) if change.register == 0x23));
        }
    }

    #[test]
    fn lost_settings_and_overflows_of_a_magnetometer_are_detected() {
        let after_reset = [0x10, 0x20, 0x03, 0, 1, 0, 2, 0, 3];
        assert_eq!(magnet_sample(Gain::Fine, after_reset), Sample::Reset);
        let other_gain = [0x9C, 0xE0, 0x00, 0, 1, 0, 2, 0, 3];
        let change = Change {
            register: 0x01,
            set: 0x60,
            found: 0xE0,
        };
        assert_eq!(
            magnet_sample(Gain::Fine, other_gain),
            Sample::Changed(change)
        );
        let overflow = [0x9C, 0x60, 0x00, 0, 1, 0xF0, 0x00, 0, 3];
        assert_eq!(magnet_sample(Gain::Fine, overflow), Sample::Overflow);
    }
}
