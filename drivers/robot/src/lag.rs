//! Measures the delay of messages from a program whose clock need not agree with the robot's. PURE.
//!
//! The sender stamps each message with the time of any clock. The time until the message arrives is
//! then known except for a constant, which is the difference of both clocks. The fastest message of
//! the last half minute shows that constant. Slower messages were delayed by the network.

use std::time::Duration;

/// Half of the observed time: after twice this time, a network that has become permanently slower
/// counts as normal.
const WINDOW: Duration = Duration::from_secs(15);
/// After this long without a message, the drift of the clocks may matter.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// The known times of messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    present: Option<Window>,
    /// The smallest time in the window before.
    before_ns: Option<i128>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Duration,
    last: Duration,
    /// The smallest time from the sender's clock to that of the robot.
    least_ns: i128,
}

impl Lag {
    /// A message has arrived that was sent at this time of the sender's clock. Returns how much longer
    /// it took than the fastest one.
    pub fn arrived(&mut self, now: Duration, sent_ns: u64) -> Duration {
        let took_ns = now.as_nanos() as i128 - i128::from(sent_ns);
        if self.present.is_some_and(|it| it.last + FORGOTTEN <= now) {
            *self = Self::default();
        }
        let window = match self.present {
            Some(window) if window.since + WINDOW > now => Window {
                last: now,
                least_ns: window.least_ns.min(took_ns),
                ..window
            },
            earlier => {
                self.before_ns = earlier.map(|it| it.least_ns);
                Window {
                    since: now,
                    last: now,
                    least_ns: took_ns,
                }
            }
        };
        self.present = Some(window);
        let least_ns = (self.before_ns).map_or(window.least_ns, |ns| ns.min(window.least_ns));
        Duration::from_nanos(u64::try_from(took_ns - least_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as (sent at, takes) in milliseconds; how late each is.
    fn check(offset_ms: u64, messages: &[(u64, u64)]) -> Vec<u64> {
        let mut lag = Lag::default();
        let late = messages.iter().map(|(sent_ms, takes_ms)| {
            let now = Duration::from_millis(sent_ms + takes_ms);
            let sent_ns = (sent_ms + offset_ms) * 1_000_000;
            lag.arrived(now, sent_ns).as_millis() as u64
        });
        late.collect()
    }

    #[test]
    fn late_is_what_takes_longer_than_the_fastest() {
        let messages = [
            (0, 20),
            (100, 5),
            (200, 25),
            (300, 2_305),
            (400, 2_205),
            (2_600, 5),
        ];
        let late = [0, 0, 20, 2_300, 2_200, 0];
        // The clock of the sender may be ahead, by years.
        for offset_ms in [0, 7, 40 * 365 * 86_400_000] {
            assert_eq!(check(offset_ms, &messages), late);
        }
    }

    #[test]
    fn a_network_that_stays_slow_becomes_the_usual_one() {
        let slow = (0..400).map(|n| (100 + n * 100, 805));
        let messages: Vec<_> = [(0, 5)].into_iter().chain(slow).collect();
        let late = check(0, &messages);
        assert_eq!(late[1], 800);
        let usual = late.iter().skip(1).position(|ms| *ms == 0).unwrap();
        assert!((140..=320).contains(&usual), "{usual}");
        assert!(late[usual + 1..].iter().all(|ms| *ms == 0));
    }

    #[test]
    fn a_pause_does_not_make_old_messages_new() {
        // Sent before a pause of a minute, and held up.
        assert_eq!(check(0, &[(0, 5), (1_000, 60_005)]), [0, 60_000]);
        // After a long silence, the clocks may have drifted apart.
        assert_eq!(check(0, &[(0, 5), (700_000, 305)]), [0, 0]);
    }

    #[test]
    fn no_time_overflows() {
        let mut lag = Lag::default();
        assert_eq!(lag.arrived(Duration::ZERO, u64::MAX), Duration::ZERO);
        assert_eq!(lag.arrived(Duration::MAX, 0), Duration::ZERO);
        let mut lag = Lag::default();
        lag.arrived(Duration::ZERO, u64::MAX);
        assert_eq!(
            lag.arrived(Duration::from_secs(1), 0).as_nanos(),
            u64::MAX.into()
        );
    }
}
