//! The accelerometer and the gyroscope. PURE, except for the [`Bus`].

use std::time::Duration;

use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer};
use crate::motion_sensor::chip::{Chip, Latest, Sample, SetUp};
use crate::motion_sensor::found::{find, unexpected};
use crate::motion_sensor::inertia::{Inertia, Ranges};
use crate::motion_sensor::options::Placement;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::setting::{Setting, changed, verify_all, write};
use crate::motion_sensor::units::Measured;

/// The addresses: with the pin SDO (or SA0, or AD0) low, and high.
pub(super) const ADDRESSES: [u8; 2] = [0x6A, 0x6B];

const WHO_AM_I: u8 = 0x0F;
/// The first of three registers with all settings.
const CTRL1_XL: u8 = 0x10;
const CTRL2_G: u8 = 0x11;
const CTRL3_C: u8 = 0x12;
/// The first of 16 registers: STATUS_REG, a register without meaning, and the data: temperature,
/// gyroscope, accelerometer. The data of one burst are of one sample.
const STATUS_REG: u8 = 0x1E;

/// In CTRL3_C: all registers get their first values. Clears itself.
const SW_RESET: u8 = 0x01;
/// In CTRL3_C: a sample does not change while it is read, and the register counts up.
const READABLE: u8 = 0x44;
/// What CTRL1_XL, CTRL2_G and CTRL3_C have after the chip got power: it does not measure.
const OFF: [u8; 3] = [0x00, 0x00, 0x04];
/// In STATUS_REG: new data of the accelerometer and of the gyroscope.
const DATA_READY: u8 = 0x03;
/// 208 samples per second, in CTRL1_XL and CTRL2_G: a bit more than the shortest period of a
/// subscription needs.
const RATE: u8 = 5 << 4;

/// What the registers have for the ranges, and what a digit is worth.
const ACCEL_CODES: [u8; 4] = [0, 2, 3, 1];
const GYRO_CODES: [u8; 4] = [0, 1, 2, 3];
const MG: [f64; 4] = [0.061, 0.122, 0.244, 0.488];
const DEG_S: [f64; 4] = [0.008_75, 0.017_5, 0.035, 0.07];

const AFTER_RESET: Duration = Duration::from_millis(10);
/// The gyroscopes of the family take up to 80 ms to start.
const STARTED: Duration = Duration::from_millis(100);

/// The sensor with this identity.
fn named(who_am_i: u8) -> Option<&'static str> {
    match who_am_i {
        0x6C => Some("LSM6DSOX"),
        0x69 => Some("LSM6DS3 or LSM6DS33"),
        0x6A => Some("LSM6DSL or LSM6DS3TR-C"),
        0x6B => Some("LSM6DSR or ISM330DHCX"),
        _ => None,
    }
}

/// What is at an address; an error if it is something else. Only reads.
pub(super) fn identity(bus: &mut dyn Bus, at: u8) -> Result<&'static str, Problem> {
    let [who_am_i] = read(bus, at, WHO_AM_I)?;
    named(who_am_i).ok_or_else(|| unexpected(at, who_am_i))
}

#[derive(Debug)]
pub(super) struct Inertial {
    placement: Placement,
    ranges: Ranges,
    settings: [Setting; 3],
    /// Where it was found.
    at: u8,
    latest: Latest<Inertia>,
}

impl Inertial {
    pub(super) fn new(placement: Placement, ranges: Ranges) -> Self {
        Self {
            placement,
            ranges,
            settings: settings(ranges),
            at: ADDRESSES[0],
            latest: Latest::default(),
        }
    }
}

/// In the order in which they are written.
fn settings(ranges: Ranges) -> [Setting; 3] {
    [
        Setting::masked(CTRL3_C, READABLE, !SW_RESET),
        Setting::new(CTRL1_XL, RATE | ranges.accel(ACCEL_CODES) << 2),
        Setting::new(CTRL2_G, RATE | ranges.gyro(GYRO_CODES) << 2),
    ]
}

impl Chip<Measured> for Inertial {
    fn sensors(&self) -> Sensors {
        Sensors::INERTIAL
    }

