//! Whether the timestamp of a command shows that the network has delayed it. PURE.
//!
//! Programs stamp their commands with seconds or milliseconds since 1970, by their own clock, which
//! need not agree with the clock here. Some always send the same number, and some count.

use std::time::Duration;

use amber_robot::lag::Lag;

use super::limits::SECONDS;
use crate::limits::MOTION_LAG;

/// September 2001. Smaller numbers are no time.
const FIRST_S: u64 = 1_000_000_000;

/// The timestamps of one control.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    lag: Lag,
    /// The last timestamp, and whether it was late.
    last: Option<(u64, bool)>,
}

impl Stamps {
    /// Whether a command that arrives now with this timestamp was delayed.
    pub(super) fn is_late(&mut self, now: Duration, timestamp: u64) -> bool {
        if let Some((last, is_late)) = self.last
            && last == timestamp
        {
            // Several commands of one second. The first has told.
            return is_late;
        }
        let (stamp_ms, most) = match in_ms(timestamp) {
            (ms, true) => (ms, MOTION_LAG + SECONDS),
            (ms, false) => (ms, MOTION_LAG),
        };
        if stamp_ms < FIRST_S * 1000 {
            return false;
        }
        let is_late = self.lag.arrived(now, stamp_ms.saturating_mul(1_000_000)) > most;
        self.last = Some((timestamp, is_late));
        is_late
    }
}

/// A timestamp in milliseconds, and whether it was in seconds.
pub(super) fn in_ms(timestamp: u64) -> (u64, bool) {
    match timestamp {
        // The year 5138 in seconds, 1973 in milliseconds.
        0..100_000_000_000 => (timestamp * 1000, true),
        milliseconds => (milliseconds, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: u64 = 1_700_000_000_000;

    /// How many commands of 100 are late: each is sent at `100 * n` ms, stamped by `stamp` with that
    /// time, and takes as long as `takes_ms` says.
    fn late(stamp: impl Fn(u64) -> u64, takes_ms: impl Fn(u64) -> u64) -> usize {
        let mut stamps = Stamps::default();
        let is_late = |sent_ms: u64| {
            let now = Duration::from_millis(sent_ms + takes_ms(sent_ms));
            stamps.is_late(now, stamp(sent_ms))
        };
        (0..100)
            .map(|n| n * 100)
            .map(is_late)
            .filter(|it| *it)
            .count()
    }

    #[test]
    fn commands_of_a_stalled_network_are_late() {
        let stalled = |ms| {
            if (3_000..6_000).contains(&ms) {
                6_000 - ms
            } else {
                5
            }
        };
        // Up to half a second is not late.
        assert_eq!(late(|ms| START_MS + ms, stalled), 25);
        // With seconds, a command may be older without showing it.
        let seconds = late(|ms| (START_MS + ms) / 1000, stalled);
        assert!((10..=25).contains(&seconds), "{seconds}");
    }

    #[test]
    fn usual_networks_and_clocks_of_any_time_are_not() {
        for offset_ms in [0, 86_400_000] {
            assert_eq!(late(|ms| START_MS + offset_ms + ms, |ms| ms % 400), 0);
            assert_eq!(late(|ms| (START_MS + offset_ms + ms) / 1000, |_| 5), 0);
        }
    }

    #[test]
    fn numbers_that_are_no_time_are_not_judged() {
        assert_eq!(late(|_| 1, |_| 5), 0);
        assert_eq!(late(|_| START_MS, |_| 5), 0, "always the same");
        assert_eq!(late(|ms| ms / 1000, |_| 5), 0, "a counter");
    }
}
