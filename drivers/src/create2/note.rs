//! Log messages that only these robots have. PURE.

use std::fmt;

use super::hindrance::Hindrance;
use crate::wheels::Special;

/// A log message about the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotNote {
    /// It senses this.
    Hindered(Hindrance),
    /// It has left safe mode by itself, for a reason that it does not sense any more.
    LeftSafeMode,
}

impl Special for RobotNote {
    fn is_warning(&self) -> bool {
        true
    }
}

impl fmt::Display for RobotNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hindered(hindrance) => hindrance.text(),
            Self::LeftSafeMode => {
                "the robot has left safe mode and stopped its wheels: somebody has pressed a button, or \
                 a wheel was in the air for a moment. It obeys again with the next command"
            }
        })
    }
}
