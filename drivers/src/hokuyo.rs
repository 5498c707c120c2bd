//! The driver of a Hokuyo laser scanner that speaks SCIP 2, such as the
//! URG-04LX and the UTM-30LX, over a serial port, USB or TCP. IO.
//!
//! `scip` and `logic` are pure; `driver` does what `logic` says.
//!
//! What clients can count on:
//!
//! - Angles are degrees, positive to the right, ascending; distances are
//!   millimetres in the same order. Small numbers are the scanner's own codes
//!   for "nothing seen" and are passed on.
//! - An answer is read from the scanner after the question, with the time when
//!   it was read; the scanner gives the last scan that it has finished. When
//!   there is no scanner there is no answer, never an old scan, and nothing is
//!   published.
//! - While somebody is subscribed the scanner sends by itself, and all
//!   subscribers get the same message, at most one in `publish_ms`.
//! - The laser is off until somebody wants a scan, and `laser_idle_ms` after
//!   the last one who did. The first scan takes a moment longer then.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use self::driver::Hokuyo;
use self::logic::{Angles, Settings};
use crate::connection::Place;
use crate::options::{OptionsError, check, layered, read, serial};

pub mod driver;
pub mod logic;
pub mod scip;

/// Options of the driver. Those that are absent here are taken from the file,
/// and what is absent there has the default of the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the scanner [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE", conflicts_with = "tcp")]
    pub port: Option<PathBuf>,
    /// Scanner with Ethernet, such as 192.168.0.10:10940
    #[arg(long, value_name = "HOST:PORT")]
    pub tcp: Option<String>,
    /// Bits per second; without effect over USB [default: 19200]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Whether to see weak echoes, too [default: true]
    #[arg(long, value_name = "BOOL")]
    pub high_sensitivity: Option<bool>,
    /// Motor speed: 0 usual, 1 to 10 slower, 99 initial [default: 0]
    #[arg(long, value_name = "NUMBER")]
    pub motor_speed: Option<u8>,
    /// At which angles points are said to be [default: compatible]
    #[arg(long, value_enum)]
    pub angles: Option<Angles>,
    /// How far published scans are apart, at least [default: 100]
    #[arg(long, value_name = "MS")]
    pub publish_ms: Option<u64>,
    /// Turn the laser off when nobody has wanted a scan for so long; 0 for
    /// never [default: 10000]
    #[arg(long, value_name = "MS")]
    pub laser_idle_ms: Option<u64>,
    /// The longest silence within a reply [default: 300]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl Options {
    /// The driver with these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value makes no sense.
    pub fn driver(self) -> Result<Hokuyo<Place>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        if file.port.is_some() && file.tcp.is_some() {
            return Err(OptionsError::Value {
                name: "port",
                problem: "cannot be used with tcp".into(),
            });
        }
        let (settings, place) = self.or(file).settings()?;
        Ok(Hokuyo::new(settings, place))
    }

    /// What these options mean; `config` is not looked at.
    ///
    /// # Errors
    /// A value makes no sense.
    pub fn settings(self) -> Result<(Settings, Place), OptionsError> {
        let place = match self.tcp {
            Some(address) => Place::Tcp(address),
            None => serial((self.port, "/dev/ttyACM0"), (self.baud, 19_200), 4_000_000)?,
        };
        let motor_speed = match self.motor_speed.unwrap_or(0) {
            99 => 99,
            speed => check("motor_speed", speed, 0..=10)?,
        };
        let publish_ms = check("publish_ms", self.publish_ms.unwrap_or(100), 0..=1_000)?;
        let timeout_ms = check("timeout_ms", self.timeout_ms.unwrap_or(300), 10..=10_000)?;
        let laser_idle_ms = self.laser_idle_ms.unwrap_or(10_000);
        let settings = Settings {
            high_sensitivity: self.high_sensitivity.unwrap_or(true),
            motor_speed,
            angles: self.angles.unwrap_or_default(),
            publish: Duration::from_millis(publish_ms),
            laser_idle: (laser_idle_ms > 0).then(|| Duration::from_millis(laser_idle_ms)),
            timeout: Duration::from_millis(timeout_ms),
        };
        Ok((settings, place))
    }

    fn or(self, mut file: Self) -> Self {
        // Either of the two places on the command line replaces both.
        if self.port.is_some() || self.tcp.is_some() {
            (file.port, file.tcp) = (None, None);
        }
        layered!(self over file: port tcp baud high_sensitivity motor_speed angles publish_ms
            laser_idle_ms timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_robot() {
        let (settings, place) = Options::default().settings().unwrap();
        assert_eq!(place.to_string(), "/dev/ttyACM0 at 19200 baud");
        assert!(settings.high_sensitivity);
        assert_eq!(
            (settings.motor_speed, settings.angles),
            (0, Angles::Compatible)
        );
        assert_eq!(settings.publish, Duration::from_millis(100));
    }

    #[test]
    fn a_place_on_the_command_line_wins_over_the_other_kind_in_the_file() {
        let file: Options = toml::from_str("tcp = \"a:10940\"\nmotor_speed = 99\n").unwrap();
        let flags = Options {
            port: Some("/dev/x".into()),
            ..Options::default()
        };
        let (settings, place) = flags.or(file.clone()).settings().unwrap();
        assert_eq!(place.to_string(), "/dev/x at 19200 baud");
        assert_eq!(settings.motor_speed, 99);
        let (_, place) = Options::default().or(file).settings().unwrap();
        assert_eq!(place, Place::Tcp("a:10940".into()));
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for text in [
            "motor_speed = 11",
            "timeout_ms = 0",
            "publish_ms = 1001",
            "baud = 1",
        ] {
            let options: Options = toml::from_str(text).unwrap();
            let error = options.settings().unwrap_err().to_string();
            assert!(
                text.starts_with(error.split(':').next().unwrap()),
                "{error}"
            );
        }
    }
}
