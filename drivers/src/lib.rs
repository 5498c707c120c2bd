//! The drivers included in Amber, each run as `amber driver <name>` in its own process.
//!
//! A new driver is a module with an `Options` struct, and one entry in `built_in!` whose doc
//! comment is its line in the list.
//!
//! Hardware drivers share `connection` (the connection to a device), `outage` (when to retry a
//! device and what to log), `device_task` (the one task that owns the device), `stream` (a device at a byte
//! stream, in that task), `options` (a TOML file that the command line overrides) and [`probe`] (what
//! recognizes their devices). Laser scanners share `scanner`, motion sensors `motion_sensor`, wheels
//! `wheels`, hobby servos `servos`, servos on a bus `bus_servos`, drivers of the battery `gauge`, and boards
//! with pins `board`. Chips on an I2C bus share `i2c`.
//! Drivers that move the robot by other drivers share `moving`; an [`arm`] uses its lease.
//!
//! Drivers that use other devices share `robot_options` (the shape of the robot, and its devices),
//! `robot_file` (the same in a file), `described` (the robot device says the rest),
//! [`amber_driver::client::sources`] (scans and wheel speeds) and `replace` (files that are replaced
//! as a whole).
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it uses no sockets,
//! files, clocks or tasks, and gets the time as an argument. IO code uses them.

use std::process::ExitCode;

use amber_driver::client::sources;
use clap::Subcommand;

use self::options::{OptionsError, rejected};

pub mod arm;
pub mod base_wheels;
pub mod battery;
pub mod bno055;
pub mod board;
pub mod bus_servos;
pub mod camera;
pub mod collision_avoidance;
pub mod connection;
pub mod create2;
mod described;
mod device_task;
pub mod diffdrive;
pub mod drive_support;
pub mod drive_to_point;
pub mod dummy;
pub mod dynamixel;
pub mod feetech;
pub mod firmata;
mod followed;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod gamepad;
pub mod gauge;
mod geometry_log;
pub mod gps;
pub mod hokuyo;
pub mod i2c;
pub mod icm20948;
pub mod ina2xx;
pub mod ldrobot;
pub mod location;
pub mod lsm6dsox;
pub mod maestro;
pub mod mapping;
pub mod markers;
pub mod motion_sensor;
mod moving;
pub mod mpu;
pub mod ninedof;
pub mod odrive;
pub mod omni_base;
pub mod options;
mod outage;
pub mod pca9685;
pub mod pid_follow_trajectory;
pub mod presence;
pub mod probe;
mod replace;
pub mod roboclaw;
pub mod robot;
mod robot_file;
pub mod robot_options;
pub mod rplidar;
pub mod scanner;
pub mod servos;
mod sim_clock;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod stargazer;
mod stream;
pub mod teleop;
#[cfg(test)]
mod testing;
pub mod vesc;
pub mod wheels;
pub mod ydlidar;

