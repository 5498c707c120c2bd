//! Driver that computes the pose of the robot on its map from the scans of a Hokuyo and the wheel
//! speeds of a Roboclaw. IO.
//!
//! ```text
//!   hokuyo ---> sources --+                        +--> answers, immediately
//!   roboclaw -> sources --+--> engine: a thread ---+--> subscribers
//!   map file, upload -----+    with the filter     +--> health
//! ```
//!
//! `tracker` and `answer` are pure: the filter and the messages. `engine` is the thread in which
//! the filter works, `maps` reads and replaces the map file, `external` receives poses from other
//! systems, `by_markers` those of markers in pictures, and `driver` joins them.
//!
//! Guarantees for clients:
//!
//! - An answer never waits for the filter. It is the pose in the middle of the last scan, with that
//!   time; all values are 0 before the first estimate.
//! - The quality `p` is the part of the particles, by weight, that agrees with the pose, times the
//!   part of the scan that the map explains (80 % count as all). It is below 0.3 while the pose is
//!   unknown, and above 0.9 while it is reliable. It falls while scans or wheel speeds are missing:
//!   after 0.5 s, down to 0 after 2 s without scans and to a half without wheel speeds.
//! - Subscribers get the pose after each update, at most ten times per second.
//! - An uploaded map replaces the file of `--map`. An invalid one is rejected; the old map stays.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use amber_driver::devices::location;
use amber_driver::{Device, Driver};
use amber_navigation::location::Config;
use amber_proto::DeviceType;
use serde::Deserialize;

use self::driver::LocationDriver;
use self::external::External;
use crate::options::{OptionsError, check, layered, read};
use crate::robot_file::RobotFile;
use crate::robot_options::{LASER, RobotOptions, Setup, Stated};

mod answer;
mod by_markers;
mod driver;
mod engine;
mod external;
mod maps;
mod tracker;

/// Options of the driver. The command line overrides the files.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
// The file of the robot contains them for other drivers. They have no effect here.
#[command(
    mut_arg("length_mm", |arg| arg.hide(true)),
    mut_arg("width_mm", |arg| arg.hide(true)),
    mut_arg("max_speed_mm_s", |arg| arg.hide(true)),
    mut_arg("look_before_reversing", |arg| arg.hide(true)),
)]
pub struct Options {
    #[command(flatten)]
    #[serde(skip)]
    robot: RobotOptions,
    /// TOML file with the options below, such as `cell_mm = 50`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Map: a .roson file, or the YAML file of a map of ROS map_server
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// The same key as in the file of the robot, for files that are older than that one.
    #[arg(skip)]
    pub scan_delay_ms: Option<f64>,
    /// Ignore longer distances in scans [default: 5600]
    #[arg(long, value_name = "MM")]
    pub max_range_mm: Option<f64>,
    /// Cell size of the grid with the distances to walls [default: 20]
    #[arg(long, value_name = "MM")]
    pub cell_mm: Option<f64>,
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
    /// Take the poses of this device, such as markers:0, which finds markers in the pictures of a camera;
    /// the camera is then always on
    #[arg(long, value_name = "DEVICE")]
    pub markers: Option<String>,
    /// Seed of the filter's randomness, for tests [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// Checked options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub map: Option<PathBuf>,
    pub config: Config,
    pub robot: Setup,
    pub external: Option<External>,
    /// What finds markers.
    pub markers: Option<Device>,
}

impl Settings {
    /// Uses this robot.
    fn set_robot(&mut self, robot: Setup) {
        self.config.mount = robot.collision.laser;
        self.config.track_m = robot.collision.drive.track_m;
        self.config.large_rooms = robot.collision.large_rooms;
        self.robot = robot;
    }

    /// The laser scanner.
    fn laser(&self) -> Device {
        self.robot.devices.laser.unwrap_or(LASER)
    }
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let (stated, settings) = self.or(file).settings()?;
        Ok(location::driver(LocationDriver::new(stated, settings)))
    }

    /// What these options say of the robot, and the settings for that. If they do not say where the
    /// laser is, it is at the centre there. Ignores `config`.
    fn settings(self) -> Result<(Stated, Settings), OptionsError> {
        let robot = RobotOptions {
            scan_delay_ms: self.robot.scan_delay_ms.or(self.scan_delay_ms),
            ..self.robot
        };
        let stated = robot.stated()?;
        let robot = stated.setup_with(RobotFile {
            laser_offset_mm: Some(0.0),
            ..RobotFile::default()
        })?;
        let m = |name, value: Option<f64>, default_mm, range_mm| {
            check(name, value.unwrap_or(default_mm), range_mm).map(|mm| mm / 1000.0)
        };
        let mut config = Config::new(robot.collision.laser);
        config.max_range_m = m("max_range_mm", self.max_range_mm, 5_600.0, 500.0..=60_000.0)?;
        config.cell_m = m("cell_mm", self.cell_mm, 20.0, 5.0..=200.0)?;
        config.seed = self.seed.unwrap_or(config.seed);
        let external = match (self.external_pose, self.robot_id) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(OptionsError::Missing {
                    name: "--robot-id",
                    hint: "it selects the poses of this robot: use the number of its marker",
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
        let markers = (self.markers.as_deref().map(markers_device)).transpose()?;
        let mut settings = Settings {
            map: self.map,
            markers,
            robot: robot.clone(),
            external,
            config,
        };
        settings.set_robot(robot);
        Ok((stated, settings))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: map scan_delay_ms max_range_mm cell_mm external_pose robot_id
            external_from external_sigma_mm external_sigma_deg markers seed; .. robot)
    }
}

fn markers_device(text: &str) -> Result<Device, OptionsError> {
    let invalid = |problem| OptionsError::Value {
        name: "markers",
        problem,
    };
    let device: Device = text.parse().map_err(|error| invalid(format!("{error}")))?;
    match device.device_type == DeviceType::MARKERS {
        true => Ok(device),
        false => Err(invalid(format!("{device} finds no markers: use markers:0"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, OptionsError> {
        let options = Options {
            robot: RobotOptions::with_central_laser(),
            ..toml::from_str(text).unwrap()
        };
        Ok(options.settings()?.1)
    }

    #[test]
    fn the_robot_is_that_of_the_other_drivers() {
        let options = Options {
            robot: RobotOptions {
                laser_offset_mm: Some(100.0),
                track_mm: Some(400.0),
                ..RobotOptions::default()
            },
            ..Options::default()
        };
        let config = options.settings().unwrap().1.config;
        assert_eq!(config.mount, amber_map::Pose::new(0.1, 0.0, 0.0));
        assert_eq!(config.track_m, 0.4);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, error) in [
            (
                "external_pose = \"127.0.0.1:53000\"",
                "--robot-id is required",
            ),
            ("cell_mm = 1", "cell_mm: 1 is not within 5 to 200"),
            (
                "markers = \"camera:0\"",
                "markers: camera:0 finds no markers: use markers:0",
            ),
        ] {
            assert_eq!(settings(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file: Options = toml::from_str("cell_mm = 50\nseed = 2").unwrap();
        let flags = Options {
            robot: RobotOptions::with_central_laser(),
            seed: Some(3),
            ..Options::default()
        };
        let config = flags.or(file).settings().unwrap().1.config;
        assert_eq!((config.cell_m, config.seed), (0.05, 3));
    }
}
