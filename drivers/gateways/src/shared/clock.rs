//! The time for PURE code. PURE.

use std::time::Duration;

/// The time of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Since the gateway started. It never goes back.
    pub elapsed: Duration,
    /// Since the Unix epoch, by the clock of the robot. It may jump.
    pub unix: Duration,
}

impl Now {
    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub fn unix_ms(self) -> u64 {
        u64::try_from(self.unix.as_millis()).unwrap_or(u64::MAX)
    }

    /// The time since an earlier value of [`Now::elapsed`]; 0 if it is later.
    #[must_use]
    pub fn since(self, earlier: Duration) -> Duration {
        self.elapsed.saturating_sub(earlier)
    }

    /// This many milliseconds after the start of a gateway that started at the Unix epoch, for
    /// tests.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self {
            elapsed: Duration::from_millis(ms),
            unix: Duration::from_millis(ms),
        }
    }
}
