//! Log messages about the StarGazer. PURE.

use std::time::Duration;

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The device works; with its firmware version, if it was requested.
    Ready(Option<String>),
    /// The device works again after an outage of this length.
    Back(Duration),
    /// The device does not work.
    Trouble(String),
    /// These parameters had other values and were written.
    Written(String),
    /// Whether a marker of the map is in view.
    InView(bool),
    /// This marker is not on the map.
    Stranger(u32),
    /// A subscription was rejected.
    TooMany,
}

impl Note {
    /// Whether to log it as a warning.
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
            Self::Trouble(text) => write!(f, "{text}; retrying"),
            Self::Written(names) => write!(f, "parameters written: {names}"),
            Self::InView(true) => f.write_str("a marker is in view"),
            Self::InView(false) => f.write_str("no marker in view"),
            Self::Stranger(marker) => {
                write!(
                    f,
                    "marker {marker} is in view but not in the file of markers (logged once)"
                )
            }
            Self::TooMany => f.write_str("too many subscribers; a new one was rejected"),
        }
    }
}
