//! The magnetometer AK8963, which is visible only behind the first chip. PURE, except for the [`Bus`].

use std::time::Duration;

use super::part;
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer, verify};
use crate::motion_sensor::chip::{Chip, Latest, Sample, SetUp};
use crate::motion_sensor::options::Placement;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::units::{Axes, Measured};

const ADDRESS: u8 = 0x0C;

const WIA: u8 = 0x00;
const IDENTITY: u8 = 0x48;
/// The first of eight registers: ST1, the data x y z, ST2. Until ST2 was read, the data do not change.
const ST1: u8 = 0x02;
const CNTL1: u8 = 0x0A;
/// The first of three registers with the adjustment of the axes, which only FUSE_ROM shows.
const ASAX: u8 = 0x10;

/// In ST1: a sample is ready.
const DATA_READY: u8 = 0x01;
/// In ST2: the field was beyond the range.
const OVERFLOW: u8 = 0x08;
/// In ST2 and CNTL1: 16 bits.
const BITS_16: u8 = 0x10;

/// Modes, in CNTL1. From one to another the way is through POWER_DOWN.
const POWER_DOWN: u8 = 0x00;
const FUSE_ROM: u8 = 0x0F;
/// 100 samples per second, without being asked for each.
const CONTINUOUS: u8 = BITS_16 | 0x06;

/// A mode takes 0.1 ms to change.
const BETWEEN_MODES: Duration = Duration::from_millis(10);

/// Of one digit before the adjustment: 32760 are 4912 uT.
const MGAUSS_PER_DIGIT: f64 = 49_120.0 / 32_760.0;

#[derive(Debug)]
pub(super) struct Compass {
    /// Of the first chip.
    placement: Placement,
    /// The factor of each axis, once it was read.
    adjustment: Option<Axes>,
    latest: Latest<[i16; 3]>,
}

impl Compass {
    pub(super) fn new(placement: Placement) -> Self {
        Self {
            placement,
            adjustment: None,
            latest: Latest::default(),
        }
    }

    fn set_mode(bus: &mut dyn Bus, mode: u8) -> Result<(), Problem> {
        transfer(bus, ADDRESS, &[CNTL1, mode], &mut [])
    }

    /// Whether it is there; an error if it must be and is not.
    fn is_there(&self, bus: &mut dyn Bus) -> Result<bool, Problem> {
        let (_, part) = part::find(bus, self.placement.address)?;
        if part.has_compass == Some(false) {
            return Ok(false);
        }
        match (read::<1>(bus, ADDRESS, WIA), part.has_compass) {
            (Ok([IDENTITY]), _) => Ok(true),
            (Err(Problem::Bus(text)), _) => Err(Problem::Bus(text)),
            (Ok(_) | Err(_), None) => Ok(false),
            (Ok(_) | Err(_), Some(_)) => Err(Problem::Chip(format!(
                "no answer at {ADDRESS:#04x}, although an {} has it: switch the power off and on, unless it is a \
                 copy without one",
                part.name
            ))),
        }
    }

    fn done() -> SetUp {
        SetUp::Done {
            name: format!("AK8963 at {ADDRESS:#04x}"),
            settle: Duration::ZERO,
        }
    }
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
        match step {
            0 if !self.is_there(bus)? => Ok(SetUp::Lacking),
            0 => {
                self.latest = Latest::default();
                let [mode] = read(bus, ADDRESS, CNTL1)?;
                if mode == CONTINUOUS && self.adjustment.is_some() {
                    return Ok(Self::done());
                }
                Self::set_mode(bus, POWER_DOWN)?;
                Ok(SetUp::Continues(BETWEEN_MODES))
            }
            1 if self.adjustment.is_none() => {
                Self::set_mode(bus, FUSE_ROM)?;
                Ok(SetUp::Continues(BETWEEN_MODES))
            }
            2 => {
                let bytes: [u8; 3] = read(bus, ADDRESS, ASAX)?;
                if bytes.contains(&0x00) || bytes.contains(&0xFF) {
                    let text = format!("its adjustment reads {bytes:02x?}");
                    return Err(Problem::Chip(text));
                }
                self.adjustment = Some(factors(bytes));
                Self::set_mode(bus, POWER_DOWN)?;
                Ok(SetUp::Continues(BETWEEN_MODES))
            }
            _ => {
                Self::set_mode(bus, CONTINUOUS)?;
                verify(bus, ADDRESS, CNTL1, CONTINUOUS, 0x1F)?;
                Ok(Self::done())
            }
        }
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Measured>, Problem> {
        let sample = self.latest.judge(decoded(read(bus, ADDRESS, ST1)?));
        let factors = self.adjustment.unwrap_or([1.0; 3]);
        let field = |digits| Measured::field(field_mgauss(digits, factors));
        Ok(sample.map(|digits| self.placement.mount.turned(field(digits))))
    }

    fn forget(&mut self) {
        self.adjustment = None;
    }
}

/// Decodes the registers from [`ST1`]: little-endian.
fn decoded(bytes: [u8; 8]) -> Sample<[i16; 3]> {
    let [st1, data @ .., st2] = bytes;
    if st2 & BITS_16 == 0 {
        return Sample::Lost(
            "it does not measure as it was set: it was reset, or another program uses it",
        );
    }
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

/// The factors for these adjustment values.
fn factors(asa: [u8; 3]) -> Axes {
    asa.map(|value| (f64::from(value) - 128.0) / 256.0 + 1.0)
}

/// The field on the axes of the accelerometer: x and y are exchanged, and z is upside down.
fn field_mgauss(digits: [i16; 3], factors: Axes) -> Axes {
    let field = |axis: usize| f64::from(digits[axis]) * factors[axis] * MGAUSS_PER_DIGIT;
    [field(1), field(0), -field(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes listed in the hardware sheet.
    #[test]
    fn bytes_are_decoded_to_the_field() {
        let bytes = [0x01, 0x6F, 0x00, 0xC9, 0xFF, 0x1A, 0xFF, 0x10];
        let digits = [111, -55, -230];
        assert_eq!(decoded(bytes), Sample::Fresh(digits));
        let field = field_mgauss(digits, factors([0xB3, 0xB4, 0xA9]));
        // 20, -10 and -40 uT on the axes of the magnetometer.
        for (found, expected) in field.into_iter().zip([-100.0, 200.0, 400.0]) {
            assert!((found - expected).abs() < 1.0, "{field:?}");
        }
    }

    #[test]
    fn the_status_is_understood() {
        let sample = |st1, st2| decoded([st1, 1, 0, 2, 0, 3, 0, st2]);
        assert_eq!(sample(0x01, 0x10), Sample::Fresh([1, 2, 3]));
        // Samples were missed.
        assert_eq!(sample(0x03, 0x10), Sample::Fresh([1, 2, 3]));
        assert_eq!(sample(0x00, 0x10), Sample::Old([1, 2, 3]));
        assert_eq!(sample(0x01, 0x18), Sample::Overflow);
        assert!(matches!(sample(0x01, 0x00), Sample::Lost(_)));
    }
}