    fn name(&self) -> &'static str {
        "accelerometer and gyroscope"
    }

    /// A reset also removes what other programs have left, such as filters.
    fn set_up(&mut self, step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem> {
        let (at, name) = find(bus, &ADDRESSES, self.placement.address, identity)?;
        let done = |settle| SetUp::Done {
            name: format!("{name} at {at:#04x}"),
            settle,
        };
        if step > 0 {
            write(bus, at, &self.settings)?;
            verify_all(bus, at, &self.settings)?;
            return Ok(done(STARTED));
        }
        self.at = at;
        self.latest = Latest::default();
        // A driver with the same settings may use it at the same time.
        match verify_all(bus, at, &self.settings) {
            Ok(()) => return Ok(done(Duration::ZERO)),
            Err(Problem::Chip(_)) => {}
            Err(problem) => return Err(problem),
        }
        transfer(bus, at, &[CTRL3_C, SW_RESET], &mut [])?;
        Ok(SetUp::Continues(AFTER_RESET))
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Measured>, Problem> {
        let burst = read(bus, self.at, STATUS_REG)?;
        // After the data, so that they were measured with these settings.
        let configs = read(bus, self.at, CTRL1_XL)?;
        let sample = self.latest.judge(decoded(&self.settings, burst, configs));
        let (mg, deg_s) = (self.ranges.accel(MG), self.ranges.gyro(DEG_S));
        let mount = self.placement.mount;
        Ok(sample.map(|digits| mount.turned(digits.measured(mg, deg_s))))
    }
}

/// Decodes the registers from [`STATUS_REG`], and compares those from [`CTRL1_XL`] on.
fn decoded(settings: &[Setting], burst: [u8; 16], configs: [u8; 3]) -> Sample<Inertia> {
    let [accel, gyro, control] = configs;
    if [accel, gyro, control & !SW_RESET] == OFF {
        return Sample::Lost("it has lost its settings: it was reset, or its power failed");
    }
    if let Some(change) = changed(settings, CTRL1_XL, &configs) {
        return Sample::Changed(change);
    }
    let [status, _, _, _, data @ ..] = burst;
    let word = |k: usize| i16::from_le_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = Inertia {
        gyro: [word(0), word(1), word(2)],
        accel: [word(3), word(4), word(5)],
    };
    match status & DATA_READY {
        DATA_READY => Sample::Fresh(digits),
        _ => Sample::Old(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes listed in the hardware sheet: 4 g, 500 degrees per second.
    const GYRO: [u8; 6] = [0x3B, 0x02, 0xC5, 0xFD, 0x52, 0x16];
    const ACCEL: [u8; 6] = [0xFF, 0xFB, 0x00, 0x02, 0x05, 0x20];
    const CONFIGS: [u8; 3] = [0x58, 0x54, 0x44];

    fn sample(status: u8, configs: [u8; 3]) -> Sample<Inertia> {
        let burst = [&[status, 0xFF, 0x00, 0x03][..], &GYRO, &ACCEL].concat();
        let settings = settings(Ranges::default());
        decoded(&settings, burst.try_into().unwrap(), configs)
    }

    #[test]
    fn bytes_are_decoded_to_digits_and_quantities() {
        let digits = Inertia {
            accel: [-1025, 512, 8197],
            gyro: [571, -571, 5714],
        };
        assert_eq!(sample(0x07, CONFIGS), Sample::Fresh(digits));
        for status in [0x00, 0x01, 0x02, 0x04] {
            assert_eq!(sample(status, CONFIGS), Sample::Old(digits));
        }
        let measured = digits.measured(MG[1], DEG_S[1]);
        let near = |found: Option<[f64; 3]>, expected: [f64; 3], digit: f64| {
            let found = found.unwrap().into_iter().zip(expected);
            found.fold(true, |near, (a, b)| near && (a - b).abs() <= digit)
        };
        assert!(near(measured.accel_mg, [-125.0, 62.5, 1000.0], MG[1]));
        assert!(near(measured.gyro_deg_s, [10.0, -10.0, 100.0], DEG_S[1]));
    }

    #[test]
    fn the_settings_are_those_of_the_hardware_sheet() {
        for (accel_g, gyro_deg_s, configs) in [
            (2, 250, [0x50, 0x50, 0x44]),
            (4, 500, CONFIGS),
            (8, 1_000, [0x5C, 0x58, 0x44]),
            (16, 2_000, [0x54, 0x5C, 0x44]),
        ] {
            let ranges = Ranges::default().with_accel_g(accel_g).unwrap();
            let ranges = ranges.with_gyro_deg_s(gyro_deg_s).unwrap();
            let [readable, accel, gyro] = settings(ranges).map(|it| it.value);
            assert_eq!([accel, gyro, readable], configs);
        }
    }

    #[test]
    fn lost_and_changed_settings_are_detected() {
        assert!(matches!(sample(0x07, OFF), Sample::Lost(_)));
        for place in 0..3 {
            let mut configs = CONFIGS;
            configs[place] ^= 0x08;
            let register = CTRL1_XL + place as u8;
            let changed = sample(0x07, configs);
            assert!(
                matches!(changed, Sample::Changed(change) if change.register == register),
                "{changed:?}"
            );
        }
    }
}
