//! The driver of a board with an accelerometer and magnetometer (LSM303DLHC)
//! and a gyroscope (L3G4200D, L3GD20 or L3GD20H) on an I2C bus. IO.
//!
//! ```text
//! driver (IO)  orders, threads   --->  logic   (PURE)  who wants what, and when
//!    |                                   | service, calibration, attitude, units (PURE)
//!    +--- board (PURE)  the chips, each for itself
//!           +--- bus (IO)  /dev/i2c-N, or that of a simulated robot
//! ```
//!
//! What clients can count on:
//!
//! - The axes are those of a right hand: x to the right, y ahead, z up, if the
//!   board is mounted so. Acceleration is what is felt: 1000 milli-g up at rest.
//! - A message holds the groups that were asked for and could be read at that
//!   moment. What cannot be read is missing, never an old value; when nothing
//!   can, there is no answer, and nothing is published.
//! - Each client is published to at a period of its own, 5 ms at least, which
//!   begins anew when it subscribes again.
//! - A sensor that is missing does not keep the others from being read.
//! - What the gyroscope says at rest is taken off: from the calibration, or
//!   measured during a second in which the robot stands still at the start.
//!
//! I2C has no check sums: what noise on the wires does to a value cannot be seen.

use std::path::PathBuf;

use serde::Deserialize;

use self::bus::Place;
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
pub mod logic;
pub mod registers;
pub mod service;
mod store;
pub mod units;

/// Options of the driver. Those that are absent here are taken from the file,
/// and what is absent there has the default of the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `bus = "/dev/i2c-4"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The I2C bus, or sim:PATH for that of `amber sim` [default: /dev/i2c-4]
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// File in which calibrations are kept; they are forgotten at the end without
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// Whether to send the numbers of the original, wrong as they are [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub compat: Option<bool>,
    /// Whether to measure at the start what the gyroscope says at rest, if that
    /// is not in the calibration [default: true]
    #[arg(long, value_name = "BOOL")]
    pub measure_bias: Option<bool>,
}

impl Options {
    /// The driver with these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value makes no sense.
    pub fn driver(self) -> Result<NineDof<Place>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let (setup, place) = self.or(file).setup()?;
        Ok(NineDof::new(setup, place))
    }

    /// What these options mean; `config` is not looked at.
    ///
    /// # Errors
    /// A value makes no sense.
    pub fn setup(self) -> Result<(Setup, Place), OptionsError> {
        let place = self.bus.as_deref().unwrap_or("/dev/i2c-4");
        let place = place.parse().map_err(|problem| OptionsError::Value {
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
        Ok((setup, place))
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
    fn the_defaults_are_those_of_the_robot() {
        let (setup, place) = Options::default().setup().unwrap();
        assert_eq!(place.to_string(), "/dev/i2c-4");
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
        let (setup, place) = flags.or(file).setup().unwrap();
        assert_eq!(place, Place::System("/dev/i2c-1".into()));
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
