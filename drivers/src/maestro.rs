//! The driver of a Pololu Maestro with hobby servos, over USB or a serial
//! port. IO.
//!
//! `protocol`, `servos` and `logic` are pure; `driver` does what `logic` says.
//!
//! What clients can count on:
//!
//! - Angles are whole degrees. 0 is a pulse of 2400 us, 90 of 1500, 180 of
//!   600, unless the servo is described otherwise in the file.
//! - What cannot be done is not done in part, and logged. Nothing is answered.
//! - Servos hold where they are when a client goes, and when the driver ends.
//! - The device is asked for its errors once a second, and what it says is told
//!   to the mediator as trouble until it says no more.

use std::path::PathBuf;

use serde::Deserialize;

use self::driver::Maestro;
use self::logic::Settings;
use self::protocol::Framing;
use self::servos::{MAX_SERVOS, ServoOptions, Servos};
use crate::connection::Place;
use crate::options::{OptionsError, check, layered, read, serial};

pub mod driver;
pub mod logic;
pub mod protocol;
pub mod servos;

/// Options of the driver. Those that are absent here are taken from the file,
/// and what is absent there has the default of the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`, and a
    /// `[[servo]]` for each servo with limits of its own
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the device [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second; without effect over USB [default: 38400]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Its number, for the Pololu protocol; without it the compact protocol
    #[arg(long, value_name = "NUMBER")]
    pub device: Option<u8>,
    /// Whether packets end with a CRC, as set in the device [default: false]
    #[arg(long, value_name = "BOOL")]
    pub crc: Option<bool>,
    /// Whether to send the byte by which the device finds out the speed of a
    /// serial line [default: false]
    #[arg(long, value_name = "BOOL")]
    pub detect_baud: Option<bool>,
    /// How many servos there are [default: 24]
    #[arg(long, value_name = "COUNT")]
    pub servos: Option<u8>,
    /// Servos with limits of their own, only in the file.
    #[arg(skip)]
    pub servo: Option<Vec<ServoOptions>>,
}

impl Options {
    /// The driver with these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value makes no sense.
    pub fn driver(self) -> Result<Maestro<Place>, OptionsError> {
        let file = read(self.config.as_deref())?;
        let (settings, servos, place) = self.or(file).settings()?;
        Ok(Maestro::new(settings, servos, place))
    }

    /// What these options mean; `config` is not looked at.
    ///
    /// # Errors
    /// A value makes no sense.
    pub fn settings(self) -> Result<(Settings, Servos, Place), OptionsError> {
        let port = (self.port, "/dev/ttyACM0");
        let place = serial(port, (self.baud, 38_400), 4_000_000)?;
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
        Ok((settings, servos, place))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud device crc detect_baud servos servo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_robot() {
        let (settings, _, place) = Options::default().settings().unwrap();
        assert_eq!(place.to_string(), "/dev/ttyACM0 at 38400 baud");
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn the_file_says_what_the_command_line_does_not() {
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
    fn values_that_make_no_sense_are_refused() {
        for (text, error) in [
            ("device = 128", "device: 128 is not within 0 to 127"),
            ("servos = 0", "servos: 0 is not within 1 to 24"),
            (
                "servos = 6\n[[servo]]\nid = 6",
                "servo: there is no servo 6, the last one is 5",
            ),
        ] {
            let options: Options = toml::from_str(text).unwrap();
            assert_eq!(options.settings().unwrap_err().to_string(), error);
        }
        assert!(toml::from_str::<Options>("[[servo]]\nid = 1\nmax = 3").is_err());
    }
}
