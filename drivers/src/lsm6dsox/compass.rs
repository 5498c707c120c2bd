//! The magnetometer LIS3MDL. PURE, except for the [`Bus`].

use std::time::Duration;

use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer};
use crate::motion_sensor::chip::{Chip, Latest, Sample, SetUp};
use crate::motion_sensor::found::{find, unexpected};
use crate::motion_sensor::mount::Mount;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::setting::{Setting, changed, verify_all, write};
use crate::motion_sensor::units::Measured;

/// The addresses: with the pin SDO low, and high.
const ADDRESSES: [u8; 2] = [0x1C, 0x1E];

const WHO_AM_I: u8 = 0x0F;
const IDENTITY: u8 = 0x3D;
/// The first of fourteen registers: settings, two without meaning, status and data.
const CTRL_REG1: u8 = 0x20;
const CTRL_REG2: u8 = 0x21;
/// In a register number: count up.
const INCREMENT: u8 = 0x80;

/// In CTRL_REG2: all registers get their first values. Clears itself.
const SOFT_RST: u8 = 0x04;
/// After the chip got power: it does not measure.
const OFF: [u8; 5] = [0x10, 0x00, 0x03, 0x00, 0x00];
/// In the status: all axes are new.
const DATA_READY: u8 = 0x08;

/// 80 samples per second with little noise; 4 gauss; continuous; the same for z; a sample does not
/// change while it is read.
const SETTINGS: [Setting; 5] = [
    Setting::new(0x20, 0xFC),
    Setting::masked(CTRL_REG2, 0x00, !SOFT_RST),
    Setting::new(0x23, 0x0C),
    Setting::new(0x24, 0x40),
    Setting::new(0x22, 0x00),
];

const MGAUSS: f64 = 1000.0 / 6_842.0;

const AFTER_RESET: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Compass {
    mount: Mount,
    /// Where it was found; `None` on a board without one.
    at: Option<u8>,
    latest: Latest<[i16; 3]>,
}

impl Compass {
    pub(super) fn new(mount: Mount) -> Self {
        Self {
            mount,
            at: None,
            latest: Latest::default(),
        }
    }
}

/// An error if something else is at an address, such as the magnetometer of an LSM303DLHC.
fn identity(bus: &mut dyn Bus, at: u8) -> Result<(), Problem> {
    match read(bus, at, WHO_AM_I)? {
        [IDENTITY] => Ok(()),
        [other] => Err(unexpected(at, other)),
    }
}

impl Chip<Measured> for Compass {
    fn sensors(&self) -> Sensors {
        Sensors::MAGNET
    }

    fn name(&self) -> &'static str {
        "magnetometer"
    }

    /// One that was there once must stay.
    fn set_up(&mut self, step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem> {
        let at = match (find(bus, &ADDRESSES, self.at, identity), self.at) {
            (Ok((at, ())), _) => at,
            (Err(Problem::Chip(_)), None) => return Ok(SetUp::Lacking),
            (Err(problem), _) => return Err(problem),
        };
        let done = SetUp::Done {
            name: format!("LIS3MDL at {at:#04x}"),
            settle: Duration::ZERO,
        };
        if step > 0 {
            write(bus, at, &SETTINGS)?;
            verify_all(bus, at, &SETTINGS)?;
            return Ok(done);
        }
        self.at = Some(at);
        self.latest = Latest::default();
        match verify_all(bus, at, &SETTINGS) {
            Ok(()) => return Ok(done),
            Err(Problem::Chip(_)) => {}
            Err(problem) => return Err(problem),
        }
        transfer(bus, at, &[CTRL_REG2, SOFT_RST], &mut [])?;
        Ok(SetUp::Continues(AFTER_RESET))
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Measured>, Problem> {
        let at = self.at.unwrap_or(ADDRESSES[0]);
        let burst = read(bus, at, CTRL_REG1 | INCREMENT)?;
        let sample = self.latest.judge(decoded(burst));
        let field = |digits: [i16; 3]| Measured::field(digits.map(|it| f64::from(it) * MGAUSS));
        Ok(sample.map(|digits| self.mount.turned(field(digits))))
    }
}

/// Decodes the registers from [`CTRL_REG1`]: little-endian.
fn decoded(burst: [u8; 14]) -> Sample<[i16; 3]> {
    let (settings, data) = burst.split_at(8);
    if settings[..5] == OFF {
        return Sample::Lost("it has lost its settings: it was reset, or its power failed");
    }
    if let Some(change) = changed(&SETTINGS, CTRL_REG1, &settings[..5]) {
        return Sample::Changed(change);
    }
    let word = |k: usize| i16::from_le_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = [word(0), word(1), word(2)];
    if digits.contains(&i16::MAX) || digits.contains(&i16::MIN) {
        return Sample::Overflow;
    }
    match settings[7] & DATA_READY {
        0 => Sample::Old(digits),
        _ => Sample::Fresh(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(settings: [u8; 5], status: u8, data: [u8; 6]) -> [u8; 14] {
        let all = [&settings[..], &[0, 0, status], &data].concat();
        all.try_into().unwrap()
    }

    const GOOD: [u8; 5] = [0xFC, 0x00, 0x00, 0x0C, 0x40];
    /// The bytes listed in the hardware sheet: 200, -100, -400 milligauss.
    const DATA: [u8; 6] = [0x58, 0x05, 0x54, 0xFD, 0x4F, 0xF5];

    #[test]
    fn bytes_are_decoded_to_the_field() {
        let digits = [1368, -684, -2737];
        assert_eq!(decoded(burst(GOOD, 0x0F, DATA)), Sample::Fresh(digits));
        assert_eq!(decoded(burst(GOOD, 0x00, DATA)), Sample::Old(digits));
        for (digits, expected) in digits.into_iter().zip([200.0, -100.0, -400.0]) {
            assert!((f64::from(digits) * MGAUSS - expected).abs() < MGAUSS);
        }
        let beyond = [0xFF, 0x7F, 0, 0, 0, 0];
        assert_eq!(decoded(burst(GOOD, 0x0F, beyond)), Sample::Overflow);
    }

    #[test]
    fn lost_and_changed_settings_are_detected() {
        let lost = decoded(burst(OFF, 0x0F, DATA));
        assert!(matches!(lost, Sample::Lost(_)));
        for place in 0..5 {
            let mut settings = GOOD;
            settings[place] ^= 0x20;
            let changed = decoded(burst(settings, 0x0F, DATA));
            let register = CTRL_REG1 + place as u8;
            assert!(
                matches!(changed, Sample::Changed(change) if change.register == register),
                "{changed:?}"
            );
        }
    }
}
