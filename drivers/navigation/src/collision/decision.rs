//! The decision of the collision monitor, with its reason. PURE.

use std::fmt;

use crate::kinematics::Wheels;
use crate::sight;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The speeds for the wheels.
    pub wheels: Wheels,
    /// The factor by which the command was slowed down: 1 is unchanged, 0 is stopped.
    pub scale: f64,
    /// The rule that gave this factor.
    pub reason: Reason,
    /// The time until a contact if the robot followed the command unchanged, in seconds.
    pub time_to_contact_s: Option<f64>,
}

impl Decision {
    /// The wheels stop.
    #[must_use]
    pub const fn stop(reason: Reason) -> Self {
        Self {
            wheels: Wheels::STOP,
            scale: 0.0,
            reason,
            time_to_contact_s: None,
        }
    }
}

/// The reason for the speeds of the wheels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The command passes unchanged.
    Free,
    /// The command is to stand still.
    Idle,
    /// An obstacle is ahead on the arc: the robot slows down.
    Approach,
    /// An obstacle is in the way: the robot stops.
    Blocked,
    /// An obstacle is within the margin, and the motion brings nothing nearer.
    Retreat,
    /// An obstacle is near: the speed is limited.
    Limit,
    /// The robot drives backwards, where the laser does not look.
    Reverse,
    /// The laser has never seen what is behind the robot.
    Unseen,
    /// The curve is too fast.
    Lateral,
    /// The robot still moves towards an obstacle: it stops before it follows the command.
    Momentum,
    /// No scan has arrived yet.
    NoScan,
    /// The laser sees nothing although it should.
    Blind,
    /// The last scan is old.
    ScanTimeout,
    /// The last command is old.
    CommandTimeout,
    /// The robot does not move as its wheels should.
    Stuck,
    /// The wheels turn differently from what the gyroscope measures.
    Slip,
    /// The robot was hit.
    Bump,
    /// A bumper is pressed in the direction of the motion.
    Touched,
    /// There is no floor in the direction of the motion.
    Cliff,
    /// A wheel hangs in the air.
    Lifted,
    /// It is unknown whether a bumper is pressed.
    Unfelt,
}

impl Reason {
    /// Whether people should know it: scans do not show why the robot stands.
    #[must_use]
    pub const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::Stuck | Self::Slip | Self::Bump | Self::Touched | Self::Cliff | Self::Lifted
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Idle => "no motion requested",
            Self::Approach => "slowing down for an obstacle",
            Self::Blocked => "an obstacle is in the way",
            Self::Retreat => "leaving an obstacle slowly",
            Self::Limit => "speed limit near an obstacle",
            Self::Reverse => "speed limit in reverse",
            Self::Unseen => "the area behind the robot is unknown: turn first",
            Self::Lateral => "speed limit in a curve",
            Self::Momentum => "braking before an obstacle",
            Self::NoScan => "no scan yet",
            Self::Blind => sight::BLIND,
            Self::ScanTimeout => "no new scan",
            Self::CommandTimeout => "no new command",
            Self::Stuck => "the robot is stuck",
            Self::Slip => "the wheels slip",
            Self::Bump => "the robot was hit",
            Self::Touched => "a bumper is pressed; drive away from there",
            Self::Cliff => "there is no floor; drive away from there",
            Self::Lifted => "a wheel hangs in the air",
            Self::Unfelt => "the bumper says nothing, so it may be pressed",
        })
    }
}
