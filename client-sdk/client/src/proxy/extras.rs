//! Methods of clients that are not single requests. IO.

use amber_proto::mapping::Progress;
use amber_proto::mapping::progress::{Exploration, State};
use amber_values::WheelSpeeds;

use super::{CollisionAvoidance, DriveToPoint, MappingService, Roboclaw, blocking};
use crate::error::Result;

/// `stop` for devices with wheels.
macro_rules! stop {
    ($device:ident, $this:ident => $stop:expr) => {
        impl $device {
            /// Stops the robot.
            ///
            /// Resolves as other commands do. If you drop the future earlier, it may or may
            /// not be sent.
            ///
            /// # Errors
            /// The message could not be sent, or the driver refuses it.
            pub async fn stop(&self) -> Result<()> {
                let $this = self;
                $stop.await
            }
        }

        impl blocking::$device {
            /// Stops the robot.
            ///
            /// # Errors
            /// The message could not be sent, or the driver refuses it.
            pub fn stop(&self) -> Result<()> {
                self.device.run($device::stop)
            }
        }
    };
}

stop!(Roboclaw, wheels => wheels.drive(WheelSpeeds::STOP));
stop!(CollisionAvoidance, wheels => wheels.drive(WheelSpeeds::STOP));
stop!(DriveToPoint, robot => robot.set_targets(&[]));

impl MappingService {
    /// Whether the robot explores: it may begin to move at any time.
    #[must_use]
    pub fn explores(progress: &Progress) -> bool {
        progress.state() == State::Growing
            && matches!(
                progress.exploration(),
                Exploration::Waiting | Exploration::Exploring | Exploration::Returning
            )
    }
}
