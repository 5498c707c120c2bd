//! Driver that finds ArUco markers in the pictures of a camera, and where the robot is by them. IO.
//!
//! ```text
//!  camera --grey pictures--> eye (PURE): markers, their poses, that of the robot --> subscribers
//!  robot:0 --place of the camera--^        ^-- file of known markers (PURE)
//! ```
//!
//! `amber_navigation::markers` finds the markers and computes the poses. `optics` and `file` read the
//! calibration and the file, `eye` joins all, and `driver` is the client of the camera.
//!
//! Guarantees for clients:
//!
//! - The camera is used only while somebody has subscribed, or for the answer to a request.
//! - A picture that waits while the one before is examined is left out: what is published is new.
//! - Without a calibration there are no poses, not even rough ones, unless `fov_deg` is given: the driver
//!   refuses, and says so as its trouble.
//! - The pose of the robot is absent rather than doubtful: `no_pose` says why.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::markers;
use amber_proto::{Device, DeviceType};
use serde::Deserialize;

use self::driver::MarkersOf;
use self::eye::Eye;
use self::file::MarkerFile;
use crate::options::{OptionsError, check, layered, read};

mod driver;
mod eye;
mod file;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod optics;

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `rate = 2`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The camera [default: camera:0]
    #[arg(long, value_name = "DEVICE")]
    pub camera: Option<String>,
    /// TOML file with the places of markers: then the driver computes where the robot is
    #[arg(long, value_name = "FILE")]
    pub markers: Option<PathBuf>,
    /// Side of the black square of markers that are not in that file [default: as in the file;
    /// without one, such markers have no pose]
    #[arg(long, value_name = "MM")]
    pub side_mm: Option<f64>,
    /// Angle that the camera sees from left to right, if it is not calibrated
    #[arg(long, value_name = "DEG")]
    pub fov_deg: Option<f64>,
    /// Pictures per second [default: 5]
    #[arg(long, value_name = "HZ")]
    pub rate: Option<f64>,
    /// Wider pictures are made smaller [default: 640]
    #[arg(long, value_name = "PX")]
    pub max_width: Option<u32>,
    /// Robot device that knows where the camera is on the robot [default: robot:0]
    #[arg(long, value_name = "DEVICE")]
    pub shape_of: Option<String>,
}

/// Checked options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The camera.
    pub(crate) camera: Device,
    /// What knows its place on the robot.
    pub(crate) robot: Device,
    pub(crate) period: Duration,
    pub(crate) max_width: u32,
    /// The view of a camera without a calibration.
    pub(crate) view_rad: Option<f64>,
    /// The side of unknown markers.
    pub(crate) side_m: Option<f64>,
}

impl Options {
    /// Creates the driver from these options and those of the files.
    ///
    /// # Errors
    /// A file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let options = self.or(file);
        let known: MarkerFile = read(options.markers.as_deref())?;
        let (settings, eye) = options.settings(known)?;
        Ok(markers::driver(MarkersOf::new(settings, eye)))
    }

    /// The settings for these options. Ignores `config` and `markers`.
    fn settings(self, known: MarkerFile) -> Result<(Settings, Eye), OptionsError> {
        let device = |name, text: Option<String>, device_type: DeviceType| {
            let invalid = |problem| OptionsError::Value { name, problem };
            let Some(text) = text else {
                return Ok(Device::new(device_type, 0));
            };
            let device: Device = text.parse().map_err(|error| invalid(format!("{error}")))?;
            match device.device_type == device_type {
                true => Ok(device),
                false => Err(invalid(format!("{device} is not a {device_type}"))),
            }
        };
        let side_m = match self.side_mm {
            Some(mm) => Some(check("side_mm", mm, 10.0..=5_000.0)? / 1_000.0),
            None => known.side_m,
        };
        let view_rad = self.fov_deg.map(|deg| check("fov_deg", deg, 10.0..=150.0));
        let rate = check("rate", self.rate.unwrap_or(5.0), 0.1..=30.0)?;
        let settings = Settings {
            camera: device("camera", self.camera, DeviceType::CAMERA)?,
            robot: device("shape_of", self.shape_of, DeviceType::ROBOT)?,
            period: Duration::from_secs_f64(1.0 / rate),
            max_width: check("max_width", self.max_width.unwrap_or(640), 160..=1_920)?,
            view_rad: view_rad.transpose()?.map(f64::to_radians),
            side_m,
        };
        let places = known.places().map_err(|error| OptionsError::Value {
            name: "markers",
            problem: error.to_string(),
        })?;
        let eye = Eye::new(settings.clone(), places);
        Ok((settings, eye))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: camera markers side_mm fov_deg rate max_width shape_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, String> {
        let options: Options = toml::from_str(text).unwrap();
        let settings = options.settings(MarkerFile::default());
        settings.map(|it| it.0).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_look_gently() {
        let settings = settings("").unwrap();
        assert_eq!(settings.camera.to_string(), "camera:0");
        assert_eq!(settings.robot.to_string(), "robot:0");
        assert_eq!(settings.period, Duration::from_millis(200));
        assert_eq!((settings.max_width, settings.side_m), (640, None));
        assert_eq!(settings.view_rad, None);
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file: Options = toml::from_str("camera = 'camera:1'\nside_mm = 100").unwrap();
        let flags = Options {
            side_mm: Some(200.0),
            ..Options::default()
        };
        let known = toml::from_str("side_m = 0.3\nheight_m = 0.2").unwrap();
        let (settings, _) = flags.or(file).settings(known).unwrap();
        assert_eq!(settings.camera.id.0, 1);
        assert_eq!(settings.side_m, Some(0.2));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, problem) in [
            ("camera = 'hokuyo:0'", "camera: hokuyo:0 is not a camera"),
            ("shape_of = 'camera:0'", "shape_of: camera:0 is not a robot"),
            ("fov_deg = 200", "fov_deg: 200 is not within 10 to 150"),
            ("side_mm = 1", "side_mm: 1 is not within 10 to 5000"),
            ("rate = 0", "rate: 0 is not within 0.1 to 30"),
            ("max_width = 10", "max_width: 10 is not within 160 to 1920"),
        ] {
            assert_eq!(settings(text).unwrap_err(), problem);
        }
    }
}
