//! Log messages that only ODrives have. PURE.

use std::fmt;

use super::protocol::{Axis, WATCHDOG_EXPIRED};
use crate::wheels::Special;

/// A log message about the ODrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OdriveNote {
    /// An axis has an error: its number.
    Error(Axis, u32),
    /// An axis does not control its motor although it was told to.
    NotControlled(Axis),
    /// The problems are over.
    Clean,
}

impl Special for OdriveNote {
    fn is_warning(&self) -> bool {
        *self != Self::Clean
    }
}

impl fmt::Display for OdriveNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(axis, WATCHDOG_EXPIRED) => write!(
                f,
                "axis {} was released by its watchdog: no command has reached it for some time",
                axis.index()
            ),
            Self::Error(axis, number) => write!(
                f,
                "axis {} has the error 0x{number:x}: `dump_errors(odrv0)` in odrivetool explains it; \
                 clear it there, or restart this driver",
                axis.index()
            ),
            Self::NotControlled(axis) => write!(
                f,
                "axis {} does not control its motor: calibrate it in odrivetool, and store the \
                 calibration there (pre_calibrated)",
                axis.index()
            ),
            Self::Clean => f.write_str("the axes can be driven again"),
        }
    }
}
