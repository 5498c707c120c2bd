//! Driver for GPS receivers that send NMEA 0183 over a serial line or USB: nearly all do. IO.
//!
//! ```text
//! nmea      the sentences                      logic   positions, silence and other trouble
//! epoch     joins those of one moment          port    finds the speed of the receiver
//! ```
//!
//! `nmea`, `epoch` and `logic` are pure; `driver` carries out the outputs of `logic`. The driver sends
//! nothing to the receiver, so its settings stay as they are.
//!
//! Guarantees for clients:
//!
//! - Without a position, or with one that a part of the receiver's own sentences denies, there is none:
//!   latitude and longitude are absent. They are never 0 for this reason, and never old.
//! - A position that the receiver tells in two sentences counts only if both are there and agree: the
//!   sums of sentences do not notice all errors.
//! - An answer is refused, with the reason, if the receiver has told nothing for `timeout_ms`.
//! - While there is no position for more than five seconds, that is a problem of the driver: `amber
//!   status gps` shows it.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::gps;
use serde::Deserialize;

use self::driver::Gps;
use self::logic::Settings;
pub use self::port::SerialPort;
use crate::options::{OptionsError, check, layered, read};

pub mod driver;
pub mod epoch;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub mod nmea;
mod port;
pub(crate) mod probe;

/// The usual speeds in bits per second: those of older receivers, of newer ones, and of fast ones. A
/// receiver with USB has no speed.
const BAUDS: [u32; 3] = [9_600, 38_400, 115_200];

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the receiver [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second [default: that of 9600, 38400 and 115200 at which sentences arrive]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Standard deviation of a position whose dilution of precision (HDOP) is 1, for receivers that do
    /// not tell their errors [default: 5]
    #[arg(long, value_name = "M")]
    pub error_m: Option<f64>,
    /// Longest silence of the receiver; an older position is none [default: 3000]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, port) = self.complete()?.settings()?;
        Ok(gps::driver(Gps::new(settings, port)))
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
    pub fn settings(self) -> Result<(Settings, SerialPort), OptionsError> {
        let bauds = match self.baud {
            Some(baud) => vec![check("baud", baud, 2_400..=4_000_000)?],
            None => BAUDS.to_vec(),
        };
        let port = SerialPort {
            path: self.port.unwrap_or_else(|| "/dev/ttyACM0".into()),
            bauds,
        };
        let timeout_ms = check("timeout_ms", self.timeout_ms.unwrap_or(3_000), 100..=60_000)?;
        let settings = Settings {
            error_m: check("error_m", self.error_m.unwrap_or(5.0), 0.01..=100.0)?,
            timeout: Duration::from_millis(timeout_ms),
        };
        Ok((settings, port))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud error_m timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_the_file() {
        let (settings, port) = Options::default().settings().unwrap();
        assert_eq!(
            (settings.error_m, settings.timeout.as_millis()),
            (5.0, 3_000)
        );
        assert_eq!(port.bauds, [9_600, 38_400, 115_200]);
        let file: Options = toml::from_str("port = \"/dev/serial0\"\nbaud = 38400").unwrap();
        let flags = Options {
            baud: Some(115_200),
            ..Options::default()
        };
        let (_, port) = flags.or(file).settings().unwrap();
        assert_eq!(
            (port.path, port.bauds),
            ("/dev/serial0".into(), vec![115_200])
        );
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, error) in [
            ("baud = 1", "baud: 1 is not within 2400 to 4000000"),
            ("error_m = 0.0", "error_m: 0 is not within 0.01 to 100"),
            ("timeout_ms = 1", "timeout_ms: 1 is not within 100 to 60000"),
        ] {
            let options: Options = toml::from_str(text).unwrap();
            let found = options.settings().unwrap_err();
            assert_eq!(found.to_string(), error);
        }
    }
}
