//! Driver for a board with an accelerometer and magnetometer (LSM303DLHC) and a gyroscope
//! (L3G4200D, L3GD20 or L3GD20H) on an I2C bus. IO.
//!
//! `motion_sensor` has what all motion sensors share, and says what they guarantee. The three chips are
//! independent, each at its own address. The option `compat` sends the incorrect numbers of the
//! original driver.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::ninedof;
use amber_proto::ninedof::SensorData;
use serde::Deserialize;

use self::registers::{Gain, Raw};
use self::units::{Numbers, sensor_data};
use crate::i2c::BusLocation;
use crate::motion_sensor::Model;
use crate::motion_sensor::calibration::Calibration;
use crate::motion_sensor::chip::Chip;
use crate::motion_sensor::driver::{MotionDriver, Setup};
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::units::Measured;
use crate::options::{OptionsError, read};

pub mod board;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub(crate) mod probe;
pub mod registers;
pub mod units;

/// The driver of a board with accelerometer, gyroscope and magnetometer.
pub type NineDof<B> = MotionDriver<Settings, B>;

/// Its logic.
pub type ImuLogic = crate::motion_sensor::logic::ImuLogic<Settings>;

/// Settings of the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The kind of numbers to send.
    pub numbers: Numbers,
    /// Whether to measure the gyroscope bias at the start if it is unknown.
    pub measures_bias: bool,
}

impl Settings {
    /// The sensitivity of the magnetometer.
    pub fn gain(&self) -> Gain {
        match self.numbers {
            Numbers::Right => Gain::Fine,
            Numbers::Compatible => Gain::Coarse,
        }
    }
}

impl Model for Settings {
    type Raw = Raw;

    fn chips(&self) -> Vec<Box<dyn Chip<Raw>>> {
        board::chips(self.gain())
    }

    fn measures_bias(&self) -> bool {
        self.measures_bias
    }

    fn measured(&self, raw: Raw, calibration: &Calibration) -> Measured {
        Measured::of(raw, self.gain(), calibration)
    }

    fn sensor_data(&self, sensors: Sensors, raw: Raw, measured: Measured) -> SensorData {
        sensor_data(sensors, self.numbers, raw, measured)
    }

    fn has_time(&self) -> bool {
        self.numbers == Numbers::Right
    }
}

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
    pub fn setup(self) -> Result<(Setup<Settings>, BusLocation), OptionsError> {
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
