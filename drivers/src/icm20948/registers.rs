//! The registers of the sensor, in four banks, and their settings and scales. PURE, except for the
//! [`Bus`].

use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer};
use crate::motion_sensor::chip::{Change, Sample};
use crate::motion_sensor::found::unexpected;
use crate::motion_sensor::inertia::{Inertia, Ranges, place};
use crate::motion_sensor::setting::{Setting, changed, verify_all, write};
use crate::motion_sensor::units::Measured;

/// The addresses: with the pin AD0 low, and high. Most boards have the second one.
pub(super) const ADDRESSES: [u8; 2] = [0x69, 0x68];

/// The same in all banks. The bank is in bits 5 and 4.
const REG_BANK_SEL: u8 = 0x7F;
const BANK_0: u8 = 0x00;
const BANK_2: u8 = 0x20;

// Bank 0.
pub(super) const WHO_AM_I: u8 = 0x00;
const IDENTITY: u8 = 0xEA;
const USER_CTRL: u8 = 0x03;
const LP_CONFIG: u8 = 0x05;
pub(super) const PWR_MGMT_1: u8 = 0x06;
const PWR_MGMT_2: u8 = 0x07;
const INT_PIN_CFG: u8 = 0x0F;
pub(super) const INT_STATUS_1: u8 = 0x1A;
/// The first of twelve data registers: accelerometer, gyroscope. The data of one burst are of one
/// sample.
pub(super) const ACCEL_XOUT_H: u8 = 0x2D;

// Bank 2.
const GYRO_SMPLRT_DIV: u8 = 0x00;
const GYRO_CONFIG_1: u8 = 0x01;
const ACCEL_SMPLRT_DIV_1: u8 = 0x10;
const ACCEL_SMPLRT_DIV_2: u8 = 0x11;
const ACCEL_CONFIG: u8 = 0x14;

/// In PWR_MGMT_1: all registers get their first values. Clears itself.
pub(super) const RESET: u8 = 0x80;
/// In PWR_MGMT_1: awake, with the clock of the gyroscope, which is the most accurate.
const AWAKE: u8 = 0x01;
/// PWR_MGMT_1 after the sensor got power.
const ASLEEP: u8 = 0x41;
/// Bits of PWR_MGMT_1 that no sensor at work has.
const IMPLAUSIBLE_POWER: u8 = 0x98;
/// In INT_STATUS_1: a sample is ready.
const DATA_READY: u8 = 0x01;
/// In INT_PIN_CFG: the magnetometer is on the bus.
const BYPASS: u8 = 0x02;
/// The sample rate is 1125 Hz divided by one more than this: 225 Hz, a bit more than the shortest period
/// of a subscription needs.
const DIVIDER: u8 = 4;

/// Those of bank 0, which are read with each sample.
pub(super) const AWAKE_SETTINGS: [Setting; 5] = [
    Setting::new(PWR_MGMT_1, AWAKE),
    Setting::new(PWR_MGMT_2, 0x00),
    Setting::new(LP_CONFIG, 0x00),
    Setting::new(USER_CTRL, 0x00),
    Setting::new(INT_PIN_CFG, BYPASS),
];

/// The registers of bank 0 up to INT_PIN_CFG.
pub(super) type Head = [u8; 16];

/// What is at an address; an error if it is something else. Only reads, so a sensor that another
/// program has left in another bank is not recognized.
pub(super) fn identity(bus: &mut dyn Bus, at: u8) -> Result<&'static str, Problem> {
    let [who_am_i] = read(bus, at, WHO_AM_I)?;
    let [power] = read(bus, at, PWR_MGMT_1)?;
    match (who_am_i, power & IMPLAUSIBLE_POWER) {
        // A reset clears its bit.
        (IDENTITY, 0 | RESET) => Ok("ICM-20948"),
        _ => Err(unexpected(at, who_am_i)),
    }
}

/// The same, and selects bank 0 if another one seems to be selected.
pub(super) fn identity_in_any_bank(bus: &mut dyn Bus, at: u8) -> Result<&'static str, Problem> {
    match identity(bus, at) {
        Err(Problem::Chip(text)) => {
            let [bank] = read(bus, at, REG_BANK_SEL)?;
            if !matches!(bank, 0x10 | 0x20 | 0x30) {
                return Err(Problem::Chip(text));
            }
            select(bus, at, BANK_0)?;
            identity(bus, at)
        }
        found => found,
    }
}

fn select(bus: &mut dyn Bus, at: u8, bank: u8) -> Result<(), Problem> {
    transfer(bus, at, &[REG_BANK_SEL, bank], &mut [])
}

/// The ranges and the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    ranges: Ranges,
    /// What the registers of both chips have.
    low_pass: u8,
}

/// What registers have for the ranges, and digits per unit.
const CODES: [u8; 4] = [0, 1, 2, 3];
const PER_G: [f64; 4] = [16_384.0, 8_192.0, 4_096.0, 2_048.0];
const PER_DEG_S: [f64; 4] = [131.0, 65.5, 32.8, 16.4];
/// From 2 on. Rounded: the filters of both chips differ a bit.
const LOW_PASS_HZ: [u16; 5] = [111, 50, 24, 12, 6];

impl Default for Scale {
    /// 4 g, 500 degrees per second, 50 Hz.
    fn default() -> Self {
        Self::with(Ranges::default())
    }
}

impl Scale {
    /// With these ranges, and 50 Hz.
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
    /// The sensor does not have it.
    pub fn with_low_pass_hz(self, low_pass_hz: u16) -> Result<Self, String> {
        let low_pass = place(&LOW_PASS_HZ, low_pass_hz)? + 2;
        Ok(Self { low_pass, ..self })
    }

