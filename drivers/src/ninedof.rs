//! Driver for a board with an accelerometer and magnetometer (LSM303DLHC) and a gyroscope
//! (L3G4200D, L3GD20 or L3GD20H) on an I2C bus. IO.
//!
//! ```text
//! driver (IO)  requests, threads --->  logic   (PURE)  requests, subscribers, times
//!    |                                   | service, calibration, attitude, units (PURE)
//!    +--- board (PURE)  the chips, each on its own
//!           +--- bus (IO)  /dev/i2c-N, or the bus of a simulated robot
//! ```
//!
//! Guarantees for clients:
//!
//! - The axes are right-handed: x to the right, y ahead, z up, provided that the board is mounted
//!   that way. Acceleration is the measured proper acceleration: 1000 milli-g up at rest.
//! - A message holds the requested groups that could be read at that moment. Values that cannot be
//!   read are missing, never old. If none can be read, the driver sends no reply and publishes
//!   nothing.
//! - Each client has its own publishing period, at least 5 ms, which starts again when the client
//!   subscribes again.
//! - A missing sensor does not affect the other sensors.
//! - The bias of the gyroscope at rest is subtracted. It comes from the calibration, or is measured
//!   at the start during one second in which the robot stands still.
//!
//! I2C has no checksums, so noise on the wires can change a value unnoticed.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::ninedof;
use serde::Deserialize;

use self::bus::BusLocation;
use self::driver::{NineDof, Setup};
use self::logic::Settings;
use self::units::Numbers;
use crate::options::{OptionsError, read};

pub mod attitude;
pub mod board;
pub mod bus;
pub mod calibration;
pub mod driver;
#[cfg(test)]
mod fake;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub(crate) mod probe;
pub mod registers;
pub mod service;
mod store;
pub mod units;

/// Options of the driver. The command line overrides the file; the defaults fit the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `bus = "/dev/i2c-4"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The I2C bus, or sim:PATH for the bus of `amber sim` [default: /dev/i2c-4]
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// File for calibrations; without it they are lost when the driver ends
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Whether to send the incorrect numbers of the original driver [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub compat: Option<bool>,
    /// Whether to measure the gyroscope bias at the start if the calibration lacks it [default:
    /// true]
    #[arg(long, value_name = "BOOL")]
    pub measure_bias: Option<bool>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (setup, location) = self.complete()?.setup()?;
        Ok(ninedof::driver(NineDof::new(setup, location)))
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
    pub fn setup(self) -> Result<(Setup, BusLocation), OptionsError> {
        let location = self.bus.as_deref().unwrap_or("/dev/i2c-4");
        let location = location.parse().map_err(|problem| OptionsError::Value {
            name: "bus",
            problem,
        })?;
        let compat = self.compat.unwrap_or(false);
        let settings = Settings {
            numbers: match compat {
                true => Numbers::Compatible,
                false => Numbers::Right,
            },
            // The numbers of the original are not calibrated.
            measures_bias: self.measure_bias.unwrap_or(true) && !compat,
        };
        let setup = Setup {
            settings,
            calibration: self.calibration,
        };
        Ok((setup, location))
    }

    fn or(self, file: Self) -> Self {
        Self {
            config: self.config,
            bus: self.bus.or(file.bus),
            calibration: self.calibration.or(file.calibration),
            compat: self.compat.or(file.compat),
            measure_bias: self.measure_bias.or(file.measure_bias),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_the_capo_robot() {
        let (setup, location) = Options::default().setup().unwrap();
        assert_eq!(location.to_string(), "/dev/i2c-4");
        assert_eq!(setup.calibration, None);
        assert_eq!(setup.settings.numbers, Numbers::Right);
        assert!(setup.settings.measures_bias);
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file: Options =
            toml::from_str("bus = \"sim:/tmp/x\"\ncompat = true\ncalibration = \"a.toml\"\n")
                .unwrap();
        let flags = Options {
            bus: Some("/dev/i2c-1".into()),
            ..Options::default()
        };
        let (setup, location) = flags.or(file).setup().unwrap();
        assert_eq!(location, BusLocation::System("/dev/i2c-1".into()));
        assert_eq!(setup.settings.numbers, Numbers::Compatible);
        assert!(!setup.settings.measures_bias);
        assert_eq!(setup.calibration, Some("a.toml".into()));
    }

    #[test]
    fn a_bus_without_a_path_is_refused() {
        let options: Options = toml::from_str("bus = \"sim:\"").unwrap();
        let error = options.setup().unwrap_err();
        assert!(error.to_string().starts_with("bus: the path is missing"));
    }
}
