//! Driver that makes a map while the robot drives, and explores. IO.
//!
//! ```text
//!   hokuyo ---> WheelTask: the task that --inputs--> MapPilot --> mapper: two threads --> reports
//!   roboclaw -> owns the wheels <----speeds---   explores                              |
//!                                                  |                                   v
//!   clients --start, stop, explore, save--> driver +--> board ------> progress, tiles, files
//! ```
//!
//! The task of the robot has a thread of its own, so that planning delays no answer to a client.
//!
//! While no map grows, the driver asks no other device for anything.
//!
//! Guarantees for clients:
//!
//! - A map grows until it is stopped, or until its client is gone if it was started so. A stopped map
//!   can be saved until the next one begins.
//! - The exploration ends with its client. The wheels stop without scans or wheel speeds, and all
//!   speeds pass the collision monitor.
//! - Saving does not disturb the growing map. Files are replaced as a whole.
//! - All messages but an uploaded map are short enough for one packet of a network.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::mapping::{self, StartMap};
use amber_map::{Outline, Pose};
use amber_navigation::{collision, drive_to_point, geometry, planner, pursuit, slam};
use amber_proto::{Device, DeviceType};

use self::driver::MapDriver;
use self::files::Folder;
pub use self::log_map::{LogMap, LoggedMap};
use crate::options::{OptionsError, check};
use crate::robot_options::{RobotOptions, Setup, Stated};

mod answer;
mod board;
mod driver;
mod files;
mod log_map;
mod mapper;
mod pilot;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
// The robot avoids unknown places anyway, and the motion sensors are not used.
#[command(
    mut_arg("look_before_reversing", |arg| arg.hide(true)),
    mut_arg("imu", |arg| arg.hide(true)),
)]
pub struct Options {
    #[command(flatten)]
    robot: RobotOptions,
    /// Folder for maps that clients save by name; without one, they cannot
    #[arg(long, value_name = "FOLDER")]
    maps: Option<PathBuf>,
    /// The location driver that gets maps [default: location:0]
    #[arg(long, value_name = "DEVICE")]
    location: Option<Device>,
    /// Ignore longer distances in scans [default: 5600]
    #[arg(long, value_name = "MM")]
    max_range_mm: Option<f64>,
    /// Maximum speed while exploring [default: 300]
    #[arg(long, value_name = "MM/S")]
    speed_mm_s: Option<f64>,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// A value, a file or a folder is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let location = (self.location).unwrap_or(Device::new(DeviceType::LOCATION, 0));
        let folder = self.maps.clone().map(Folder::new).transpose()?;
        // Errors show at the start, and not with the first map.
        let settings = Settings(self);
        settings.wanted(&StartMap::default())?;
        Ok(mapping::driver(MapDriver::new(settings, folder, location)))
    }
}

/// The options for all maps.
#[derive(Clone, Debug)]
struct Settings(Options);

/// The settings of one map, before the robot is known.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    robot: Stated,
    max_range_m: f64,
    speed_m_s: f64,
}

/// The settings of one map.
#[derive(Clone, Debug, PartialEq)]
struct Course {
    setup: Setup,
    slam: slam::Config,
    speed_m_s: f64,
}

impl Settings {
    /// What a map takes: the settings of the driver, unless the client has others.
    fn wanted(&self, start: &StartMap) -> Result<Wanted, OptionsError> {
        let Self(options) = self;
        let defaults = &options.robot;
        let device = |name, text: &Option<String>, default: Option<Device>| match text {
            Some(text) => text
                .parse::<Device>()
                .map(Some)
                .map_err(|error| OptionsError::Value {
                    name,
                    problem: format!("{error}"),
                }),
            None => Ok(default),
        };
        let robot = RobotOptions {
            laser: device("laser", &start.laser, defaults.laser)?,
            wheels: device("wheels", &start.wheels, defaults.wheels)?,
            laser_offset_mm: start.laser_offset.or(defaults.laser_offset_mm),
            laser_left_mm: start.laser_left.or(defaults.laser_left_mm),
            laser_angle_deg: start.laser_angle.or(defaults.laser_angle_deg),
            track_mm: start.track.or(defaults.track_mm),
            laser_mirrored: start.laser_mirrored.unwrap_or(defaults.laser_mirrored),
            scan_turn_ms: start.scan_turn.or(defaults.scan_turn_ms),
            scan_delay_ms: start.scan_delay.or(defaults.scan_delay_ms),
            length_mm: start.length.or(defaults.length_mm),
            width_mm: start.width.or(defaults.width_mm),
            ..defaults.clone()
        };
        let value = |name, client: Option<f64>, own: Option<f64>, otherwise, range| {
            check(name, client.or(own).unwrap_or(otherwise), range)
        };
        let max_range_mm = value(
            "max_range_mm",
            start.max_range,
            options.max_range_mm,
            5_600.0,
            500.0..=60_000.0,
        )?;
        Ok(Wanted {
            robot: robot.stated()?,
            max_range_m: max_range_mm / 1000.0,
            speed_m_s: speed_m_s(options.speed_mm_s)?,
        })
    }
}

