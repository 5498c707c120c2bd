//! How often something may happen. PURE.

use std::ops::Add;
use std::time::{Duration, Instant};

/// So many in a second; as many at once after a second of rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    interval: Duration,
}

impl Rate {
    const BURST: Duration = Duration::from_secs(1);

    /// `count` in a second, and at least one.
    pub fn per_second(count: u32) -> Self {
        Self {
            interval: Self::BURST / count.max(1),
        }
    }
}

/// Lets pass what comes at a [`Rate`], and says no to the rest.
#[derive(Clone, Copy, Debug)]
pub struct Gate<T = Instant> {
    /// When all that has passed would have passed at an even pace.
    paid: Option<T>,
}

impl<T> Default for Gate<T> {
    fn default() -> Self {
        Self { paid: None }
    }
}

impl<T: Copy + Ord + Add<Duration, Output = T>> Gate<T> {
    /// Whether one more may pass now.
    pub fn pass(&mut self, now: T, rate: Rate) -> bool {
        let paid = self.paid.map_or(now, |paid| paid.max(now)) + rate.interval;
        let passes = paid <= now + Rate::BURST;
        if passes {
            self.paid = Some(paid);
        }
        passes
    }
}

/// Says something that could be said very often once a second at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Digest {
    said: Option<Instant>,
    unsaid: u64,
}

impl Digest {
    /// It has happened once more. When it is time to say so: how often it has
    /// happened since it was said last.
    pub fn happened(&mut self, now: Instant) -> Option<u64> {
        self.happened_times(now, 1)
    }

    /// The same when it has happened so many times.
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
    fn a_burst_passes_and_then_an_even_flow() {
        let (mut gate, now) = (Gate::default(), Instant::now());
        let rate = Rate::per_second(10);
        let passed = |gate: &mut Gate, at| (0..100).filter(|_| gate.pass(at, rate)).count();
        assert_eq!(passed(&mut gate, now), 10);
        assert_eq!(passed(&mut gate, now + 99 * MS), 0);
        assert_eq!(passed(&mut gate, now + 100 * MS), 1);
        assert_eq!(passed(&mut gate, now + 5000 * MS), 10);
    }

    #[test]
    fn a_rate_is_kept_however_high() {
        let (mut gate, start) = (Gate::default(), Instant::now());
        let rate = Rate::per_second(1_000_000);
        let passed = (0..4_000_000u32)
            .filter(|i| gate.pass(start + Duration::from_nanos(500) * *i, rate))
            .count();
        // Two seconds, and what may come at once.
        assert!((2_999_000..=3_001_000).contains(&passed), "{passed}");
    }

    #[test]
    fn a_digest_leaves_nothing_out() {
        let (mut digest, now) = (Digest::default(), Instant::now());
        assert_eq!(digest.happened(now), Some(1));
        assert_eq!(digest.happened(now + MS), None);
        assert_eq!(digest.happened_times(now + 999 * MS, 5), None);
        assert_eq!(digest.happened(now + 1000 * MS), Some(7));
    }
}
