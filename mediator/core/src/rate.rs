//! Limits how often something may happen. PURE.

use std::ops::Add;
use std::time::{Duration, Instant};

/// A number of events per second. After a second without events, that many may happen at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    interval: Duration,
}

impl Rate {
    const BURST: Duration = Duration::from_secs(1);

    /// `count` events per second, at least one.
    pub fn per_second(count: u32) -> Self {
        Self {
            interval: Self::BURST / count.max(1),
        }
    }
}

/// Passes events up to a [`Rate`], and rejects the rest.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit<T = Instant> {
    /// When all passed events would have passed at an even pace.
    paid: Option<T>,
}

impl<T> Default for RateLimit<T> {
    fn default() -> Self {
        Self { paid: None }
    }
}

impl<T: Copy + Ord + Add<Duration, Output = T>> RateLimit<T> {
    /// Whether one more event may pass now.
    pub fn pass(&mut self, now: T, rate: Rate) -> bool {
        let paid = self.paid.map_or(now, |paid| paid.max(now)) + rate.interval;
        let passes = paid <= now + Rate::BURST;
        if passes {
            self.paid = Some(paid);
        }
        passes
    }
}

/// Limits a log message to once a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Digest {
    said: Option<Instant>,
    unsaid: u64,
}

impl Digest {
    /// The event has happened once more. If it is time to log it: the number of events since
    /// the last message.
    pub fn happened(&mut self, now: Instant) -> Option<u64> {
        self.happened_times(now, 1)
    }

    /// The same for several events.
    pub fn happened_times(&mut self, now: Instant, times: u64) -> Option<u64> {
        self.unsaid += times;
        let quiet = |said: Instant| now.duration_since(said) < Duration::from_secs(1);
        if self.said.is_some_and(quiet) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_burst_passes_and_then_an_even_rate() {
        let (mut gate, now) = (RateLimit::default(), Instant::now());
        let rate = Rate::per_second(10);
        let passed = |gate: &mut RateLimit, at| (0..100).filter(|_| gate.pass(at, rate)).count();
        assert_eq!(passed(&mut gate, now), 10);
        assert_eq!(passed(&mut gate, now + 99 * MS), 0);
        assert_eq!(passed(&mut gate, now + 100 * MS), 1);
        assert_eq!(passed(&mut gate, now + 5000 * MS), 10);
    }

    #[test]
    fn a_rate_is_kept_however_high() {
        let (mut gate, start) = (RateLimit::default(), Instant::now());
        let rate = Rate::per_second(1_000_000);
        let passed = (0..4_000_000u32)
            .filter(|i| gate.pass(start + Duration::from_nanos(500) * *i, rate))
            .count();
        // Two seconds, plus the initial burst.
        assert!((2_999_000..=3_001_000).contains(&passed), "{passed}");
    }

    #[test]
    fn a_digest_counts_everything() {
        let (mut digest, now) = (Digest::default(), Instant::now());
        assert_eq!(digest.happened(now), Some(1));
        assert_eq!(digest.happened(now + MS), None);
        assert_eq!(digest.happened_times(now + 999 * MS, 5), None);
        assert_eq!(digest.happened(now + 1000 * MS), Some(7));
    }
}
