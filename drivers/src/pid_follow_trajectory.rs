//! The driver PidFollowTrajectory: follows a trajectory on a map, at given times. IO.
//!
//! ```text
//!  clients --points--> driver --> logic: pursuit --> collision monitor --speeds--> roboclaw
//!                                    ^                   ^
//!         location, roboclaw --------+      hokuyo ------+
//! ```
//!
//! Guarantees for clients:
//!
//! - The points are followed in order, as fast as the configuration allows. If all points have
//!   increasing times, these set the speed.
//! - The run ends by itself at the last point, and with the client that started it.
//! - The robot stops near obstacles, without a pose, and without scans or wheel speeds; `amber
//!   events` shows the reason. With `--unguarded` it needs no scanner and does not avoid obstacles,
//!   like the original.

use amber_driver::Driver;
use amber_driver::devices::pid_follow_trajectory;
use amber_navigation::collision::{self, Monitor};
use amber_navigation::pose_tracker;
use amber_navigation::trajectory::Trajectory;
use amber_proto::{Device, DeviceType};

use self::driver::PidFollowTrajectory;
use self::pilot::Following;
use crate::options::OptionsError;
use crate::robot_options::{RobotOptions, Setup};

mod driver;
mod pilot;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
// The robot never drives backwards on a trajectory.
#[command(mut_arg("look_before_reversing", |arg| arg.hide(true)))]
pub struct Options {
    #[command(flatten)]
    robot: RobotOptions,
    /// The pose on the map [default: location:0]
    #[arg(long, value_name = "DEVICE")]
    location: Option<Device>,
    /// Drive without the laser scanner and without obstacle avoidance
    #[arg(long)]
    unguarded: bool,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// A value or a file is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let plan = Plan {
            poses: (self.location).unwrap_or(Device::new(DeviceType::LOCATION, 0)),
            unguarded: self.unguarded,
        };
        let driver = PidFollowTrajectory::new(self.robot.stated()?, plan);
        Ok(pid_follow_trajectory::driver(driver))
    }
}

/// How to make the pilot of a robot.
#[derive(Clone, Copy, Debug)]
struct Plan {
    poses: Device,
    unguarded: bool,
}

impl Plan {
    fn pilot(self, mut setup: Setup) -> (Setup, Following) {
        setup.devices.poses = Some(self.poses);
        if self.unguarded {
            setup.devices.laser = None;
            setup.devices.bumper = None;
        }
        let monitor = (!self.unguarded).then(|| {
            Monitor::new(collision::Config {
                // The client chooses speed and path.
                limit_zone_m: 0.0,
                ..setup.collision
            })
        });
        let trajectory = Trajectory::new(setup.collision.drive, pose_tracker::Config::default());
        (setup, Following::new(trajectory, monitor))
    }
}
