//! Driver for hobby servos on a PCA9685, on an I2C bus. IO.
//!
//! `servos` has what all servo controllers share, and says what they guarantee. The chip makes pulses
//! by itself until it is told something else or loses power. So positions are held when the driver
//! ends or is killed, and a guard process ends the pulses of servos that turn like motors.
//!
//! ```text
//! registers  names, clock, pulses                chip     finds the chip, sets it up
//! logic      what is written, and when (PURE)    driver   bus, thread and guard (IO)
//! ```

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::maestro;
use serde::Deserialize;

pub use self::registers::Timing;
use self::registers::{ADDRESSES, ALL_CALL_ADDRESS, CHANNELS};
use crate::i2c::BusLocation;
use crate::options::{OptionsError, check, layered, read};
use crate::servos::{ServoOptions, Servos};

mod chip;
pub(crate) mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub(crate) mod probe;
mod registers;

/// Settings of the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The address of the chip.
    pub address: u8,
    /// The clock of the pulses.
    pub timing: Timing,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `bus = "/dev/i2c-1"`, and a `[[servo]]` section for
    /// each servo with its own limits
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The I2C bus, or sim:PATH for the bus of `amber sim` [default: /dev/i2c-1]
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// Address of the chip, as set by its solder pads [default: 0x40]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Pulses per second, 24 to 400 [default: 50]
    #[arg(long, value_name = "HZ")]
    pub frequency_hz: Option<u16>,
    /// Frequency of the oscillator of the chip, as measured [default: 25000000]
    #[arg(long, value_name = "HZ")]
    pub oscillator_hz: Option<u32>,
    /// Number of servos [default: 16]
    #[arg(long, value_name = "COUNT")]
    pub servos: Option<u8>,
    /// Servos with their own limits, only in the file.
    #[arg(skip)]
    pub servo: Option<Vec<ServoOptions>>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, servos, location) = self.complete()?.settings()?;
        Ok(maestro::driver(driver::driver(settings, servos, location)))
    }

    /// These options over those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, Servos, BusLocation), OptionsError> {
        let value = |name| move |problem| OptionsError::Value { name, problem };
        let location = self.bus.as_deref().unwrap_or("/dev/i2c-1");
        let location = location.parse().map_err(value("bus"))?;
        let address = self.address.as_deref().map_or(Ok(0x40), address);
        let frequency = check("frequency_hz", self.frequency_hz.unwrap_or(50), 24..=400)?;
        let oscillator = self.oscillator_hz.unwrap_or(25_000_000);
        let oscillator = check("oscillator_hz", oscillator, 20_000_000..=30_000_000)?;
        let count = check("servos", self.servos.unwrap_or(CHANNELS), 1..=CHANNELS)?;
        let servos = Servos::new(count, &self.servo.unwrap_or_default()).map_err(value("servo"))?;
        let settings = Settings {
            address: address.map_err(value("address"))?,
            timing: Timing::new(oscillator.into(), frequency.into()),
        };
        let (longest, period) = (servos.longest_us(), settings.timing.period_us());
        if longest >= period {
            let problem = format!("a pulse of {longest} us does not fit into {period:.0} us");
            return Err(value("frequency_hz")(problem));
        }
        Ok((settings, servos, location))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: bus address frequency_hz oscillator_hz servos servo)
    }
}

/// Reads `0x40` or `40`.
fn address(text: &str) -> Result<u8, String> {
    let number = u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16);
    match number {
        Ok(ALL_CALL_ADDRESS) => Err("0x70 belongs to all boards of a bus: set another pad".into()),
        Ok(number) if ADDRESSES.contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is not within 0x40 to 0x7f")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<(Settings, Servos, BusLocation), String> {
        let options: Options = toml::from_str(text).unwrap();
        options.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_fit_a_board_without_solder() {
        let (found, _, location) = settings("").unwrap();
        assert_eq!(location.to_string(), "/dev/i2c-1");
        let timing = Timing::new(25e6, 50.0);
        let address = 0x40;
        assert_eq!(found, Settings { address, timing });
    }

    #[test]
    fn the_file_sets_what_the_command_line_does_not() {
        let text =
            "address = \"41\"\noscillator_hz = 26000000\n[[servo]]\nid = 3\ncontinuous = true";
        let flags = Options {
            address: Some("0x60".into()),
            ..Options::default()
        };
        let options = flags.or(toml::from_str(text).unwrap());
        let (found, servos, _) = options.settings().unwrap();
        assert_eq!(found.address, 0x60);
        assert_eq!(found.timing, Timing::new(26e6, 50.0));
        assert_eq!(servos.continuous(), &[3].into());
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, error) in [
            (
                "address = \"0x3f\"",
                "address: \"0x3f\" is not within 0x40 to 0x7f",
            ),
            (
                "address = \"0x70\"",
                "address: 0x70 belongs to all boards of a bus: set another pad",
            ),
            ("servos = 17", "servos: 17 is not within 1 to 16"),
            (
                "frequency_hz = 23",
                "frequency_hz: 23 is not within 24 to 400",
            ),
            (
                "frequency_hz = 400\n[[servo]]\nid = 1\nmax_us = 2500",
                "frequency_hz: a pulse of 2500 us does not fit into 2458 us",
            ),
            (
                "[[servo]]\nid = 16",
                "servo: servo 16 does not exist, the last one is 15",
            ),
        ] {
            assert_eq!(settings(text).unwrap_err(), error);
        }
    }
}
