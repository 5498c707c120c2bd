//! How long nothing was heard from the other side.

use std::time::{Duration, Instant, SystemTime};

/// The longest time in which nothing was heard. It includes the time in which this process, or the
/// whole computer, was asleep.
#[derive(Debug)]
pub(super) struct Silence {
    last: Moment,
    longest: Duration,
}

/// `Instant` does not count the time in which the computer sleeps, and `SystemTime` may be set back.
type Moment = (Instant, SystemTime);

impl Silence {
    pub(super) fn begin() -> Self {
        Self {
            last: now(),
            longest: Duration::ZERO,
        }
    }

    /// Something was heard.
    pub(super) fn heard(&mut self) {
        self.heard_at(now());
    }

    /// The longest silence, with the present one.
    pub(super) fn longest(&self) -> Duration {
        self.longest.max(between(self.last, now()))
    }

    fn heard_at(&mut self, now: Moment) {
        self.longest = self.longest.max(between(self.last, now));
        self.last = now;
    }
}

fn now() -> Moment {
    (Instant::now(), SystemTime::now())
}

fn between(from: Moment, to: Moment) -> Duration {
    let by_calendar = to.1.duration_since(from.1).unwrap_or_default();
    to.0.saturating_duration_since(from.0).max(by_calendar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silence_counts_also_if_the_computer_slept_or_its_clock_was_set_back() {
        let (start, calendar) = now();
        let ms = Duration::from_millis;
        let mut silence = Silence {
            last: (start, calendar),
            longest: Duration::ZERO,
        };
        silence.heard_at((start + ms(300), calendar + ms(300)));
        silence.heard_at((start + ms(400), calendar + ms(400)));
        assert_eq!(silence.longest, ms(300));
        // The clock is set back by 10 s.
        silence.heard_at((start + ms(900), calendar - ms(9100)));
        assert_eq!(silence.longest, ms(500));
        // The computer sleeps for a minute.
        silence.heard_at((start + ms(1000), calendar + ms(51_000)));
        assert_eq!(silence.longest, ms(60_100));
    }
}
