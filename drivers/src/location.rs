//! Driver that knows where the robot is on its map, from the scans of a Hokuyo and the wheel speeds
//! of a Roboclaw. IO.
//!
//! ```text
//!   hokuyo ---> sources --+                        +--> answers, at once
//!   roboclaw -> sources --+--> engine: a thread ---+--> subscribers
//!   map file, upload -----+    with the filter     +--> health
//! ```
//!
//! `tracker` and `answer` are pure: the filter and the messages. `engine` is the thread in which
//! the filter works, `maps` reads and replaces the map file, `external` receives poses from other
//! systems, and `driver` joins them.
//!
//! What clients can rely on:
//!
//! - An answer never waits for the filter. It is the pose in the middle of the last scan, with that
//!   time; all values are 0 before the first estimate.
//! - The quality `p` is the part of the particles, by weight, that agrees with the pose, times the
//!   part of the scan that the map explains (80 % count as all). It is below 0.3 while the pose is
//!   not known, and above 0.9 while it is known well. It falls while scans or wheel speeds are
//!   missing: after 0.5 s, down to 0 after 2 s without scans and to a half without wheel speeds.
//! - Subscribers get the pose after each update, at most ten times per second.
//! - An uploaded map replaces the file of `--map`. An invalid one is refused, and the old map stays.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::devices::location;
use amber_driver::{Device, Driver};
use amber_map::Pose;
use amber_navigation::location::Config;
use amber_proto::DeviceType;
use serde::Deserialize;

use self::driver::LocationDriver;
use self::external::External;
use crate::options::{OptionsError, check, layered, read};

mod answer;
mod driver;
mod engine;
mod external;
mod maps;
mod tracker;

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `laser_offset_mm = 100`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Map: a .roson file, or the YAML file of a map of ROS map_server
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Position of the laser ahead of the centre between the wheels; required
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub laser_offset_mm: Option<f64>,
    /// Position of the laser to the left of the centre [default: 0]
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub laser_left_mm: Option<f64>,
    /// Direction of the front of the laser, to the right of that of the robot [default: 0]
    #[arg(long, value_name = "DEG", allow_negative_numbers = true)]
    pub laser_angle_deg: Option<f64>,
    /// Effective distance between left and right wheels in turns [default: 420, for the Capo robot]
    #[arg(long, value_name = "MM")]
    pub track_mm: Option<f64>,
    /// Time of one turn of the laser [default: 100]
    #[arg(long, value_name = "MS")]
    pub scan_turn_ms: Option<u64>,
    /// Time from the end of a scan to its timestamp [default: 0]
    #[arg(long, value_name = "MS")]
    pub scan_delay_ms: Option<u64>,
    /// Longer distances in scans are ignored [default: 5600]
    #[arg(long, value_name = "MM")]
    pub max_range_mm: Option<f64>,
    /// Cell size of the grid with the distances to walls [default: 20]
    #[arg(long, value_name = "MM")]
    pub cell_mm: Option<f64>,
    /// Laser scanner to use [default: hokuyo:0]
    #[arg(long, value_name = "DEVICE")]
    pub laser: Option<String>,
    /// Motor controllers to use [default: roboclaw:0]
    #[arg(long, value_name = "DEVICE")]
    pub wheels: Option<String>,
    /// Use the laser and wheels of the mediator at this address, instead of those of our own one
    #[arg(long, value_name = "HOST[:PORT]")]
    pub devices_of: Option<String>,
    /// Receive poses from another system, such as a camera, at this UDP address
    #[arg(long, value_name = "ADDRESS:PORT", requires = "robot_id")]
    pub external_pose: Option<SocketAddr>,
    /// Number of this robot in poses from another system
    #[arg(long, value_name = "NUMBER")]
    pub robot_id: Option<i32>,
    /// Accept poses only from this address
    #[arg(long, value_name = "ADDRESS")]
    pub external_from: Option<IpAddr>,
    /// Standard deviation of the position in poses from another system [default: 50]
    #[arg(long, value_name = "MM")]
    pub external_sigma_mm: Option<f64>,
    /// Standard deviation of the heading in poses from another system [default: 3]
    #[arg(long, value_name = "DEG")]
    pub external_sigma_deg: Option<f64>,
    /// Seed of the filter's randomness, for tests [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// Checked options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub map: Option<PathBuf>,
    pub config: Config,
    pub scan_turn: Duration,
    pub scan_delay: Duration,
    pub laser: Device,
    pub wheels: Device,
    pub devices_of: Option<String>,
    pub external: Option<External>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let settings = self.or(file).settings()?;
        Ok(location::driver(LocationDriver::new(settings)))
    }

    /// The settings for these options. Ignores `config`.
    fn settings(self) -> Result<Settings, OptionsError> {
        let Some(offset_mm) = self.laser_offset_mm else {
            return Err(OptionsError::Missing {
                name: "--laser-offset-mm",
                hint: "measure how far the laser is ahead of the centre between the wheels; 0 if \
                       it is above the centre, negative if it is behind",
            });
        };
        let m = |name, value: Option<f64>, default_mm, range_mm| {
            check(name, value.unwrap_or(default_mm), range_mm).map(|mm| mm / 1000.0)
        };
        let ms = |name, value: Option<u64>, default_ms, range_ms| {
            check(name, value.unwrap_or(default_ms), range_ms).map(Duration::from_millis)
        };
        // A scanner farther away is not on the robot.
        let on_robot = -2_000.0..=2_000.0;
        let ahead_m = m("laser_offset_mm", Some(offset_mm), 0.0, on_robot.clone())?;
        let left_m = m("laser_left_mm", self.laser_left_mm, 0.0, on_robot)?;
        let angle = self.laser_angle_deg.unwrap_or(0.0);
        let angle_deg = check("laser_angle_deg", angle, -180.0..=180.0)?;
        // Options have the signs of messages: clockwise is positive.
        let mount = Pose::new(ahead_m, left_m, -angle_deg.to_radians());
        let mut config = Config::new(mount);
        let track_mm = config.track_m * 1000.0;
        config.track_m = m("track_mm", self.track_mm, track_mm, 50.0..=5_000.0)?;
        config.max_range_m = m("max_range_mm", self.max_range_mm, 5_600.0, 500.0..=60_000.0)?;
        config.cell_m = m("cell_mm", self.cell_mm, 20.0, 5.0..=200.0)?;
        config.seed = self.seed.unwrap_or(config.seed);
        let external = match (self.external_pose, self.robot_id) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(OptionsError::Missing {
                    name: "--robot-id",
                    hint: "it selects the poses of this robot; give the number of its marker",
                });
            }
            (Some(listen), Some(robot_id)) => Some(External {
                listen,
                robot_id,
                from: self.external_from,
                sigma_m: m(
                    "external_sigma_mm",
                    self.external_sigma_mm,
                    50.0,
                    1.0..=5_000.0,
                )?,
                sigma_rad: check(
                    "external_sigma_deg",
                    self.external_sigma_deg.unwrap_or(3.0),
                    0.1..=180.0,
                )?
                .to_radians(),
            }),
        };
        Ok(Settings {
            map: self.map,
            scan_turn: ms("scan_turn_ms", self.scan_turn_ms, 100, 5..=1_000)?,
            scan_delay: ms("scan_delay_ms", self.scan_delay_ms, 0, 0..=1_000)?,
            laser: device("laser", self.laser, DeviceType::HOKUYO)?,
            wheels: device("wheels", self.wheels, DeviceType::ROBOCLAW)?,
            devices_of: self.devices_of,
            external,
            config,
        })
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: map laser_offset_mm laser_left_mm laser_angle_deg track_mm
            scan_turn_ms scan_delay_ms max_range_mm cell_mm laser wheels devices_of external_pose
            robot_id external_from external_sigma_mm external_sigma_deg seed)
    }
}

