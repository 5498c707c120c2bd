//! Driver for the motion sensor LSM6DSOX and its relatives, with the magnetometer LIS3MDL that many
//! boards have beside it, on an I2C bus. IO.
//!
//! `motion_sensor` has what all motion sensors share, and says what they guarantee. Both chips are
//! independent. Boards without the magnetometer have no field and no heading.
//!
//! ```text
//! inertial   accelerometer and gyroscope      compass    the magnetometer, LIS3MDL
//! ```

use std::path::PathBuf;

use amber_driver::Driver;
use serde::Deserialize;

use self::compass::Compass;
use self::inertial::{ADDRESSES, Inertial};
use crate::i2c::BusLocation;
use crate::motion_sensor::Model;
use crate::motion_sensor::calibration::Calibration;
use crate::motion_sensor::chip::Chip;
use crate::motion_sensor::driver::{MotionDriver, Setup};
use crate::motion_sensor::inertia::Ranges;
use crate::motion_sensor::mount::Mount;
use crate::motion_sensor::options::{BoardOptions, Placement, RangeOptions, driver, mount};
use crate::motion_sensor::units::Measured;
use crate::options::{OptionsError, layered, read};

mod compass;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod inertial;
pub(crate) mod probe;

/// The driver of an LSM6DSOX.
pub type Lsm6dsox<B> = MotionDriver<Settings, B>;

/// Settings of the driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where the sensor is, and how it is mounted.
    pub placement: Placement,
    /// How the magnetometer is mounted, if it is on a board of its own.
    pub magnet_mount: Option<Mount>,
    /// The ranges.
    pub ranges: Ranges,
    /// Whether to measure the gyroscope bias at the start if it is unknown.
    pub measures_bias: bool,
}

impl Model for Settings {
    type Raw = Measured;

    fn chips(&self) -> Vec<Box<dyn Chip<Measured>>> {
        let compass = Compass::new(self.magnet_mount.unwrap_or(self.placement.mount));
        let inertial = Inertial::new(self.placement, self.ranges);
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
    /// The same as --axes for a magnetometer on a board of its own [default: as --axes]
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub magnet_axes: Option<String>,
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
        let ranges = self.ranges.ranges()?;
        let magnet_mount = mount("magnet_axes", self.magnet_axes.as_deref())?;
        self.board.setup(&ADDRESSES, |placement| Settings {
            placement,
            magnet_mount,
            ranges,
            measures_bias: self.ranges.measures_bias(),
        })
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: board ranges magnet_axes)
    }
}

#[cfg(test)]
mod tests;
