//! Log messages about servos and other outputs. PURE.

use std::fmt;
use std::time::Duration;

use amber_driver::ClientId;

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The controller answers.
    Ready(String),
    /// The controller works again after an outage of this length.
    Back(Duration),
    /// The controller does not answer, or reports errors.
    Trouble(String),
    /// Something unusual that needs no help.
    Event(&'static str),
    /// A request was rejected.
    Refused(String),
    /// A client is gone, and what it moved was stopped.
    Stopped(ClientId),
}

impl Note {
    /// Whether to log it as a warning.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_) | Self::Event(_) | Self::Refused(_))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(what) => write!(f, "ready: {what}"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => f.write_str(text),
            Self::Event(text) => f.write_str(text),
            Self::Refused(text) => write!(f, "rejected: {text} (logged once)"),
            Self::Stopped(client) => write!(f, "stopped: client {client} is gone"),
        }
    }
}
