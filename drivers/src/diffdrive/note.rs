//! Log messages that only these boards have. PURE.

use std::fmt;

use crate::wheels::Special;

/// A log message about the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardNote {
    /// The counts began anew.
    Restarted,
    /// The firmware did not take the gains.
    GainsRefused,
}

impl Special for BoardNote {
    fn is_warning(&self) -> bool {
        true
    }
}

impl fmt::Display for BoardNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restarted => {
                "the board has restarted: its counts began anew; the wheels stand still until the next \
                 command. Check its supply"
            }
            Self::GainsRefused => "the firmware has not confirmed the gains, and may use its own",
        })
    }
}
