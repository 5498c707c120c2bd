//! Driver for the motion sensor ICM-20948 on an I2C bus. IO.
//!
//! `motion_sensor` has what all motion sensors share, and says what they guarantee. The accelerometer and
//! the gyroscope are one chip. The magnetometer, an AK09916, is another one in the same package, which is
//! on the bus only after the first was told to let it through.
//!
//! ```text
//! registers  banks, settings, scales                    inertial   accelerometer and gyroscope
//! compass    the magnetometer, AK09916
//! ```

use std::path::PathBuf;

use amber_driver::Driver;
use serde::Deserialize;

use self::compass::Compass;
use self::inertial::Inertial;
use self::registers::ADDRESSES;
pub use self::registers::Scale;
use crate::i2c::BusLocation;
use crate::motion_sensor::Model;
use crate::motion_sensor::calibration::Calibration;
use crate::motion_sensor::chip::Chip;
use crate::motion_sensor::driver::{MotionDriver, Setup};
use crate::motion_sensor::options::{BoardOptions, Placement, RangeOptions, driver, wrong};
use crate::motion_sensor::units::Measured;
use crate::options::{OptionsError, layered, read};

mod compass;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod inertial;
pub(crate) mod probe;
mod registers;

/// The driver of an ICM-20948.
pub type Icm20948<B> = MotionDriver<Settings, B>;

/// Settings of the driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where the sensor is, and how it is mounted.
    pub placement: Placement,
    /// Ranges and filter.
    pub scale: Scale,
    /// Whether to measure the gyroscope bias at the start if it is unknown.
    pub measures_bias: bool,
}

impl Model for Settings {
    type Raw = Measured;

    fn chips(&self) -> Vec<Box<dyn Chip<Measured>>> {
        let inertial = Inertial::new(self.placement, self.scale);
        let compass = Compass::new(self.placement.mount);
        vec![Box::new(inertial), Box::new(compass)]
    }

    fn measures_bias(&self) -> bool {
        self.measures_bias
    }

    fn measured(&self, raw: Measured, calibration: &Calibration) -> Measured {
        raw.minus(calibration)
    }
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `bus = "/dev/i2c-1"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub board: BoardOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub ranges: RangeOptions,
    /// Cut-off frequency of the low-pass filters in Hz: 111, 50, 24, 12 or 6 [default: 50]
    #[arg(long, value_name = "HZ")]
    pub low_pass_hz: Option<u16>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (setup, location) = self.complete()?.setup()?;
        Ok(driver(setup, location))
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
        let scale = Scale::with(self.ranges.ranges()?);
        let scale = scale.with_low_pass_hz(self.low_pass_hz.unwrap_or(50));
        let scale = scale.map_err(wrong("low_pass_hz"))?;
        self.board.setup(&ADDRESSES, |placement| Settings {
            placement,
            scale,
            measures_bias: self.ranges.measures_bias(),
        })
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: board ranges low_pass_hz)
    }
}

#[cfg(test)]
mod tests;
