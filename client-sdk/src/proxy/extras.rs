//! Methods of clients that are not single requests. IO.

use amber_proto::drive_to_point::Progress;
use amber_proto::drive_to_point::progress::State;
use amber_values::{MapPose, Row, Target, WheelSpeeds};

use super::{CollisionAvoidance, DriveToPoint, DriveToPointProgressUpdates, Roboclaw, blocking};
use crate::error::{Error, Result};
use crate::subscription::Event;

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

/// How [`DriveToPoint::drive_to`] ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DriveEnd {
    /// The robot is at the target: its pose.
    Arrived(MapPose),
    /// The driver has given up the target.
    Unreachable,
    /// The driver no longer has the target: another client has set its own or stopped the robot, or
    /// the command was lost.
    Replaced,
}

impl DriveToPoint {
    /// Drives to one target and waits for the end. This replaces all other targets.
    ///
    /// `progress` receives the published data, five times per second; its error ends the waiting.
    /// The robot may wait forever, for example for a lost laser, so use a timeout if you need one.
    ///
    /// Dropping the future, or an error, does not stop the robot: call [`DriveToPoint::stop`], or close
    /// the client.
    ///
    /// # Errors
    /// The driver does not work, or dies; the client is closed; or the error of `progress`. Drivers
    /// of the original system do not publish: with them this waits forever.
    pub async fn drive_to<E: From<Error>>(
        &self,
        target: Target,
        mut progress: impl FnMut(&DriveToPointProgressUpdates) -> std::result::Result<(), E>,
    ) -> std::result::Result<DriveEnd, E> {
        // This shows whether the driver works: commands have no answer.
        self.configuration().await?;
        let mut updates = self.progress_updates().await?;
        self.set_targets(&[target]).await?;
        loop {
            let update = match updates.next_event().await {
                Some(Event::Message(update)) => update.message,
                // The error, if the driver does not work now.
                Some(Event::Interrupted(_)) => {
                    self.configuration().await?;
                    continue;
                }
                Some(Event::Resumed) => continue,
                None => {
                    let cause = "the subscription has ended".into();
                    return Err(Error::Closed { cause }.into());
                }
            };
            progress(&update)?;
            if update.progress.state() != State::Idle {
                continue;
            }
            // The driver may have published this before it read the command.
            if !self.next_targets().await?.targets.is_empty() {
                continue;
            }
            let visited = self.visited_targets().await?;
            if visited.targets.iter().any(|visited| same(*visited, target)) {
                return Ok(DriveEnd::Arrived(visited.location));
            }
            let last = self.progress().await?.progress;
            return Ok(match skipped(&last, target) {
                true => DriveEnd::Unreachable,
                false => DriveEnd::Replaced,
            });
        }
    }
}

fn skipped(progress: &Progress, target: Target) -> bool {
    let skipped = progress.skipped.as_ref();
    let skipped = skipped.and_then(|table| Target::rows(table).ok());
    let mut skipped = skipped.into_iter().flatten();
    skipped.any(|skipped| same(skipped, target))
}

/// The driver computes in another frame, and so may round.
fn same(one: Target, other: Target) -> bool {
    const ROUNDING_M: f64 = 1e-6;
    (one.x_m - other.x_m).hypot(one.y_m - other.y_m) < ROUNDING_M
}
