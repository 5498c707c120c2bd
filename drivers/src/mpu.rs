//! Driver for the motion sensors MPU-6050, MPU-6500, MPU-9250, MPU-9255 and their copies on an I2C
//! bus. IO.
//!
//! `motion_sensor` has what all motion sensors share, and says what they guarantee. The accelerometer and
//! the gyroscope are one chip. The magnetometer of an MPU-9250 or MPU-9255 is another one, which is on
//! the bus only after the first was told to let it through. All others have no magnetometer: messages
//! have no field and no heading.
//!
//! ```text
//! part       the identities, and where the chip is      inertial   accelerometer and gyroscope
//! registers  names, settings, scales                    compass    the magnetometer, AK8963
//! ```

use std::io;
use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::ninedof;
use serde::Deserialize;

use self::compass::Compass;
use self::inertial::Inertial;
use self::part::ADDRESSES;
pub use self::registers::Scale;
use crate::connection::in_words;
use crate::motion_sensor::Model;
use crate::motion_sensor::bus::BusLocation;
use crate::motion_sensor::calibration::Calibration;
use crate::motion_sensor::chip::Chip;
use crate::motion_sensor::driver::{MotionDriver, Setup};
use crate::motion_sensor::mount::Mount;
use crate::motion_sensor::units::Measured;
use crate::options::{OptionsError, layered, read};

mod compass;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod inertial;
mod part;
pub(crate) mod probe;
mod registers;

/// The driver of an MPU.
pub type Mpu<B> = MotionDriver<Settings, B>;

/// Settings of the driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where the sensor is; `None` for the first address that answers.
    pub address: Option<u8>,
    /// Ranges and filter.
    pub scale: Scale,
    /// How the board is mounted.
    pub mount: Mount,
    /// Whether to measure the gyroscope bias at the start if it is unknown.
    pub measures_bias: bool,
}

impl Model for Settings {
    type Raw = Measured;

    fn chips(&self) -> Vec<Box<dyn Chip<Measured>>> {
        let inertial = Inertial::new(self.address, self.scale, self.mount);
        let compass = Compass::new(self.address, self.mount);
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
    /// The I2C bus, or sim:PATH for the bus of `amber sim` [default: /dev/i2c-1]
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// Address of the sensor: 0x68, or 0x69 if its pin AD0 is high [default: the first that
    /// answers]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Axes of the board that point to the right, ahead and up on the robot, such as y,-x,z
    /// [default: x,y,z]
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub axes: Option<String>,
    /// Range of the accelerometer in g: 2, 4, 8 or 16 [default: 4]
    #[arg(long, value_name = "G")]
    pub accel_g: Option<u16>,
    /// Range of the gyroscope in degrees per second: 250, 500, 1000 or 2000 [default: 500]
    #[arg(long, value_name = "DEG_S")]
    pub gyro_deg_s: Option<u16>,
    /// Cut-off frequency of the low-pass filters in Hz: 184, 94, 44, 21, 10 or 5 [default: 44]
    #[arg(long, value_name = "HZ")]
    pub low_pass_hz: Option<u16>,
    /// File for calibrations; without it they are lost when the driver ends
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
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
        let place = move || (location.try_open()).map_err(|error| unopened(&error, &location));
        Ok(ninedof::driver(Mpu::new(setup, place)))
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
        let value = |name| move |problem| OptionsError::Value { name, problem };
        let location = self.bus.as_deref().unwrap_or("/dev/i2c-1");
        let location = location.parse().map_err(value("bus"))?;
        let address = self.address.as_deref().map(address).transpose();
        let mount = self.axes.as_deref().map(str::parse::<Mount>).transpose();
        let settings = Settings {
            address: address.map_err(value("address"))?,
            scale: Scale::default()
                .with_accel_g(self.accel_g.unwrap_or(4))
                .map_err(value("accel_g"))?
                .with_gyro_deg_s(self.gyro_deg_s.unwrap_or(500))
                .map_err(value("gyro_deg_s"))?
                .with_low_pass_hz(self.low_pass_hz.unwrap_or(44))
                .map_err(value("low_pass_hz"))?,
            mount: mount.map_err(value("axes"))?.unwrap_or_default(),
            measures_bias: self.measure_bias.unwrap_or(true),
        };
        let setup = Setup {
            settings,
            calibration: self.calibration,
        };
        Ok((setup, location))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: bus address axes accel_g gyro_deg_s low_pass_hz calibration
            measure_bias)
    }
}

/// Reads `0x68` or `68`.
fn address(text: &str) -> Result<u8, String> {
    let number = u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16);
    let valid = number.ok().filter(|number| ADDRESSES.contains(number));
    valid.ok_or_else(|| format!("{text:?} is neither 0x68 nor 0x69"))
}

/// Why a bus cannot be opened, and what to do.
fn unopened(error: &io::Error, location: &BusLocation) -> String {
    let text = in_words(error, &location.to_string());
    match (error.kind(), location) {
        (io::ErrorKind::NotFound, BusLocation::System(_)) => {
            format!(
                "{text}: is I2C enabled? On a Raspberry Pi: `sudo raspi-config`, Interface Options"
            )
        }
        (io::ErrorKind::PermissionDenied, BusLocation::System(_)) => {
            format!("{text}; usually `sudo usermod -aG i2c $USER`, and a new login")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests;
