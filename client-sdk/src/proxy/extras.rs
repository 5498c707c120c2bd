//! Methods of clients that are no request of their own. IO.

use super::{CollisionAvoidance, DriveToPoint, Roboclaw, blocking};
use crate::error::Result;
use amber_values::WheelSpeeds;

/// `stop` for devices with wheels.
macro_rules! stop {
    ($device:ident, $this:ident => $stop:expr) => {
        impl $device {
            /// Stops the robot.
            ///
            /// Resolves when the command has been handed to the system. If you drop the
            /// future earlier, it may or may not be sent.
            ///
            /// # Errors
            /// The message could not be sent.
            pub async fn stop(&self) -> Result<()> {
                let $this = self;
                $stop.await
            }
        }

        impl blocking::$device {
            /// Stops the robot.
            ///
            /// # Errors
            /// The message could not be sent.
            pub fn stop(&self) -> Result<()> {
                self.device.run($device::stop)
            }
        }
    };
}

stop!(Roboclaw, wheels => wheels.drive(WheelSpeeds::STOP));
stop!(CollisionAvoidance, wheels => wheels.drive(WheelSpeeds::STOP));
stop!(DriveToPoint, robot => robot.set_targets(&[]));
