//! The options that describe the robot: its shape, and the devices that a driver uses. IO.
//!
//! The drivers `location`, `collision_avoidance`, `drive_support`, `drive_to_point` and
//! `pid_follow_trajectory` have these options. What the options do not say, the robot device does
//! (`described`).

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::now;
use amber_navigation::{collision, geometry, scan};
use amber_proto::hokuyo::Scanner;
use amber_proto::{Device, DeviceType};

use crate::options::OptionsError;
use crate::robot_file::RobotFile;
use crate::scanner::sectors::Sectors;
use crate::sim_clock::DriverClock;
pub use crate::sim_clock::SimClockOption;

/// The robot and its devices. The command line overrides the file, and the file what the robot
/// device says; most defaults fit the Capo robot.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RobotOptions {
    /// TOML file with the options of the robot, such as `laser_offset_mm = 120`
    #[arg(long, value_name = "FILE")]
    pub robot: Option<PathBuf>,
    /// Robot device to ask for the shape if the position of the laser is not given here [default:
    /// robot:0]
    #[arg(long, value_name = "DEVICE")]
    pub shape_of: Option<Device>,
    /// The laser scanner [default: hokuyo:0]
    #[arg(long, value_name = "DEVICE")]
    pub laser: Option<Device>,
    /// The driver of the wheels [default: roboclaw:0; roboclaw:1 for drive_support]
    #[arg(long, value_name = "DEVICE")]
    pub wheels: Option<Device>,
    /// The motion sensors, to detect slipping wheels, bumps and swapped wheels [default: none]
    #[arg(long, value_name = "DEVICE")]
    pub imu: Option<Device>,
    /// The bumper: what it touches stops the robot [default: none]
    #[arg(long, value_name = "DEVICE")]
    pub bumper: Option<Device>,
    /// Use the devices of the mediator at this address instead of the driver's own mediator
    #[arg(long, value_name = "HOST[:PORT]")]
    pub devices_of: Option<String>,
    /// Position of the laser ahead of the centre between the wheels [default: as the robot device
    /// says]
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub laser_offset_mm: Option<f64>,
    /// Position of the laser to the left of the centre [default: 0]
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    pub laser_left_mm: Option<f64>,
    /// Rotation of the laser to the right, relative to the front of the robot [default: 0]
    #[arg(long, value_name = "DEG", allow_negative_numbers = true)]
    pub laser_angle_deg: Option<f64>,
    /// The laser is mounted upside down
    #[arg(long)]
    pub laser_mirrored: bool,
    /// Time of one turn of the laser, if the scanner does not say it [default: 100]
    #[arg(long, value_name = "MS")]
    pub scan_turn_ms: Option<f64>,
    /// Time from the end of a scan to its timestamp [default: 0]
    #[arg(long, value_name = "MS")]
    pub scan_delay_ms: Option<f64>,
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
    /// Drive also where the laser has never seen anything: the rooms are larger than its range
    #[arg(long)]
    pub large_rooms: bool,
    /// Maximum speed of a wheel [default: 1200]
    #[arg(long, value_name = "MM/S")]
    pub max_speed_mm_s: Option<f64>,
    #[command(flatten)]
    pub clock: SimClockOption,
}

/// The laser scanner, unless the options name another one.
pub(crate) const LASER: Device = Device::new(DeviceType::HOKUYO, 0);
/// The robot device, unless the options name another one.
pub(crate) const ROBOT: Device = Device::new(DeviceType::ROBOT, 0);

/// The checked options.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The devices to use.
    pub devices: Devices,
    /// The mediator of these devices, if it is not the driver's own mediator.
    pub devices_of: Option<String>,
    /// How the laser measures.
    pub scanner: scan::Laser,
    /// The configuration of the collision monitor.
    pub collision: collision::Config,
    /// The sectors in which the laser sees parts of the robot.
    pub masked: Sectors,
    /// The clock of a simulated robot.
    pub clock: SimClockOption,
}

impl Setup {
    /// A clock that starts now. Without the one of the simulation if that cannot be read.
    pub(crate) fn start_clock(&self) -> DriverClock {
        let simulated = self.clock.open().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        DriverClock::new(now(), simulated)
    }

    /// How the laser measures, with what it says of itself.
    pub(crate) fn scanner_as_described(&self, told: &Scanner) -> scan::Laser {
        let turn_us = told.turn_time.filter(|us| *us > 0);
        let turn = turn_us.map(|us| Duration::from_micros(us.into()));
        scan::Laser {
            turn: turn.unwrap_or(self.scanner.turn),
            turns_right: told.turns_right(),
            ..self.scanner
        }
    }

    /// What the check of the geometry compares measurements with.
    pub(crate) fn geometry(&self, max_range_m: f64) -> geometry::Config {
        geometry::Config {
            is_mirrored: self.scanner.is_mirrored,
            track_m: self.collision.drive.track_m,
            scan_delay: self.scanner.delay,
            outline: self.collision.outline,
            masked_deg: self.masked.right_deg().to_vec(),
            max_range_m,
            ..geometry::Config::new(self.collision.laser)
        }
    }
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
    /// What the robot feels.
    pub bumper: Option<Device>,
    /// The pose on the map.
    pub poses: Option<Device>,
}