/// A device of this type; number 0 unless given.
fn device(
    name: &'static str,
    text: Option<String>,
    device_type: DeviceType,
) -> Result<Device, OptionsError> {
    let Some(text) = text else {
        return Ok(Device::new(device_type, 0));
    };
    let invalid = |problem: String| OptionsError::Value { name, problem };
    let device: Device = (text.parse()).map_err(|error| invalid(format!("{text}: {error}")))?;
    if device.device_type == device_type {
        Ok(device)
    } else {
        Err(invalid(format!("{text} is not a {device_type}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, OptionsError> {
        toml::from_str::<Options>(text).unwrap().settings()
    }

    #[test]
    fn the_laser_offset_is_required_and_has_no_default() {
        let error = Options::default().settings().unwrap_err();
        assert_eq!(error.to_string(), "--laser-offset-mm is required");
        assert!(error.hint().unwrap().contains("measure"));
        assert!(settings("laser_offset_mm = 0").is_ok());
    }

    #[test]
    fn the_laser_is_placed_in_the_plane_frame() {
        let text = "laser_offset_mm = 100\nlaser_left_mm = -20\nlaser_angle_deg = 90";
        let config = settings(text).unwrap().config;
        let expected = Pose::new(0.1, -0.02, -std::f64::consts::FRAC_PI_2);
        assert_eq!((config.mount, config.track_m), (expected, 0.42));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, error) in [
            ("track_mm = 10", "track_mm: 10 is not within 50 to 5000"),
            (
                "laser = \"roboclaw:0\"",
                "laser: roboclaw:0 is not a hokuyo",
            ),
            (
                "external_pose = \"127.0.0.1:53000\"",
                "--robot-id is required",
            ),
            ("cell_mm = 1", "cell_mm: 1 is not within 5 to 200"),
        ] {
            let all = format!("laser_offset_mm = 100\n{text}");
            assert_eq!(settings(&all).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file: Options = toml::from_str("laser_offset_mm = 100\ntrack_mm = 300").unwrap();
        let flags = Options {
            track_mm: Some(400.0),
            wheels: Some("roboclaw:3".into()),
            ..Options::default()
        };
        let settings = flags.or(file).settings().unwrap();
        assert_eq!((settings.config.track_m, settings.wheels.id.0), (0.4, 3));
    }
}
