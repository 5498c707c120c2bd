//! Log messages about a scanner. PURE.

use std::time::Duration;

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The scanner works.
    Ready(String),
    /// The scanner works again after an outage of this length.
    Back(Duration),
    /// The scanner does not work.
    Trouble(String),
    /// The laser was turned on or off.
    Laser(bool),
    /// A property of this scanner that matters to its user.
    Property(&'static str),
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(name) => write!(f, "ready: {name}"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => write!(f, "{text}; retrying"),
            Self::Property(text) => f.write_str(text),
            Self::Laser(true) => f.write_str("laser on"),
            Self::Laser(false) => f.write_str("laser off: no requests and no subscribers"),
        }
    }
}
