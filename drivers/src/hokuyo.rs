//! Driver for Hokuyo laser scanners that use SCIP 2, such as the URG-04LX and the UTM-30LX, over a
//! serial port, USB or TCP. IO.
//!
//! `scip` and `logic` are pure; `scanner` carries out the outputs of `logic`, and says what all
//! laser scanners guarantee. Further guarantees for clients:
//!
//! - The error codes of the scanner are forwarded as they are, except in sectors that the robot masks.
//! - A request makes the scanner return the last scan that it completed. While at least one client is
//!   subscribed, it sends continuously.
//! - The description is what the scanner says of itself.
//! - The laser is off until a client requests a scan, and again `laser_idle_ms` after the last
//!   request or subscription. The first scan then takes slightly longer.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::hokuyo;
use serde::Deserialize;

use self::driver::Hokuyo;
use self::logic::{Angles, Settings};
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};

pub mod description;
pub mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub(crate) mod probe;
pub mod scip;

/// Options of the driver. The command line overrides the file; the defaults fit the Capo robot.
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
    /// Bits per second; no effect over USB [default: 19200]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Whether to detect weak echoes [default: true]
    #[arg(long, value_name = "BOOL")]
    pub high_sensitivity: Option<bool>,
    /// Motor speed: 0 normal, 1 to 10 slower, 99 initial [default: 0]
    #[arg(long, value_name = "NUMBER")]
    pub motor_speed: Option<u8>,
    /// Angle convention for reported points [default: compatible]
    #[arg(long, value_enum)]
    pub angles: Option<Angles>,
    /// Minimum interval between published scans [default: 100]
    #[arg(long, value_name = "MS")]
    pub publish_ms: Option<u64>,
    /// Turn the laser off after this time without requests or subscribers; 0 for never [default:
    /// 10000]
    #[arg(long, value_name = "MS")]
    pub laser_idle_ms: Option<u64>,
    /// Longest silence within a reply [default: 300]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        Ok(hokuyo::driver(Hokuyo::new(settings, endpoint)))
    }

    /// These options over those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        if file.port.is_some() && file.tcp.is_some() {
            return Err(OptionsError::Value {
                name: "port",
                problem: "cannot be used with tcp".into(),
            });
        }
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, Endpoint), OptionsError> {
        let endpoint = match self.tcp {
            Some(address) => Endpoint::Tcp(address),
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
        Ok((settings, endpoint))
    }

    fn or(self, mut file: Self) -> Self {
        // An endpoint on the command line replaces both endpoints of the file.
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
    fn the_defaults_fit_the_capo_robot() {
        let (settings, endpoint) = Options::default().settings().unwrap();
        assert_eq!(endpoint.to_string(), "/dev/ttyACM0 at 19200 baud");
        assert!(settings.high_sensitivity);
        assert_eq!(
            (settings.motor_speed, settings.angles),
            (0, Angles::Compatible)
        );
        assert_eq!(settings.publish, Duration::from_millis(100));
    }

    #[test]
    fn an_endpoint_on_the_command_line_overrides_the_other_kind_in_the_file() {
        let file: Options = toml::from_str("tcp = \"a:10940\"\nmotor_speed = 99\n").unwrap();
        let flags = Options {
            port: Some("/dev/x".into()),
            ..Options::default()
        };
        let (settings, endpoint) = flags.or(file.clone()).settings().unwrap();
        assert_eq!(endpoint.to_string(), "/dev/x at 19200 baud");
        assert_eq!(settings.motor_speed, 99);
        let (_, endpoint) = Options::default().or(file).settings().unwrap();
        assert_eq!(endpoint, Endpoint::Tcp("a:10940".into()));
    }

    #[test]
    fn invalid_values_are_rejected() {
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
