//! The magnetometer AK09916, which is visible only behind the first chip. PURE, except for the [`Bus`].

use std::time::Duration;

use crate::i2c::Bus;
use crate::i2c::registers::{NO_ANSWER, Problem, read, transfer, verify};
use crate::motion_sensor::chip::{Chip, Latest, Sample, SetUp};
use crate::motion_sensor::mount::Mount;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::units::{Axes, Measured};

const ADDRESS: u8 = 0x0C;

/// The first of two registers with the identity.
const WIA1: u8 = 0x00;
const IDENTITY: [u8; 2] = [0x48, 0x09];
/// The first of nine registers: ST1, the data x y z, one without meaning, ST2. Until ST2 was read, the
/// data do not change.
const ST1: u8 = 0x10;
const CNTL2: u8 = 0x31;

/// In ST1: a sample is ready.
const DATA_READY: u8 = 0x01;
/// In ST2: the field was beyond the range.
const OVERFLOW: u8 = 0x08;

/// Modes, in CNTL2. From one to another the way is through POWER_DOWN.
const POWER_DOWN: u8 = 0x00;
/// 100 samples per second, without being asked for each.
const CONTINUOUS: u8 = 0x08;

/// A mode takes 0.1 ms to change.
const BETWEEN_MODES: Duration = Duration::from_millis(10);

const MGAUSS_PER_DIGIT: f64 = 1.5;

#[derive(Debug)]
pub(super) struct Compass {
    mount: Mount,
    latest: Latest<[i16; 3]>,
}

impl Compass {
    pub(super) fn new(mount: Mount) -> Self {
        Self {
            mount,
            latest: Latest::default(),
        }
    }

    fn done() -> SetUp {
        SetUp::Done {
            name: format!("AK09916 at {ADDRESS:#04x}"),
            settle: Duration::ZERO,
        }
    }
}

/// Every sensor has it, but some answer only after they got their power anew.
fn look(bus: &mut dyn Bus) -> Result<(), Problem> {
    let problem = match read(bus, ADDRESS, WIA1) {
        Ok(IDENTITY) => return Ok(()),
        Ok([first, second]) => format!("unexpected identity {first:02x} {second:02x}"),
        Err(Problem::Chip(text)) if text == NO_ANSWER => text,
        Err(problem) => return Err(problem),
    };
    Err(Problem::Chip(format!(
        "{problem} at {ADDRESS:#04x}: switch the power off and on"
    )))
}

impl Chip<Measured> for Compass {
    fn sensors(&self) -> Sensors {
        Sensors::MAGNET
    }

    fn name(&self) -> &'static str {
        "magnetometer"
    }

    fn is_behind_first(&self) -> bool {
        true
    }

    fn set_up(&mut self, step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem> {
        look(bus)?;
        if step > 0 {
            transfer(bus, ADDRESS, &[CNTL2, CONTINUOUS], &mut [])?;
            verify(bus, ADDRESS, CNTL2, CONTINUOUS, 0x1F)?;
            return Ok(Self::done());
        }
        self.latest = Latest::default();
        let [mode] = read(bus, ADDRESS, CNTL2)?;
        if mode == CONTINUOUS {
            return Ok(Self::done());
        }
        transfer(bus, ADDRESS, &[CNTL2, POWER_DOWN], &mut [])?;
        Ok(SetUp::Continues(BETWEEN_MODES))
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Measured>, Problem> {
        let sample = self.latest.judge(decoded(read(bus, ADDRESS, ST1)?));
        let field = |digits| self.mount.turned(Measured::field(field_mgauss(digits)));
        Ok(sample.map(field))
    }
}

/// Decodes the registers from [`ST1`]: little-endian.
fn decoded(bytes: [u8; 9]) -> Sample<[i16; 3]> {
    let [st1, data @ .., _, st2] = bytes;
    if st2 & OVERFLOW != 0 {
        return Sample::Overflow;
    }
    let word = |k: usize| i16::from_le_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = [word(0), word(1), word(2)];
    match st1 & DATA_READY {
        0 => Sample::Old(digits),
        _ => Sample::Fresh(digits),
    }
}

/// The field on the axes of the accelerometer: y and z are upside down.
fn field_mgauss(digits: [i16; 3]) -> Axes {
    let [x, y, z] = digits.map(|digits| f64::from(digits) * MGAUSS_PER_DIGIT);
    [x, -y, -z]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_to_the_field() {
        // The bytes listed in the hardware sheet: 20, -10 and -40 uT on the axes of the magnetometer.
        let bytes = [0x01, 0x85, 0x00, 0xBD, 0xFF, 0xF5, 0xFE, 0x00, 0x00];
        let digits = [133, -67, -267];
        assert_eq!(decoded(bytes), Sample::Fresh(digits));
        assert_eq!(field_mgauss(digits), [199.5, 100.5, 400.5]);
    }

    #[test]
    fn the_status_is_understood() {
        let sample = |st1, st2| decoded([st1, 1, 0, 2, 0, 3, 0, 0xFF, st2]);
        // Samples were missed.
        assert_eq!(sample(0x03, 0x00), Sample::Fresh([1, 2, 3]));
        assert_eq!(sample(0x00, 0x00), Sample::Old([1, 2, 3]));
        assert_eq!(sample(0x01, 0x08), Sample::Overflow);
    }
}
