//! The drivers included in Amber, each run as `amber driver <name>` in its own process.
//!
//! A new driver is a module with an `Options` struct, and one variant of
//! [`BuiltIn`] whose doc comment is its line in the list.
//!
//! Hardware drivers share `connection` (the connection to a device), `outage` (when to retry a
//! device and what to log), `desk` (the one task that owns the device), `stream` (a device at a byte
//! stream, in that task) and `options` (a TOML file that the command line overrides). Drivers that
//! move the robot by other drivers share `moving`.
//!
//! Drivers that use other devices share `robot_options` (the shape of the robot, and its devices),
//! [`amber_driver::client::sources`] (scans and wheel speeds) and `replace` (files that are replaced
//! as a whole).
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it uses no sockets,
//! files, clocks or tasks, and gets the time as an argument. IO code uses them.

use std::process::ExitCode;

use amber_driver::Driver;
use amber_driver::client::sources;
use clap::Subcommand;

use self::options::OptionsError;

pub mod collision_avoidance;
pub mod connection;
mod desk;
pub mod drive_support;
pub mod drive_to_point;
pub mod dummy;
pub mod hokuyo;
pub mod location;
pub mod maestro;
mod moving;
pub mod ninedof;
pub mod options;
mod outage;
pub mod pid_follow_trajectory;
mod replace;
pub mod roboclaw;
pub mod robot_options;
pub mod stargazer;
mod stream;
#[cfg(test)]
mod testing;

/// A built-in driver and its options.
#[derive(Clone, Debug, Subcommand)]
pub enum BuiltIn {
    /// Drives the wheels and avoids collisions (device type 9)
    #[command(name = "collision_avoidance")]
    CollisionAvoidance(Box<collision_avoidance::Options>),
    /// The same for programs that support only the RoboClaw
    #[command(name = "drive_support")]
    DriveSupport(Box<drive_support::Options>),
    /// Drives to targets on a map (device type 8)
    #[command(name = "drive_to_point")]
    DriveToPoint(Box<drive_to_point::Options>),
    /// No hardware: a flag and a text, for experiments
    Dummy(dummy::Options),
    /// A Hokuyo laser scanner
    Hokuyo(Box<hokuyo::Options>),
    /// The pose of the robot on a map, from scans and wheel speeds
    Location(Box<location::Options>),
    /// Hobby servos on a Pololu Maestro
    Maestro(Box<maestro::Options>),
    /// Acceleration, turn rate and magnetic field from I2C sensors
    Ninedof(Box<ninedof::Options>),
    /// Follows a trajectory on a map (device type 10)
    #[command(name = "pid_follow_trajectory")]
    PidFollowTrajectory(Box<pid_follow_trajectory::Options>),
    /// Two RoboClaw motor controllers with four wheels
    Roboclaw(Box<roboclaw::Options>),
    /// A Hagisonic StarGazer: the pose from markers on the ceiling
    Stargazer(Box<stargazer::Options>),
}

impl BuiltIn {
    /// Serves on stdin and stdout until stdin ends.
    pub fn run(self) -> ExitCode {
        match self {
            Self::CollisionAvoidance(options) => serve(options.driver()),
            Self::DriveSupport(options) => serve(options.driver()),
            Self::DriveToPoint(options) => serve(options.driver()),
            Self::Dummy(options) => amber_driver::serve(options.driver()),
            Self::Hokuyo(options) => serve(options.driver()),
            Self::Location(options) => serve(options.driver()),
            Self::Maestro(options) => serve(options.driver()),
            Self::Ninedof(options) => serve(options.driver()),
            Self::PidFollowTrajectory(options) => serve(options.driver()),
            Self::Roboclaw(options) => serve(options.driver()),
            Self::Stargazer(options) => serve(options.driver()),
        }
    }
}

fn serve<D: Driver>(driver: Result<D, OptionsError>) -> ExitCode {
    amber_driver::init_logging();
    match driver {
        Ok(driver) => amber_driver::serve(driver),
        Err(error) => rejected(&error),
    }
}

/// Logs why the options of a driver are rejected, and how to correct them.
pub fn rejected(error: &OptionsError) -> ExitCode {
    tracing::error!("{error}");
    if let Some(hint) = error.hint() {
        tracing::error!("hint: {hint}");
    }
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_valid() {
        BuiltIn::augment_subcommands(clap::Command::new("driver")).debug_assert();
    }
}
