//! The driver DriveToPoint: drives from target to target through a map. IO.
//!
//! ```text
//!  clients --targets--> driver --> logic: path, pursuit, collision monitor --speeds--> roboclaw
//!                                    ^
//!     location, hokuyo, roboclaw ----+
//! ```
//!
//! What clients can rely on:
//!
//! - New targets replace the old ones, and the robot starts at once. No targets stop it.
//! - A target is visited when the robot is within its radius, in the order of the list. A target
//!   that the robot cannot reach is skipped: it is not among the visited ones.
//! - The targets end with the client that set them, or with `--any-client-stops` with any client.
//! - The robot stops when it does not know its pose, after a jump of the pose until it is sure again,
//!   and without scans or wheel speeds. `amber events` says why.

use std::fs;
use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::drive_to_point;
use amber_map::Map;
use amber_navigation::drive_to_point::{self as logic, Config};
use amber_navigation::{collision, pursuit};
use amber_proto::{Device, DeviceType};

use self::driver::DriveToPoint;
use self::pilot::ToPoint;
use crate::options::{OptionsError, check};
use crate::robot_options::RobotOptions;

mod driver;
mod pilot;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    #[command(flatten)]
    robot: RobotOptions,
    /// Map in the .roson format; without one the robot drives straight to its targets
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// The pose on the map [default: location:0]
    #[arg(long, value_name = "DEVICE")]
    location: Option<Device>,
    /// The fastest speed of the robot [default: 380]
    #[arg(long, value_name = "MM/S")]
    speed_mm_s: Option<f64>,
    /// Stop when any client leaves, not only the one that set the targets
    #[arg(long)]
    any_client_stops: bool,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// A value or a file is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let speed_mm_s = check(
            "speed_mm_s",
            self.speed_mm_s.unwrap_or(380.0),
            1.0..=2_000.0,
        )?;
        let mut setup = self.robot.setup()?;
        setup.devices.poses = Some((self.location).unwrap_or(Device::new(DeviceType::LOCATION, 0)));
        let otherwise = Config::new(setup.collision.laser);
        let config = Config {
            collision: collision::Config {
                limit_zone_m: otherwise.collision.limit_zone_m,
                stop_ahead_m: otherwise.collision.stop_ahead_m,
                drift_m: otherwise.collision.drift_m,
                ..setup.collision
            },
            pursuit: pursuit::Config {
                max_m_s: speed_mm_s / 1000.0,
                ..otherwise.pursuit
            },
            any_client_stops: self.any_client_stops,
            ..otherwise
        };
        let map = self.map.map(read_map).transpose()?;
        let walls = map.as_ref().map(|(_, map)| map.faces());
        let logic = logic::DriveToPoint::new(config, &walls.unwrap_or_default());
        let logic = logic.map_err(|error| OptionsError::Map {
            path: map.map(|(path, _)| path).unwrap_or_default(),
            problem: error.to_string(),
        })?;
        let pilot = ToPoint::new(logic, speed_mm_s);
        Ok(drive_to_point::driver(DriveToPoint::new(setup, pilot)))
    }
}

fn read_map(path: PathBuf) -> Result<(PathBuf, Map), OptionsError> {
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(OptionsError::Read { path, error }),
    };
    match Map::parse(&text) {
        Ok(map) => Ok((path, map)),
        Err(error) => {
            let problem = error.to_string();
            Err(OptionsError::Map { path, problem })
        }
    }
}