    /// The settings in bank 2.
    pub(super) fn settings(self) -> [Setting; 5] {
        let config = |range: u8| self.low_pass << 3 | range << 1 | 1;
        [
            Setting::new(GYRO_SMPLRT_DIV, DIVIDER),
            Setting::new(GYRO_CONFIG_1, config(self.ranges.gyro(CODES))),
            Setting::masked(ACCEL_SMPLRT_DIV_1, 0x00, 0x0F),
            Setting::new(ACCEL_SMPLRT_DIV_2, DIVIDER),
            Setting::masked(ACCEL_CONFIG, config(self.ranges.accel(CODES)), 0x3F),
        ]
    }

    /// The quantities of a sample, on the axes of the board.
    pub(super) fn measured(self, digits: &Inertia) -> Measured {
        let mg = 1000.0 / self.ranges.accel(PER_G);
        digits.measured(mg, 1.0 / self.ranges.gyro(PER_DEG_S))
    }
}

/// Does something in bank 2, and selects bank 0 again.
pub(super) fn in_bank_2<T>(
    bus: &mut dyn Bus,
    at: u8,
    work: impl FnOnce(&mut dyn Bus) -> Result<T, Problem>,
) -> Result<T, Problem> {
    select(bus, at, BANK_2)?;
    let done = work(bus);
    select(bus, at, BANK_0)?;
    done
}

/// Writes all settings.
pub(super) fn write_all(bus: &mut dyn Bus, at: u8, scale: Scale) -> Result<(), Problem> {
    write(bus, at, &AWAKE_SETTINGS)?;
    in_bank_2(bus, at, |bus| write(bus, at, &scale.settings()))
}

/// Checks that all settings were kept.
pub(super) fn verify(bus: &mut dyn Bus, at: u8, scale: Scale) -> Result<(), Problem> {
    verify_all(bus, at, &AWAKE_SETTINGS)?;
    in_bank_2(bus, at, |bus| verify_all(bus, at, &scale.settings()))
}

/// The first setting in bank 2 that another program has changed.
pub(super) fn changed_range(
    bus: &mut dyn Bus,
    at: u8,
    scale: Scale,
) -> Result<Option<Change>, Problem> {
    let registers: [u8; 21] = in_bank_2(bus, at, |bus| read(bus, at, GYRO_SMPLRT_DIV))?;
    Ok(changed(&scale.settings(), GYRO_SMPLRT_DIV, &registers))
}

/// Decodes the data, and compares the registers at the start of the bank.
pub(super) fn inertia(status: u8, data: [u8; 12], head: Head) -> Sample<Inertia> {
    if head[usize::from(WHO_AM_I)] != IDENTITY {
        return Sample::Lost("another program has selected another bank of its registers");
    }
    if head[usize::from(PWR_MGMT_1)] == ASLEEP {
        return Sample::Lost("it has lost its settings: it was reset, or its power failed");
    }
    if let Some(change) = changed(&AWAKE_SETTINGS, WHO_AM_I, &head) {
        return Sample::Changed(change);
    }
    let word = |k: usize| i16::from_be_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = Inertia {
        accel: [word(0), word(1), word(2)],
        gyro: [word(3), word(4), word(5)],
    };
    match status & DATA_READY {
        0 => Sample::Old(digits),
        _ => Sample::Fresh(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes listed in the hardware sheet: 8 g, 500 degrees per second.
    const DATA: [u8; 12] = [
        0xFE, 0x00, 0x01, 0x00, 0x10, 0x00, 0x02, 0x8F, 0xFD, 0x71, 0x19, 0x96,
    ];
    const HEAD: Head = [0xEA, 0, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0x02];

    #[test]
    fn bytes_are_decoded_to_digits_and_quantities() {
        let digits = Inertia {
            accel: [-512, 256, 4096],
            gyro: [655, -655, 6550],
        };
        assert_eq!(inertia(0x01, DATA, HEAD), Sample::Fresh(digits));
        assert_eq!(inertia(0xFE, DATA, HEAD), Sample::Old(digits));
        let scale = Scale::with(Ranges::default().with_accel_g(8).unwrap());
        let measured = scale.measured(&digits);
        assert_eq!(measured.accel_mg, Some([-125.0, 62.5, 1000.0]));
        let rates = measured.gyro_deg_s.unwrap();
        for (rate, expected) in rates.into_iter().zip([10.0, -10.0, 100.0]) {
            assert!((rate - expected).abs() < 0.016, "{rates:?}");
        }
    }

    #[test]
    fn the_settings_are_those_of_the_hardware_sheet() {
        let scale = Scale::default().with_low_pass_hz(24).unwrap();
        let written = scale.settings().map(|it| [it.register, it.value]);
        let expected = [
            [0x00, 0x04],
            [0x01, 0x23],
            [0x10, 0x00],
            [0x11, 0x04],
            [0x14, 0x23],
        ];
        assert_eq!(written, expected);
        assert!(scale.with_low_pass_hz(44).is_err());
    }

    #[test]
    fn lost_and_changed_settings_are_detected() {
        let other = |place: usize, value| {
            let mut head = HEAD;
            head[place] = value;
            inertia(0x01, DATA, head)
        };
        assert!(matches!(other(0, 0x04), Sample::Lost(_)));
        assert!(matches!(other(6, ASLEEP), Sample::Lost(_)));
        for (place, value) in [(3, 0x20), (5, 0x40), (6, 0x21), (7, 0x07), (15, 0x00)] {
            let changed = other(place, value);
            assert!(
                matches!(changed, Sample::Changed(change) if usize::from(change.register) == place),
                "{changed:?}"
            );
        }
    }
}
