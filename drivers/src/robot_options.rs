//! The options that describe the robot: its shape, and the devices that a driver uses. IO.
//!
//! The drivers `location`, `collision_avoidance`, `drive_support`, `drive_to_point` and
//! `pid_follow_trajectory` have these options, so one file describes the robot to all of them.

use std::path::PathBuf;
use std::time::Duration;

use amber_map::{Outline, Point, Pose};
use amber_navigation::collision;
use amber_navigation::kinematics::SkidSteer;
use amber_proto::{Device, DeviceType};
use serde::{Deserialize, Deserializer};

use crate::options::{OptionsError, check, read};

/// The robot and its devices. The command line overrides the file; most defaults fit the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RobotOptions {
    /// TOML file with the options of the robot, such as `laser_offset_mm = 120`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub robot: Option<PathBuf>,
    /// The laser scanner [default: hokuyo:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub laser: Option<Device>,
    /// The driver of the wheels [default: roboclaw:0; roboclaw:1 for drive_support]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub wheels: Option<Device>,
    /// The motion sensors, to detect slipping wheels and bumps [default: none]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub imu: Option<Device>,
    /// Use the devices of the mediator at this address instead of the driver's own mediator
    #[arg(long, value_name = "HOST[:PORT]")]
    pub devices_of: Option<String>,
    /// Position of the laser ahead of the centre between the wheels; required
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub laser_offset_mm: Option<f64>,
    /// Position of the laser to the left of the centre [default: 0]
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub laser_left_mm: Option<f64>,
    /// Rotation of the laser to the right, relative to the front of the robot [default: 0]
    #[arg(long, value_name = "DEG", allow_negative_numbers = true)]
    pub laser_angle_deg: Option<f64>,
    /// Time of one turn of the laser [default: 100]
    #[arg(long, value_name = "MS")]
    pub scan_turn_ms: Option<f64>,
    /// The length of the robot [default: 370]
    #[arg(long, value_name = "MM")]
    pub length_mm: Option<f64>,
    /// The width of the robot [default: 330]
    #[arg(long, value_name = "MM")]
    pub width_mm: Option<f64>,
    /// Effective distance between left and right wheels in turns; larger than the real one if the
    /// wheels skid [default: 420]
    #[arg(long, value_name = "MM")]
    pub track_mm: Option<f64>,
    /// Drive backwards only into areas that the laser has seen or where the robot has been
    #[arg(long)]
    pub look_before_reversing: bool,
    /// Maximum speed of a wheel [default: 1200]
    #[arg(long, value_name = "MM/S")]
    pub max_speed_mm_s: Option<f64>,
}

/// The laser scanner, unless the options name another one.
pub(crate) const LASER: Device = Device::new(DeviceType::HOKUYO, 0);

fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Device>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The checked options.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The devices to use.
    pub devices: Devices,
    /// The mediator of these devices, if it is not the driver's own mediator.
    pub devices_of: Option<String>,
    /// The time of one turn of the laser.
    pub scan_turn: Duration,
    /// The configuration of the collision monitor.
    pub collision: collision::Config,
}

/// The devices that a driver uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The laser scanner.
    pub laser: Option<Device>,
    /// The wheels.
    pub wheels: Device,
    /// The motion sensors.
    pub imu: Option<Device>,
    /// The pose on the map.
    pub poses: Option<Device>,
}

impl RobotOptions {
    /// Reads the file and checks all values.
    ///
    /// # Errors
    /// The file is invalid, or a value.
    pub fn setup(self) -> Result<Setup, OptionsError> {
        self.with_wheels(Device::new(DeviceType::ROBOCLAW, 0))
    }

