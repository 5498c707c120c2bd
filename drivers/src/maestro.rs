//! Driver for a Pololu Maestro with hobby servos, over USB or a serial port. IO.
//!
//! `servos` has what all servo controllers share, and says what they guarantee. `protocol` and
//! `logic` are pure; `driver` carries out the outputs of `logic`.
//!
//! The driver reads the device's errors once a second and reports them to the mediator as trouble
//! until the device reports none. Servos hold their position when the driver is killed; what a
//! continuous servo turns then goes on.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::maestro;
use serde::Deserialize;

use self::logic::Settings;
use self::protocol::Framing;
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};
use crate::servos::{ServoOptions, Servos};

mod driver;
pub mod logic;
pub(crate) mod probe;
pub mod protocol;

/// The maximum number of servos on a Maestro.
pub const MAX_SERVOS: u8 = 24;

/// Options of the driver. The command line overrides the file; the defaults fit the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`, and a `[[servo]]` section
    /// for each servo with its own limits
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the device [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second; no effect over USB [default: 38400]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Device number for the Pololu protocol; the compact protocol is used without it
    #[arg(long, value_name = "NUMBER")]
    pub device: Option<u8>,
    /// Whether packets end with a CRC, as configured in the device [default: false]
    #[arg(long, value_name = "BOOL")]
    pub crc: Option<bool>,
    /// Whether to send the byte from which the device detects the baud rate of a serial line
    /// [default: false]
    #[arg(long, value_name = "BOOL")]
    pub detect_baud: Option<bool>,
    /// Number of servos [default: 24]
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
        let (settings, servos, endpoint) = self.complete()?.settings()?;
        Ok(maestro::driver(driver::driver(settings, servos, endpoint)))
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
    pub fn settings(self) -> Result<(Settings, Servos, Endpoint), OptionsError> {
        let port = (self.port, "/dev/ttyACM0");
        let endpoint = serial(port, (self.baud, 38_400), 4_000_000)?;
        let device = self.device.map(|device| check("device", device, 0..=127));
        let count = check("servos", self.servos.unwrap_or(MAX_SERVOS), 1..=MAX_SERVOS)?;
        let special = self.servo.unwrap_or_default();
        let servos = Servos::new(count, &special).map_err(|problem| OptionsError::Value {
            name: "servo",
            problem,
        })?;
        let settings = Settings {
            framing: Framing {
                device: device.transpose()?,
                crc: self.crc.unwrap_or(false),
            },
            detect_baud: self.detect_baud.unwrap_or(false),
        };
        Ok((settings, servos, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud device crc detect_baud servos servo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_the_capo_robot() {
        let (settings, _, endpoint) = Options::default().settings().unwrap();
        assert_eq!(endpoint.to_string(), "/dev/ttyACM0 at 38400 baud");
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn the_file_sets_what_the_command_line_does_not() {
        let text = "device = 12\ncrc = true\nservos = 6\n[[servo]]\nid = 3\nmax_us = 2000\n";
        let flags = Options {
            device: Some(13),
            ..Options::default()
        };
        let (settings, ..) = flags.or(toml::from_str(text).unwrap()).settings().unwrap();
        assert_eq!(
            (settings.framing.device, settings.framing.crc),
            (Some(13), true)
        );
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, error) in [
            ("device = 128", "device: 128 is not within 0 to 127"),
            ("servos = 0", "servos: 0 is not within 1 to 24"),
            (
                "servos = 6\n[[servo]]\nid = 6",
                "servo: servo 6 does not exist, the last one is 5",
            ),
        ] {
            let options: Options = toml::from_str(text).unwrap();
            assert_eq!(options.settings().unwrap_err().to_string(), error);
        }
        assert!(toml::from_str::<Options>("[[servo]]\nid = 1\nmax = 3").is_err());
    }
}
