//! What the log says about the StarGazer. PURE.

use std::time::Duration;

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It works; with its firmware, if it was asked.
    Ready(Option<String>),
    /// The same after some trouble that lasted so long.
    Back(Duration),
    /// It does not.
    Trouble(String),
    /// These parameters had another value and were written.
    Written(String),
    /// A marker that is on the map can be seen, or none.
    InView(bool),
    /// This marker is not on the map.
    Stranger(u32),
    /// Somebody wanted to be subscribed.
    TooMany,
}

impl Note {
    /// Whether somebody should look at it.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_) | Self::Stranger(_) | Self::TooMany)
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(None) => f.write_str("ready: StarGazer"),
            Self::Ready(Some(version)) => write!(f, "ready: StarGazer, firmware {version}"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => write!(f, "{text}; trying again"),
            Self::Written(names) => write!(f, "parameters written: {names}"),
            Self::InView(true) => f.write_str("there is a marker in view"),
            Self::InView(false) => f.write_str("no marker in view"),
            Self::Stranger(marker) => {
                write!(
                    f,
                    "marker {marker} is in view but not in the file of markers (logged once)"
                )
            }
            Self::TooMany => f.write_str("too many subscribers, somebody is left out"),
        }
    }
}