    /// The same with other wheels than `roboclaw:0`, unless the options name some.
    ///
    /// # Errors
    /// The file is invalid, or a value.
    pub fn with_wheels(self, wheels: Device) -> Result<Setup, OptionsError> {
        let file: Self = read(self.robot.as_deref())?;
        let millimetres =
            |name, value: Option<f64>, otherwise: f64, range| -> Result<f64, OptionsError> {
                Ok(check(name, value.unwrap_or(otherwise), range)? / 1000.0)
            };
        let Some(laser_offset_mm) = self.laser_offset_mm.or(file.laser_offset_mm) else {
            return Err(OptionsError::Missing {
                name: "--laser-offset-mm",
                hint: "measure how far the laser is ahead of the centre between the wheels; 0 if \
                       it is above the centre",
            });
        };
        let offset = -2_000.0..=2_000.0;
        let laser_x_m = millimetres(
            "laser_offset_mm",
            Some(laser_offset_mm),
            0.0,
            offset.clone(),
        )?;
        let laser_left_mm = self.laser_left_mm.or(file.laser_left_mm);
        let laser_y_m = millimetres("laser_left_mm", laser_left_mm, 0.0, offset)?;
        let angle_deg = self.laser_angle_deg.or(file.laser_angle_deg).unwrap_or(0.0);
        let angle_deg = check("laser_angle_deg", angle_deg, -180.0..=180.0)?;
        let turn_ms = self.scan_turn_ms.or(file.scan_turn_ms).unwrap_or(100.0);
        let turn_ms = check("scan_turn_ms", turn_ms, 1.0..=1_000.0)?;
        let size = 50.0..=5_000.0;
        let length_mm = self.length_mm.or(file.length_mm);
        let length_m = millimetres("length_mm", length_mm, 370.0, size.clone())?;
        let width_mm = self.width_mm.or(file.width_mm);
        let width_m = millimetres("width_mm", width_mm, 330.0, size.clone())?;
        let track_mm = self.track_mm.or(file.track_mm);
        let track_m = millimetres("track_mm", track_mm, 420.0, size)?;
        let max_mm_s = self.max_speed_mm_s.or(file.max_speed_mm_s);
        let max_wheel_m_s = millimetres("max_speed_mm_s", max_mm_s, 1_200.0, 1.0..=10_000.0)?;
        let laser = Pose {
            at: Point::new(laser_x_m, laser_y_m),
            heading: -angle_deg.to_radians(),
        };
        let scanner = self.laser.or(file.laser).unwrap_or(LASER);
        let wheels = self.wheels.or(file.wheels).unwrap_or(wheels);
        let imu = self.imu.or(file.imu);
        // CollisionAvoidance also accepts the messages of RoboClaw.
        let are_wheels = [DeviceType::ROBOCLAW, DeviceType::COLLISION_AVOIDANCE];
        Ok(Setup {
            devices: Devices {
                laser: Some(of_type("laser", scanner, &[DeviceType::HOKUYO])?),
                wheels: of_type("wheels", wheels, &are_wheels)?,
                imu: imu
                    .map(|imu| of_type("imu", imu, &[DeviceType::NINEDOF]))
                    .transpose()?,
                poses: None,
            },
            devices_of: self.devices_of.or(file.devices_of),
            scan_turn: Duration::from_secs_f64(turn_ms / 1000.0),
            collision: collision::Config {
                drive: SkidSteer {
                    track_m,
                    max_wheel_m_s,
                },
                outline: Outline {
                    half_length_m: length_m / 2.0,
                    half_width_m: width_m / 2.0,
                },
                reverses_blindly: !(self.look_before_reversing || file.look_before_reversing),
                ..collision::Config::new(laser)
            },
        })
    }
}

/// A device if it has one of these types.
fn of_type(
    name: &'static str,
    device: Device,
    types: &[DeviceType],
) -> Result<Device, OptionsError> {
    if types.contains(&device.device_type) {
        return Ok(device);
    }
    let problem = format!("{device} is not a {}", types[0]);
    Err(OptionsError::Value { name, problem })
}

#[cfg(test)]
impl RobotOptions {
    /// The defaults, with a laser at the centre of the robot.
    pub(crate) fn with_central_laser() -> Self {
        Self {
            laser_offset_mm: Some(0.0),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(text: &str) -> Result<Setup, OptionsError> {
        toml::from_str::<RobotOptions>(text).unwrap().setup()
    }

    #[test]
    fn the_offset_of_the_laser_is_required_and_has_no_default() {
        let error = RobotOptions::default().setup().unwrap_err();
        assert_eq!(error.to_string(), "--laser-offset-mm is required");
        assert!(error.hint().unwrap().contains("measure"));
        assert!(setup("laser_offset_mm = 0").is_ok());
    }

    #[test]
    fn the_laser_is_placed_in_the_plane_frame() {
        let text = "laser_offset_mm = 100\nlaser_left_mm = -20\nlaser_angle_deg = 90";
        let config = setup(text).unwrap().collision;
        let expected = Pose::new(0.1, -0.02, -std::f64::consts::FRAC_PI_2);
        assert_eq!((config.laser, config.drive.track_m), (expected, 0.42));
    }

    #[test]
    fn devices_of_other_types_are_refused() {
        for (text, error) in [
            (
                "laser = \"roboclaw:0\"",
                "laser: roboclaw:0 is not a hokuyo",
            ),
            (
                "wheels = \"hokuyo:0\"",
                "wheels: hokuyo:0 is not a roboclaw",
            ),
            ("imu = \"hokuyo:0\"", "imu: hokuyo:0 is not a ninedof"),
        ] {
            let found = setup(&format!("laser_offset_mm = 0\n{text}")).unwrap_err();
            assert_eq!(found.to_string(), error);
        }
        setup("laser_offset_mm = 0\nwheels = \"collision-avoidance:0\"").unwrap();
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("robot.toml");
        let text = "laser_offset_mm = 120\ntrack_mm = 400\nwheels = \"roboclaw:1\"\n";
        std::fs::write(&file, text).unwrap();
        let options = RobotOptions {
            robot: Some(file.clone()),
            track_mm: Some(380.0),
            ..RobotOptions::default()
        };
        let setup = options.setup().unwrap();
        assert_eq!(setup.collision.laser, Pose::new(0.12, 0.0, 0.0));
        assert!((setup.collision.drive.track_m - 0.38).abs() < 1e-9);
        assert_eq!(setup.devices.wheels, Device::new(DeviceType::ROBOCLAW, 1));
        assert_eq!(
            setup.devices.laser,
            Some(Device::new(DeviceType::HOKUYO, 0))
        );
        std::fs::write(&file, "laser_ofset_mm = 1\n").unwrap();
        let options = RobotOptions {
            robot: Some(file),
            ..RobotOptions::default()
        };
        let error = options.setup().unwrap_err();
        assert_eq!(error.hint(), Some("did you mean `laser_offset_mm`?"));
    }

    #[test]
    fn ranges_are_checked() {
        let options = RobotOptions {
            laser_offset_mm: Some(0.0),
            track_mm: Some(0.42),
            ..RobotOptions::default()
        };
        let error = options.setup().unwrap_err().to_string();
        assert_eq!(error, "track_mm: 0.42 is not within 50 to 5000");
    }
}
