//! Driver that serves the messages of Roboclaw for a base of any kind. IO.
//!
//! Programs that drive by the speeds of left and right wheels then drive such a base: drive-to-point, the
//! stick of the dashboard, gateways. It never drives sideways for them.
//!
//! ```text
//!  clients --wheel speeds--> roboclaw:0, this driver --velocity--> base:0
//!          <---------------- logic (PURE): track <---- state ------
//! ```
//!
//! The track is that of the robot device, with which such programs compute, too.
//!
//! Guarantees for clients:
//!
//! - The newest command counts, for four seconds. It ends earlier if it says so, and with its client.
//! - A lease of this device is also one of the base, in the same name.
//! - Commands are refused while the base does not say how it moves. It does not go on by itself afterwards.

use amber_driver::Driver;
use amber_driver::devices::roboclaw;
use amber_proto::{Device, DeviceType};

use self::driver::BaseWheels;
use crate::options::{OptionsError, check};

mod driver;
mod logic;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The base [default: base:0]
    #[arg(long, value_name = "DEVICE")]
    base: Option<Device>,
    /// Distance of the wheels that programs assume [default: as the robot device says, or 420]
    #[arg(long, value_name = "MM")]
    track_mm: Option<f64>,
    /// Robot device to ask for the track [default: robot:0]
    #[arg(long, value_name = "DEVICE")]
    shape_of: Option<Device>,
}

/// Checked options.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Settings {
    base: Device,
    track_m: Option<f64>,
    robot: Device,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        Ok(roboclaw::driver(BaseWheels::new(self.settings()?)))
    }

    fn settings(self) -> Result<Settings, OptionsError> {
        let device = |name, given: Option<Device>, kind| match given {
            Some(other) if other.device_type != kind => Err(OptionsError::Value {
                name,
                problem: format!("{other} is not a {kind}"),
            }),
            given => Ok(given.unwrap_or(Device::new(kind, 0))),
        };
        let track_mm = self
            .track_mm
            .map(|mm| check("track_mm", mm, 50.0..=5_000.0));
        Ok(Settings {
            base: device("base", self.base, DeviceType::BASE)?,
            track_m: track_mm.transpose()?.map(|mm| mm / 1_000.0),
            robot: device("shape_of", self.shape_of, DeviceType::ROBOT)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_devices_are_the_first_ones() {
        let settings = Options::default().settings().unwrap();
        assert_eq!(settings.base.to_string(), "base:0");
        assert_eq!(settings.robot.to_string(), "robot:0");
        assert_eq!(settings.track_m, None);
    }

    #[test]
    fn invalid_values_are_rejected() {
        let device = |text: &str| Some(text.parse().unwrap());
        for (options, problem) in [
            (
                Options {
                    base: device("roboclaw:0"),
                    ..Options::default()
                },
                "base: roboclaw:0 is not a base",
            ),
            (
                Options {
                    shape_of: device("base:0"),
                    ..Options::default()
                },
                "shape_of: base:0 is not a robot",
            ),
            (
                Options {
                    track_mm: Some(1.0),
                    ..Options::default()
                },
                "track_mm: 1 is not within 50 to 5000",
            ),
        ] {
            let error = options.settings().unwrap_err().to_string();
            assert_eq!(error, problem);
        }
    }
}
