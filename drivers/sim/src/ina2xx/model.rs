//! The sensors: their scales and their times. PURE.

use std::time::Duration;

/// A sensor for the voltage and the current of the battery.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// INA219, with a shunt of 100 mohm
    #[value(name = "ina219")]
    Ina219,
    /// INA226, with a shunt of 2 mohm
    #[value(name = "ina226")]
    Ina226,
    /// INA260, with its own shunt
    #[value(name = "ina260")]
    Ina260,
}

/// Microseconds of a conversion, by its code.
const TIMES_US: [u64; 8] = [140, 204, 332, 588, 1_100, 2_116, 4_156, 8_244];
/// Samples of a mean, by its code.
const SAMPLES: [u64; 8] = [1, 4, 16, 64, 128, 256, 512, 1_024];

impl Model {
    /// MAKER and DIE.
    pub(super) fn identity(self) -> Option<[u16; 2]> {
        match self {
            Self::Ina219 => None,
            Self::Ina226 => Some([0x5449, 0x2260]),
            Self::Ina260 => Some([0x5449, 0x2270]),
        }
    }

    pub(super) fn first_config(self) -> u16 {
        match self {
            Self::Ina219 => 0x399F,
            Self::Ina226 => 0x4127,
            Self::Ina260 => 0x6127,
        }
    }

    /// Some bits are fixed.
    pub(super) fn kept_config(self, value: u16) -> u16 {
        match self {
            Self::Ina219 => value & 0x3FFF,
            Self::Ina226 => value & 0x0FFF | 0x4000,
            Self::Ina260 => value & 0x0FFF | 0x6000,
        }
    }

    pub(super) fn kept_calibration(self, value: u16) -> u16 {
        match self {
            Self::Ina219 => value & 0xFFFE,
            Self::Ina226 => value & 0x7FFF,
            Self::Ina260 => 0,
        }
    }

    /// The time of one conversion of everything.
    pub(super) fn conversion_time(self, config: u16) -> Duration {
        let code = |shift: u16, bits: u16| usize::from(config >> shift & bits);
        let (has_shunt, has_bus) = (config & 1 != 0, config & 2 != 0);
        let of = |has: bool, us: u64| if has { us } else { 0 };
        let us = match self {
            Self::Ina219 => of(has_shunt, adc_us(code(3, 15))) + of(has_bus, adc_us(code(7, 15))),
            Self::Ina226 | Self::Ina260 => {
                let both = of(has_shunt, TIMES_US[code(3, 7)]) + of(has_bus, TIMES_US[code(6, 7)]);
                both * SAMPLES[code(9, 7)]
            }
        };
        Duration::from_micros(us)
    }

    /// The register of the shunt. The sensor of an INA260 has the current there.
    pub(super) fn shunt(self, config: u16, amperes: f64) -> i16 {
        let (per_ampere, most) = match self {
            // 10 uV on 100 mohm. The range is 40 mV, or 2, 4 or 8 times as much.
            Self::Ina219 => (10_000.0, f64::from(4_000_u16 << (config >> 11 & 3))),
            // 2.5 uV on 2 mohm, and 1.25 mA.
            Self::Ina226 | Self::Ina260 => (800.0, f64::from(i16::MAX)),
        };
        (amperes * per_ampere).round().clamp(-most, most) as i16
    }

    /// The register of the voltage, without the bits below it.
    pub(super) fn bus(self, config: u16, volts: f64) -> u16 {
        let (per_volt, most) = match self {
            Self::Ina219 if config & 0x2000 == 0 => (250.0, 4_000.0),
            Self::Ina219 => (250.0, 8_000.0),
            Self::Ina226 | Self::Ina260 => (800.0, f64::from(i16::MAX)),
        };
        (volts * per_volt).round().clamp(0.0, most) as u16
    }

    /// Current and power in digits.
    pub(super) fn computed(self, shunt: i16, bus: u16, calibration: u16) -> (f64, f64) {
        let (shunt, bus) = (f64::from(shunt), f64::from(bus));
        let calibrated = |divisor: f64| (shunt * f64::from(calibration) / divisor).trunc();
        let (current, per_power) = match self {
            Self::Ina219 => (calibrated(4_096.0), 5_000.0),
            Self::Ina226 => (calibrated(2_048.0), 20_000.0),
            // A digit of the power is 10 mW.
            Self::Ina260 => return (0.0, (shunt.abs() * bus / 6_400.0).trunc()),
        };
        (current, (current.abs() * bus / per_power).trunc())
    }
}

/// Microseconds of a conversion of an INA219: four resolutions, or the mean of up to 128 samples.
fn adc_us(code: usize) -> u64 {
    match code {
        8 => 532,
        9.. => 532 << (code - 8),
        _ => [84, 148, 276, 532][code & 3],
    }
}
