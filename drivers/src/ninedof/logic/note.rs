//! What the log is told of the bus and of calibrations. PURE.

use std::fmt;
use std::time::Duration;

use super::super::units::Axes;

/// A line for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The bus does not work.
    Trouble(String),
    /// It does again, after so long.
    Back(Duration),
    /// The bias of the gyroscope, measured at the start.
    Bias(Axes),
    /// Why it was not.
    NoBias(String),
    /// Nobody more can be subscribed.
    TooMany,
}

impl Note {
    /// Whether somebody should look at it.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Back(_) | Self::Bias(_))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trouble(text) => write!(f, "{text}; trying again"),
            Self::Back(after) => {
                write!(f, "the bus works again after {:.1} s", after.as_secs_f64())
            }
            Self::Bias([x, y, z]) => write!(
                f,
                "the gyroscope says {x:.2} {y:.2} {z:.2} deg/s at rest, which is taken off"
            ),
            Self::NoBias(why) => write!(
                f,
                "what the gyroscope says at rest is not known: {why}; trying again"
            ),
            Self::TooMany => f.write_str("too many clients are subscribed (logged once)"),
        }
    }
}