/// Defines [`BuiltIn`] from the line of each driver in the list, its name, and its module, which has
/// a struct `Options`. `+ fuzz` says that the module has fuzz targets, and `=> devices` that the options
/// make the drivers of several devices, too, which one process then serves.
macro_rules! built_in {
    ($($(#[$about:meta])* $name:ident: $module:ident $(+ $fuzz:ident)? $(=> $devices:ident)?,)*) => {
        /// A built-in driver and its options.
        #[derive(Clone, Debug, Subcommand)]
        #[command(rename_all = "snake_case")]
        pub enum BuiltIn {
            $($(#[$about])* $name(Box<$module::Options>),)*
        }

        impl BuiltIn {
            /// Serves on stdin and stdout until stdin ends.
            pub fn run(self) -> ExitCode {
                let named = amber_driver::named_devices();
                match self {
                    $($(Self::$name(options) if named.len() > 1 => {
                        serve(options.$devices(&named), amber_driver::serve_many)
                    })?)*
                    $(Self::$name(options) => serve(options.driver(), amber_driver::serve),)*
                }
            }
        }

        /// The fuzz targets of the drivers.
        #[cfg(feature = "fuzz")]
        pub const FUZZ_TARGETS: &[&[fuzz::Target]] = &[$($($module::$fuzz::TARGETS,)?)*];
    };
}

built_in! {
    /// An arm, behind servos on a bus (device type 20)
    Arm: arm + fuzz,
    /// Drives a base for programs that support only the RoboClaw
    BaseWheels: base_wheels,
    /// The battery, as another device measures it (device type 13)
    Battery: battery,
    /// Motion sensor BNO055 with its own attitude (device type 1)
    Bno055: bno055 + fuzz,
    /// Cameras: USB, network, or a program (device type 17)
    Camera: camera + fuzz,
    /// Drives the wheels and avoids collisions (device type 9)
    CollisionAvoidance: collision_avoidance,
    /// An iRobot Create 2 or Roomba
    Create2: create2 + fuzz => devices,
    /// Two wheels on an Arduino: ros_arduino_bridge, Andino
    Diffdrive: diffdrive + fuzz,
    /// The same for programs that support only the RoboClaw
    DriveSupport: drive_support,
    /// Drives to targets on a map (device type 8)
    DriveToPoint: drive_to_point,
    /// No hardware: a flag and a text, for experiments
    Dummy: dummy,
    /// Dynamixel X servos on a serial bus (device type 19)
    Dynamixel: dynamixel + fuzz,
    /// Feetech servos on a serial bus (device type 19)
    Feetech: feetech + fuzz,
    /// The pins of an Arduino with Firmata (device type 16)
    Firmata: firmata + fuzz,
    /// A gamepad of Linux (device type 15)
    Gamepad: gamepad + fuzz,
    /// GPS receiver with NMEA 0183 (device type 14)
    Gps: gps + fuzz,
    /// A Hokuyo laser scanner
    Hokuyo: hokuyo + fuzz,
    /// Motion sensor ICM-20948 (device type 1)
    Icm20948: icm20948 + fuzz,
    /// Battery sensor INA219, INA226 or INA260 (device type 13)
    Ina2xx: ina2xx + fuzz,
    /// LDROBOT laser scanner, such as LD19 (device type 4)
    Ldrobot: ldrobot + fuzz,
    /// The pose of the robot on a map, from scans and wheel speeds
    Location: location,
    /// Motion sensor LSM6DSOX, with LIS3MDL (device type 1)
    Lsm6dsox: lsm6dsox + fuzz,
    /// Hobby servos on a Pololu Maestro
    Maestro: maestro,
    /// Makes a map while the robot drives (device type 12)
    Mapping: mapping,
    /// ArUco markers in the pictures of a camera (device type 23)
    Markers: markers + fuzz,
    /// Motion sensor MPU-6050, 6500, 9250 or 9255 (device type 1)
    Mpu: mpu + fuzz,
    /// Acceleration, turn rate and magnetic field from I2C sensors
    Ninedof: ninedof + fuzz,
    /// Wheels on an ODrive motor controller (device type 2)
    Odrive: odrive + fuzz,
    /// Three omni wheels, such as those of LeKiwi (device type 18)
    OmniBase: omni_base,
    /// Hobby servos on a PCA9685 (device type 7)
    #[command(name = "pca9685")]
    Pca9685: pca9685 + fuzz,
    /// Follows a trajectory on a map (device type 10)
    PidFollowTrajectory: pid_follow_trajectory,
    /// Wheels on one or two RoboClaws
    Roboclaw: roboclaw + fuzz,
    /// The shape of the robot, from `robot.toml` (device type 11)
    Robot: robot,
    /// RPLIDAR laser scanner, such as A1 (device type 4)
    Rplidar: rplidar + fuzz,
    /// A Hagisonic StarGazer: the pose from markers on the ceiling
    Stargazer: stargazer + fuzz,
    /// An arm follows one that a person moves (device type 21)
    Teleop: teleop,
    /// Wheels on two VESC motor controllers (device type 2)
    Vesc: vesc + fuzz,
    /// YDLIDAR laser scanner, such as X4 (device type 4)
    Ydlidar: ydlidar + fuzz,
}

fn serve<D>(driver: Result<D, OptionsError>, serve: impl FnOnce(D) -> ExitCode) -> ExitCode {
    amber_driver::init_logging();
    match driver {
        Ok(driver) => serve(driver),
        Err(error) => rejected(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_valid() {
        BuiltIn::augment_subcommands(clap::Command::new("driver")).debug_assert();
    }
}
