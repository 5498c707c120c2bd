//! The options that boards of motion sensors share, and the driver for them. IO.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::ninedof;
use serde::Deserialize;

use super::driver::{MotionDriver, Setup};
use super::inertia::Ranges;
use super::model::Model;
use super::mount::Mount;
use crate::i2c::{BusLocation, OpenBus};
use crate::options::OptionsError;

/// Where the board is, and what to do with it.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[group(skip)]
#[serde(default)]
pub struct BoardOptions {
    /// The I2C bus, or sim:PATH for the bus of `amber sim` [default: /dev/i2c-1]
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// Address of the sensor in hexadecimal digits, such as 0x68 [default: the first that answers]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Axes of the board that point to the right, ahead and up on the robot, such as y,-x,z
    /// [default: x,y,z]
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub axes: Option<String>,
    /// File for calibrations; without it they are lost when the driver ends
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
}

/// Of sensors that do not calibrate themselves.
#[derive(Clone, Copy, Debug, Default, clap::Args, Deserialize)]
#[group(skip)]
#[serde(default)]
pub struct RangeOptions {
    /// Range of the accelerometer in g: 2, 4, 8 or 16 [default: 4]
    #[arg(long, value_name = "G")]
    pub accel_g: Option<u16>,
    /// Range of the gyroscope in degrees per second: 250, 500, 1000 or 2000 [default: 500]
    #[arg(long, value_name = "DEG_S")]
    pub gyro_deg_s: Option<u16>,
    /// Whether to measure the gyroscope bias at the start if the calibration lacks it [default:
    /// true]
    #[arg(long, value_name = "BOOL")]
    pub measure_bias: Option<bool>,
}

/// Where the sensor is, and how it is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement {
    /// Its address; `None` for the first that answers.
    pub address: Option<u8>,
    /// How the board is mounted.
    pub mount: Mount,
}

impl BoardOptions {
    /// These options over those of the file.
    #[must_use]
    pub(crate) fn or(self, file: Self) -> Self {
        Self {
            bus: self.bus.or(file.bus),
            address: self.address.or(file.address),
            axes: self.axes.or(file.axes),
            calibration: self.calibration.or(file.calibration),
        }
    }

    /// The setup of a driver with these settings, of a sensor that has one of these addresses.
    ///
    /// # Errors
    /// A value is invalid.
    pub(crate) fn setup<M>(
        self,
        addresses: &[u8],
        settings: impl FnOnce(Placement) -> M,
    ) -> Result<(Setup<M>, BusLocation), OptionsError> {
        let location = self.bus.as_deref().unwrap_or("/dev/i2c-1");
        let location = location.parse().map_err(wrong("bus"))?;
        let address = (self.address.as_deref()).map(|text| address(text, addresses));
        let placement = Placement {
            address: address.transpose().map_err(wrong("address"))?,
            mount: mount("axes", self.axes.as_deref())?.unwrap_or_default(),
        };
        let setup = Setup {
            settings: settings(placement),
            calibration: self.calibration,
        };
        Ok((setup, location))
    }
}

impl RangeOptions {
    /// These options over those of the file.
    #[must_use]
    pub(crate) fn or(self, file: Self) -> Self {
        Self {
            accel_g: self.accel_g.or(file.accel_g),
            gyro_deg_s: self.gyro_deg_s.or(file.gyro_deg_s),
            measure_bias: self.measure_bias.or(file.measure_bias),
        }
    }

    /// The ranges.
    ///
    /// # Errors
    /// The sensors do not have one of them.
    pub(crate) fn ranges(self) -> Result<Ranges, OptionsError> {
        let ranges = Ranges::default();
        let ranges = ranges.with_accel_g(self.accel_g.unwrap_or(4));
        let ranges = ranges.map_err(wrong("accel_g"))?;
        let ranges = ranges.with_gyro_deg_s(self.gyro_deg_s.unwrap_or(500));
        ranges.map_err(wrong("gyro_deg_s"))
    }

    pub(crate) fn measures_bias(self) -> bool {
        self.measure_bias.unwrap_or(true)
    }
}

/// The axes of an option, if it is given.
pub(crate) fn mount(name: &'static str, text: Option<&str>) -> Result<Option<Mount>, OptionsError> {
    let mount = text.map(str::parse::<Mount>).transpose();
    mount.map_err(wrong(name))
}

/// The error of an option.
pub(crate) fn wrong(name: &'static str) -> impl FnOnce(String) -> OptionsError {
    move |problem| OptionsError::Value { name, problem }
}

/// The driver of a model.
pub(crate) fn driver<M: Model, B: OpenBus>(setup: Setup<M>, place: B) -> impl Driver {
    ninedof::driver(MotionDriver::new(setup, place))
}

/// Reads `0x68` or `68`.
fn address(text: &str, addresses: &[u8]) -> Result<u8, String> {
    let number = u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16);
    let valid = number.ok().filter(|number| addresses.contains(number));
    valid.ok_or_else(|| {
        let all: Vec<_> = addresses.iter().map(|it| format!("{it:#04x}")).collect();
        format!("{text:?} is neither {}", all.join(" nor "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_refused() {
        for (text, error) in [
            ("bus = \"\"", "bus: the path is missing"),
            (
                "address = \"0x6b\"",
                "address: \"0x6b\" is neither 0x68 nor 0x69",
            ),
            (
                "axes = \"x,y,-z\"",
                "axes: no board can be mounted as \"x,y,-z\"",
            ),
        ] {
            let options: BoardOptions = toml::from_str(text).unwrap();
            let said = options.setup(&[0x68, 0x69], |_| ()).unwrap_err();
            assert!(said.to_string().starts_with(error), "{said}");
        }
        for (text, error) in [
            ("accel_g = 3", "accel_g: 3 is none of 2, 4, 8, 16"),
            (
                "gyro_deg_s = 0",
                "gyro_deg_s: 0 is none of 250, 500, 1000, 2000",
            ),
        ] {
            let options: RangeOptions = toml::from_str(text).unwrap();
            assert_eq!(options.ranges().unwrap_err().to_string(), error);
        }
    }
}
