//! Log messages about the bus and the calibrations. PURE.

use std::fmt;
use std::time::Duration;

use super::super::units::Axes;

/// A log message.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The bus does not work.
    Trouble(String),
    /// The bus works again after an outage of this length.
    Back(Duration),
    /// The gyroscope bias measured at the start.
    Bias(Axes),
    /// The reason why the gyroscope bias was not measured.
    NoBias(String),
    /// The sensor has calibrated itself, and its calibration was saved (with the name of the file) or could
    /// not be saved (with the reason). `None` if there is no file.
    Learned(Option<Result<String, String>>),
    /// A subscription was rejected.
    TooMany,
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        !matches!(
            self,
            Self::Back(_) | Self::Bias(_) | Self::Learned(None | Some(Ok(_)))
        )
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trouble(text) => write!(f, "{text}; retrying"),
            Self::Back(after) => {
                write!(f, "the bus works again after {:.1} s", after.as_secs_f64())
            }
            Self::Bias([x, y, z]) => write!(
                f,
                "gyroscope bias {x:.2} {y:.2} {z:.2} deg/s, subtracted from now on"
            ),
            Self::NoBias(why) => {
                write!(f, "cannot measure the gyroscope bias: {why}; retrying")
            }
            Self::Learned(None) => f.write_str(
                "the sensor has calibrated itself; without --calibration it must do so again after a loss of power",
            ),
            Self::Learned(Some(Ok(text) | Err(text))) => {
                write!(f, "the sensor has calibrated itself: {text}")
            }
            Self::TooMany => {
                f.write_str("too many subscribers; a new one was rejected (logged once)")
            }
        }
    }
}
