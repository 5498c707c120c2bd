//! Driver that serves the shape of the robot, from its file `robot.toml`. IO.
//!
//! ```text
//!  robot.toml --> driver: reads it again when it changes --> shape: a message, URDF
//! ```
//!
//! Guarantees for clients:
//!
//! - Every request for the shape is answered, from the start on.
//! - A subscriber gets the shape at once, and again after each change of the file.
//! - A file with an error changes nothing: the last valid shape counts, and `amber status robot`
//!   shows the error.
//! - The odometry starts at zero when the driver starts, and continues when clients come and go. It
//!   uses the speeds that the wheels publish. While they report none, requests are refused and
//!   nothing is published.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::robot;

use self::driver::RobotDriver;
use crate::options::OptionsError;
use crate::robot_file::RobotFile;
use crate::sim_clock::SimClockOption;

mod driver;
mod odometry;
mod urdf;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// TOML file that describes the robot, with keys such as `laser_offset_mm = 120`; it is read again
    /// when it changes [default: a Capo robot, whose laser is at an unknown position]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    clock: SimClockOption,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// The file is invalid, or a value in it.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let shape = RobotFile::read(self.config.as_deref())?.shape()?;
        let clock = self.clock.open()?;
        Ok(robot::driver(RobotDriver::new(self.config, shape, clock)))
    }
}
