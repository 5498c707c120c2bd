//! What the log says about the scanner. PURE.

use std::time::Duration;

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It scans.
    Ready(String),
    /// The same after some trouble that lasted so long.
    Back(Duration),
    /// It does not.
    Trouble(String),
    /// The laser is on, or off.
    Laser(bool),
    /// The scanner has no `GD`.
    NoSingleScans,
}

impl Note {
    /// Whether somebody should look at it.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(name) => write!(f, "ready: {name}"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => write!(f, "{text}; trying again"),
            Self::NoSingleScans => {
                f.write_str("the scanner has no single scans (GD), using continuous ones (MD)")
            }
            Self::Laser(true) => f.write_str("laser on"),
            Self::Laser(false) => f.write_str("laser off, nobody wants a scan"),
        }
    }
}
