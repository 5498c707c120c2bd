//! The sensors: their registers and scales, and where one is. PURE, except for the [`Bus`].
//!
//! A register is two bytes, the high one first. A read does not go on to the next register.

use std::fmt;
use std::ops::RangeInclusive;

use crate::i2c::Bus;
use crate::i2c::registers::{NO_ANSWER, Problem, read, transfer};

/// The addresses: two pins select one.
pub(super) const ADDRESSES: RangeInclusive<u8> = 0x40..=0x4F;

const CONFIG: u8 = 0x00;
const SHUNT: u8 = 0x01;
const BUS: u8 = 0x02;
const POWER: u8 = 0x03;
const CURRENT: u8 = 0x04;
const CALIBRATION: u8 = 0x05;
/// Not in an INA219.
const MASK: u8 = 0x06;
const MAKER: u8 = 0xFE;
const DIE: u8 = 0xFF;

/// `TI` in MAKER.
const TEXAS_INSTRUMENTS: u16 = 0x5449;

/// The sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Up to 26 V, and 320 mV at the shunt
    Ina219,
    /// Up to 36 V, and 82 mV at the shunt
    Ina226,
    /// Up to 36 V, with its own shunt for 15 A
    Ina260,
}

/// The registers of one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) shunt: i16,
    pub(super) bus: u16,
}

impl Part {
    /// Both voltages, all the time, each as the mean of about 70 ms: motors draw their current in
    /// pulses.
    pub(super) fn config(self) -> u16 {
        match self {
            // 32 V, 320 mV, 128 samples of both.
            Self::Ina219 => 0x3FFF,
            // 64 samples of both, of 1.1 ms each.
            Self::Ina226 => 0x4727,
            Self::Ina260 => 0x6727,
        }
    }

    /// The current from IN+ to IN-; `None` if it is beyond the range.
    pub(super) fn current_ma(self, shunt: i16, shunt_mohm: f64) -> Option<f64> {
        let most = self.most_shunt();
        let is_within = (1 - most..most).contains(&shunt);
        is_within.then(|| f64::from(shunt) * self.ma_per_digit(shunt_mohm))
    }

    /// The end of the range.
    pub(super) fn most_current_ma(self, shunt_mohm: f64) -> f64 {
        f64::from(self.most_shunt()) * self.ma_per_digit(shunt_mohm)
    }

    fn most_shunt(self) -> i16 {
        match self {
            Self::Ina219 => 32_000,
            Self::Ina226 | Self::Ina260 => i16::MAX,
        }
    }

    /// A digit is 10 or 2.5 uV, or 1.25 mA.
    fn ma_per_digit(self, shunt_mohm: f64) -> f64 {
        match self {
            Self::Ina219 => 10.0 / shunt_mohm,
            Self::Ina226 => 2.5 / shunt_mohm,
            Self::Ina260 => 1.25,
        }
    }

    /// The voltage of the battery; `None` if no sensor has such a register.
    pub(super) fn battery_mv(self, bus: u16) -> Option<u32> {
        match self {
            Self::Ina219 => {
                let mv = u32::from(bus >> 3) * 4;
                (bus & 0x04 == 0 && mv <= 32_000).then_some(mv)
            }
            // A digit is 1.25 mV.
            Self::Ina226 | Self::Ina260 => {
                let mv = (u32::from(bus) * 5 + 2) / 4;
                (bus & 0x8000 == 0).then_some(mv)
            }
        }
    }

    /// Reads the latest values.
    pub(super) fn sample(self, bus: &mut dyn Bus, at: u8) -> Result<Sample, Problem> {
        let shunt = read(bus, at, SHUNT).map(i16::from_be_bytes)?;
        let bus = word(bus, at, BUS)?;
        Ok(Sample { shunt, bus })
    }

    /// Whether it has measured since its settings were written.
    pub(super) fn has_begun(self, bus: &mut dyn Bus, at: u8) -> Result<bool, Problem> {
        let (register, bit) = match self {
            Self::Ina219 => (BUS, 0x02),
            Self::Ina226 | Self::Ina260 => (MASK, 0x08),
        };
        Ok(word(bus, at, register)? & bit != 0)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ina219 => "INA219",
            Self::Ina226 => "INA226",
            Self::Ina260 => "INA260",
        })
    }
}

