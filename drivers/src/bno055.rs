//! Driver for the motion sensor BNO055 on an I2C bus. IO.
//!
//! `motion_sensor` has what all motion sensors share, and says what they guarantee. This one computes its
//! attitude itself, also while the robot accelerates, and calibrates itself. What it has learned is lost
//! with its power, so the driver keeps it in the calibration file and writes it back.
//!
//! Some computers damage what this sensor sends, because it stretches the clock of the bus. So the
//! attitude is read twice, and used only if both are sound and agree.
//!
//! ```text
//! registers  names, and what the bytes mean      sensor   set-up, samples, profile
//! ```

use std::path::PathBuf;

use amber_driver::Driver;
use amber_proto::ninedof::Attitude;
use serde::Deserialize;

use self::registers::{ADDRESSES, Fused, Levels};
use self::sensor::Sensor;
use crate::i2c::BusLocation;
use crate::motion_sensor::Model;
use crate::motion_sensor::attitude::attitude;
use crate::motion_sensor::calibration::{Calibration, Profile};
use crate::motion_sensor::chip::Chip;
use crate::motion_sensor::driver::{MotionDriver, Setup};
use crate::motion_sensor::options::{BoardOptions, Placement, driver};
use crate::motion_sensor::service::ServiceKind;
use crate::motion_sensor::units::Measured;
use crate::options::{OptionsError, layered, read};

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub(crate) mod probe;
mod registers;
mod sensor;

/// The driver of a BNO055.
pub type Bno055<B> = MotionDriver<Settings, B>;

/// Settings of the driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where the sensor is, and how it is mounted.
    pub placement: Placement,
    /// Whether the board has a crystal for the sensor.
    pub has_crystal: bool,
    /// What the sensor has learned before.
    pub profile: Option<Profile>,
}

impl Model for Settings {
    type Raw = Fused;

    fn recall(&mut self, calibration: &Calibration) {
        self.profile = calibration.profile();
    }

    fn chips(&self) -> Vec<Box<dyn Chip<Fused>>> {
        vec![Box::new(Sensor::new(self))]
    }

    /// It does that itself.
    fn measures_bias(&self) -> bool {
        false
    }

    fn measured(&self, raw: Fused, _calibration: &Calibration) -> Measured {
        raw.measured
    }

    fn attitude(
        &self,
        raw: Fused,
        _measured: Measured,
        calibration: &Calibration,
    ) -> Option<Attitude> {
        // What gravity and north are for other sensors, this one has computed.
        let attitude = attitude(raw.world?, calibration)?;
        Some(Attitude {
            heading_calibrated: Some(raw.levels?.knows_north()),
            ..attitude
        })
    }

    fn learned(&self, raw: Fused, calibration: &Calibration) -> Option<Calibration> {
        Some(calibration.clone().with_profile(raw.profile?))
    }

    fn own_calibration(&self, kind: ServiceKind, raw: Fused) -> Option<Result<String, String>> {
        let levels = raw.levels.ok_or_else(|| "no answer".to_owned());
        match kind {
            ServiceKind::SelfTest => None,
            ServiceKind::Gyro => Some(levels.and_then(Levels::gyro)),
            ServiceKind::Magnet => Some(levels.and_then(Levels::magnet)),
        }
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
    /// Whether the board has a crystal for the sensor, which makes it more accurate; without one, the
    /// sensor would stop [default: false]
    #[arg(long, value_name = "BOOL")]
    pub crystal: Option<bool>,
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
        self.board.setup(&ADDRESSES, |placement| Settings {
            placement,
            has_crystal: self.crystal.unwrap_or(false),
            profile: None,
        })
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: board crystal)
    }
}

#[cfg(test)]
mod tests;
