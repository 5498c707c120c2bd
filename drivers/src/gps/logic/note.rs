//! Log messages about the receiver. PURE.

use std::time::Duration;

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The receiver works.
    Ready,
    /// The receiver works again after an outage of this length.
    Back(Duration),
    /// The receiver does not work.
    Trouble(String),
    /// It has a position: of which kind.
    Position(&'static str),
    /// It has none for a while: why.
    Lost(&'static str),
    /// It tells a year that is over for long.
    OldDate(u32),
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_) | Self::Lost(_) | Self::OldDate(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready => f.write_str("ready: GPS receiver"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => write!(f, "{text}; retrying"),
            Self::Position(what) => write!(f, "the receiver has {what}"),
            Self::Lost(why) => f.write_str(why),
            Self::OldDate(year) => write!(
                f,
                "the receiver says that it is the year {year}: its counter of weeks has overflowed, so the \
                 time is left out (logged once)"
            ),
        }
    }
}