/// Reads the settings.
pub(super) fn config(bus: &mut dyn Bus, at: u8) -> Result<u16, Problem> {
    word(bus, at, CONFIG)
}

/// Writes the settings, and checks that the chip keeps them.
pub(super) fn set_config(bus: &mut dyn Bus, at: u8, value: u16) -> Result<(), Problem> {
    let [high, low] = value.to_be_bytes();
    transfer(bus, at, &[CONFIG, high, low], &mut [])?;
    let kept = config(bus, at)?;
    match kept == value {
        true => Ok(()),
        false => Err(Problem::Chip(format!(
            "the chip at {at:#04x} does not keep its settings, {kept:#06x} instead of {value:#06x}: check \
             --chip and --address"
        ))),
    }
}

/// Finds the sensor: at this address, or at the first where one is recognized.
pub(super) fn find(
    bus: &mut dyn Bus,
    address: Option<u8>,
    part: Option<Part>,
) -> Result<(u8, Part), Problem> {
    let mut unexpected = None;
    for at in ADDRESSES.filter(|at| address.is_none_or(|address| address == *at)) {
        let text = match identity(bus, at, address.and(part)) {
            Ok(found) if part.is_none_or(|part| part == found) => return Ok((at, found)),
            Ok(found) => format!("the sensor at {at:#04x} is an {found}: check --chip"),
            Err(Problem::Chip(text)) if text == NO_ANSWER => continue,
            Err(Problem::Chip(text)) => text,
            Err(problem) => return Err(problem),
        };
        unexpected.get_or_insert(text);
    }
    let places = match address {
        Some(address) => format!("{address:#04x}"),
        None => "0x40 to 0x4f".to_owned(),
    };
    let text = unexpected.unwrap_or_else(|| {
        format!("{NO_ANSWER} at {places}: check its power, the wires SDA and SCL, and --bus")
    });
    Err(Problem::Chip(text))
}

/// What is at an address; an error if it is something else. Only reads. `said` is what the user says:
/// then it need not be recognized.
pub(super) fn identity(bus: &mut dyn Bus, at: u8, said: Option<Part>) -> Result<Part, Problem> {
    // A humidity sensor HTU21 takes the number of MAKER for a reset, but does not answer this read.
    let config = config(bus, at)?;
    let other = match (word(bus, at, MAKER)?, word(bus, at, DIE)?) {
        (TEXAS_INSTRUMENTS, die) => match die & 0xFFF0 {
            0x2260 => return Ok(Part::Ina226),
            0x2270 => return Ok(Part::Ina260),
            _ => format!("another chip of Texas Instruments, {die:#06x}"),
        },
        _ => match said {
            Some(part) => return Ok(part),
            None if looks_like_ina219(bus, at, config)? => return Ok(Part::Ina219),
            None => "not recognized; if it is the sensor, say --address and --chip".to_owned(),
        },
    };
    Err(Problem::Chip(format!("the chip at {at:#04x} is {other}")))
}

/// An INA219 has no identity. But its registers fit together as those of no other chip at these
/// addresses: PCA9685 (servos), thermometers, converters.
fn looks_like_ina219(bus: &mut dyn Bus, at: u8, config: u16) -> Result<bool, Problem> {
    let mut register = |register| word(bus, at, register);
    let (shunt, bus, power) = (register(SHUNT)?, register(BUS)?, register(POWER)?);
    let (current, calibration) = (register(CURRENT)?, register(CALIBRATION)?);
    let signed = |word: u16| f64::from(word.cast_signed());
    // The values may be of two measurements.
    let fits = |is: f64, should: f64| (is - should).abs() <= 16.0 + should.abs() / 4.0;
    let should_current = signed(shunt) * f64::from(calibration) / 4_096.0;
    let should_power = (signed(current) * f64::from(bus >> 3) / 5_000.0).abs();
    Ok(match (config & 0xC000, calibration) {
        (0, 0) => config != 0 && current == 0 && power == 0,
        (0, _) => {
            calibration & 1 == 0
                && fits(signed(current), should_current)
                && (fits(power.into(), should_power) || fits(signed(power).abs(), should_power))
        }
        _ => false,
    } && Part::Ina219.battery_mv(bus).is_some())
}

fn word(bus: &mut dyn Bus, at: u8, register: u8) -> Result<u16, Problem> {
    read(bus, at, register).map(u16::from_be_bytes)
}
