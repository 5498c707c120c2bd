//! The driver DriveSupport: a Roboclaw that avoids collisions. IO.
//!
//! It serves the messages of Roboclaw, so that programs that support only these drive with the
//! guard. The real Roboclaw then has another id: `roboclaw:1` below, with DriveSupport as
//! `roboclaw:0`.
//!
//! ```text
//!  clients --> roboclaw:0, this driver --> guard (collision monitor) --> roboclaw:1
//!                                            ^
//!             hokuyo:0, roboclaw:1, ninedof -+
//! ```
//!
//! It gives clients the same guarantees as [CollisionAvoidance](crate::collision_avoidance).

use amber_driver::Driver;
use amber_driver::devices::roboclaw;
use amber_proto::{Device, DeviceType};

use self::driver::DriveSupport;
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
        let wheels = Device::new(DeviceType::ROBOCLAW, 1);
        let driver = DriveSupport::new(self.robot.stated_behind(wheels)?);
        Ok(roboclaw::driver(driver))
    }
}
