//! The driver CollisionAvoidance: drives the wheels like Roboclaw, and avoids collisions. IO.
//!
//! ```text
//!  clients --speeds--> driver --> guard (collision monitor) --speeds--> roboclaw
//!                                   ^
//!              hokuyo, roboclaw ----+
//! ```
//!
//! Guarantees for clients:
//!
//! - A command is valid for half a second. Then the wheels stop.
//! - Near obstacles the wheels turn more slowly, all by the same factor, so that the robot stays on
//!   its arc. Before a contact they stop. Away from the obstacle, the robot may always drive.
//! - Without scans or measured wheel speeds for 0.6 s the wheels stop; `amber events` shows why.
//! - The wheels stop when the client that drives leaves, and when the driver ends.
//! - A command with a wheel faster than `max_speed_mm_s` is dropped completely.
//! - Clients of Roboclaw also work with this device: it accepts their messages.

use amber_driver::Driver;
use amber_driver::devices::collision_avoidance;

use self::driver::CollisionAvoidance;
use crate::options::OptionsError;
use crate::robot_options::RobotOptions;

mod driver;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    #[command(flatten)]
    robot: RobotOptions,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// A value or the file is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let driver = CollisionAvoidance::new(self.robot.stated()?);
        Ok(collision_avoidance::driver(driver))
    }
}