/// What the options of a driver say about the robot, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    values: RobotFile,
    clock: SimClockOption,
    usual_wheels: Device,
    /// Whether other wheels than those of the robot are meant.
    keeps_usual_wheels: bool,
    shape_of: Device,
}

impl RobotOptions {
    /// Reads the file and checks all values.
    ///
    /// # Errors
    /// The file is invalid, or a value.
    pub fn stated(self) -> Result<Stated, OptionsError> {
        self.read(Device::new(DeviceType::ROBOCLAW, 0), false)
    }

    /// The same for a driver that serves the wheels of the robot to others, and itself drives these
    /// unless the options name some.
    ///
    /// # Errors
    /// The file is invalid, or a value.
    pub fn stated_behind(self, wheels: Device) -> Result<Stated, OptionsError> {
        self.read(wheels, true)
    }

    fn read(self, usual_wheels: Device, keeps_usual_wheels: bool) -> Result<Stated, OptionsError> {
        let file = RobotFile::read(self.robot.as_deref())?;
        let shape_of = self.shape_of.unwrap_or(ROBOT);
        if shape_of.device_type != DeviceType::ROBOT {
            let problem = format!("{shape_of} is not a robot");
            let name = "shape_of";
            return Err(OptionsError::Value { name, problem });
        }
        let clock = self.clock.clone();
        clock.open()?;
        let values = self.values().over(file);
        values.shape()?;
        Ok(Stated {
            values,
            clock,
            usual_wheels,
            keeps_usual_wheels,
            shape_of,
        })
    }

    /// The values of the command line.
    fn values(self) -> RobotFile {
        RobotFile {
            laser: self.laser,
            wheels: self.wheels,
            imu: self.imu,
            bumper: self.bumper,
            devices_of: self.devices_of,
            laser_offset_mm: self.laser_offset_mm,
            laser_left_mm: self.laser_left_mm,
            laser_angle_deg: self.laser_angle_deg,
            laser_mirrored: self.laser_mirrored.then_some(true),
            scan_turn_ms: self.scan_turn_ms,
            scan_delay_ms: self.scan_delay_ms,
            length_mm: self.length_mm,
            width_mm: self.width_mm,
            track_mm: self.track_mm,
            look_before_reversing: self.look_before_reversing.then_some(true),
            large_rooms: self.large_rooms.then_some(true),
            max_speed_mm_s: self.max_speed_mm_s,
            ..RobotFile::default()
        }
    }
}

impl Stated {
    /// The robot device that knows the rest.
    pub(crate) fn shape_of(&self) -> Device {
        self.shape_of
    }

    /// The mediator of the devices, if it is not the driver's own mediator.
    pub(crate) fn devices_of(&self) -> Option<&str> {
        self.values.devices_of.as_deref()
    }

    /// The setup, if the options say where the laser is.
    ///
    /// # Errors
    /// They do not.
    pub fn setup(&self) -> Result<Setup, OptionsError> {
        let setup = self.values.setup(self.usual_wheels)?;
        Ok(self.with_clock(setup))
    }

    /// The setup with what a robot device says.
    ///
    /// # Errors
    /// A value is invalid, or the position of the laser is missing.
    pub(crate) fn setup_with(&self, mut asked: RobotFile) -> Result<Setup, OptionsError> {
        if self.keeps_usual_wheels {
            asked.wheels = None;
        }
        let setup = self.values.clone().over(asked).setup(self.usual_wheels)?;
        Ok(self.with_clock(setup))
    }

    fn with_clock(&self, setup: Setup) -> Setup {
        let clock = self.clock.clone();
        Setup { clock, ..setup }
    }
}

#[cfg(test)]
impl RobotOptions {
    /// The setup for options that say where the laser is.
    pub(crate) fn setup(self) -> Result<Setup, OptionsError> {
        self.stated()?.setup()
    }

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

    use amber_map::Pose;

    fn setup(text: &str) -> Result<Setup, OptionsError> {
        let file: RobotFile = toml::from_str(text).unwrap();
        file.setup(Device::new(DeviceType::ROBOCLAW, 0))
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
    fn the_scanner_itself_knows_its_turns_best() {
        let ms = Duration::from_millis;
        let setup = setup("laser_offset_mm = 0\nscan_turn_ms = 25\nscan_delay_ms = 7").unwrap();
        let silent = setup.scanner_as_described(&Scanner::default());
        assert_eq!(silent, setup.scanner);
        assert_eq!((silent.turn, silent.turns_right), (ms(25), false));
        let told = Scanner {
            turn_time: Some(166_667),
            turns_right: Some(true),
            ..Scanner::default()
        };
        let told = setup.scanner_as_described(&told);
        assert_eq!(told.turn, Duration::from_micros(166_667));
        assert_eq!((told.turns_right, told.delay), (true, ms(7)));
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
            ("bumper = \"imu:0\"", "bumper: ninedof:0 is not a bumper"),
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
