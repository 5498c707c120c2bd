//! The wait before a restart. PURE.

use std::time::Duration;

/// Doubling waits between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
}

/// The bounds of a backoff are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shortest wait must be above 0 and at most the longest wait")]
pub struct BadBackoff;

impl Backoff {
    /// Waits from `min` to `max`.
    ///
    /// # Errors
    /// `min` is 0 or above `max`.
    pub fn new(min: Duration, max: Duration) -> Result<Self, BadBackoff> {
        if min.is_zero() || min > max {
            Err(BadBackoff)
        } else {
            Ok(Self { min, max })
        }
    }

    /// The wait before attempt number `attempt`, counted from 0.
    ///
    /// `jitter` from 0 to 1 picks a point in the upper half of the wait, so that drivers that
    /// died together do not always restart together.
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        let doubled = self
            .min
            .saturating_mul(1u32.checked_shl(attempt).unwrap_or(u32::MAX));
        doubled
            .min(self.max)
            .mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }

    /// The shortest wait.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// The longest wait.
    pub fn max(&self) -> Duration {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let backoff = Backoff::new(ms(100), ms(10_000)).unwrap();
        for (attempt, delay) in [
            (0, 100),
            (1, 200),
            (2, 400),
            (6, 6400),
            (7, 10_000),
            (99, 10_000),
        ] {
            assert_eq!(backoff.delay(attempt, 1.0), ms(delay));
            assert_eq!(backoff.delay(attempt, 0.0), ms(delay / 2));
        }
    }

    #[test]
    fn invalid_bounds_are_rejected() {
        assert_eq!(Backoff::new(ms(0), ms(1)), Err(BadBackoff));
        assert_eq!(Backoff::new(ms(2), ms(1)), Err(BadBackoff));
    }

    proptest! {
        #[test]
        fn the_wait_stays_within_bounds(min in 1u64..10_000, more in 0u64..100_000, attempt: u32, jitter: f64) {
            let backoff = Backoff::new(ms(min), ms(min + more)).unwrap();
            let delay = backoff.delay(attempt, jitter);
            prop_assert!(delay >= ms(min) / 2 && delay <= ms(min + more));
        }
    }
}