impl Wanted {
    /// The settings of the map on this robot.
    fn course(&self, mut setup: Setup) -> Course {
        setup.devices.imu = None;
        Course {
            slam: slam::Config {
                track_m: setup.collision.drive.track_m,
                max_range_m: self.max_range_m,
                ..slam::Config::new(setup.collision.laser)
            },
            speed_m_s: self.speed_m_s,
            setup,
        }
    }
}

/// The maximum speed while exploring.
fn speed_m_s(speed_mm_s: Option<f64>) -> Result<f64, OptionsError> {
    let speed_mm_s = check("speed_mm_s", speed_mm_s.unwrap_or(300.0), 50.0..=1_000.0)?;
    Ok(speed_mm_s / 1000.0)
}

impl Course {
    /// What measurements are compared with.
    fn geometry(&self) -> geometry::Config {
        self.setup.geometry(self.slam.max_range_m)
    }

    /// The position of the laser on the robot.
    fn mount(&self) -> Pose {
        self.setup.collision.laser
    }

    /// How the robot explores.
    fn driving(&self, speed_m_s: f64) -> drive_to_point::Config {
        let usual = drive_to_point::Config::new(self.mount());
        let outline: Outline = self.setup.collision.outline;
        // The same margin on both sides of a robot of any width.
        let margin_m = usual.planner.clearance_m - usual.collision.outline.half_width_m;
        drive_to_point::Config {
            collision: collision::Config {
                drive: self.setup.collision.drive,
                outline,
                large_rooms: self.setup.collision.large_rooms,
                has_bumper: self.setup.collision.has_bumper,
                ..usual.collision
            },
            planner: planner::Config {
                clearance_m: outline.half_width_m + margin_m,
                ..usual.planner
            },
            pursuit: pursuit::Config {
                max_m_s: speed_m_s,
                ..usual.pursuit
            },
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn course(start: &StartMap) -> Result<Course, OptionsError> {
        let options = Options {
            robot: RobotOptions {
                laser_offset_mm: Some(120.0),
                width_mm: Some(500.0),
                ..RobotOptions::default()
            },
            max_range_mm: Some(4_000.0),
            ..Options::default()
        };
        let wanted = Settings(options).wanted(start)?;
        Ok(wanted.course(wanted.robot.setup()?))
    }

    #[test]
    fn a_client_overrides_the_settings_of_the_driver_for_its_map() {
        let own = course(&StartMap::default()).unwrap();
        assert_eq!(own.mount(), Pose::new(0.12, 0.0, 0.0));
        assert_eq!((own.slam.max_range_m, own.slam.track_m), (4.0, 0.42));
        let clearance_m = own.driving(0.2).planner.clearance_m;
        assert!((clearance_m - 0.285).abs() < 1e-9, "{clearance_m}");
        let start = StartMap {
            laser: Some("hokuyo:1".into()),
            laser_offset: Some(-50.0),
            track: Some(400.0),
            scan_delay: Some(20.0),
            ..StartMap::default()
        };
        let other = course(&start).unwrap();
        assert_eq!(other.mount(), Pose::new(-0.05, 0.0, 0.0));
        assert_eq!(other.slam.track_m, 0.4);
        assert_eq!(other.setup.scanner.delay, Duration::from_millis(20));
        let laser = Device::new(DeviceType::HOKUYO, 1);
        assert_eq!(other.setup.devices.laser, Some(laser));
    }

    #[test]
    fn invalid_settings_of_a_client_are_named() {
        for (start, error) in [
            (
                StartMap {
                    max_range: Some(1.0),
                    ..StartMap::default()
                },
                "max_range_mm: 1 is not within 500 to 60000",
            ),
            (
                StartMap {
                    wheels: Some("hokuyo:0".into()),
                    ..StartMap::default()
                },
                "wheels: hokuyo:0 is not a roboclaw",
            ),
            (
                StartMap {
                    laser: Some("spoon".into()),
                    ..StartMap::default()
                },
                "laser: unknown device type 'spoon'",
            ),
        ] {
            assert_eq!(course(&start).unwrap_err().to_string(), error);
        }
    }
}
