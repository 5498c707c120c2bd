//! How long to wait before a missing device is tried again. PURE.

use std::time::Duration;

/// The first wait: somebody pushes a loose plug back in.
const MIN: Duration = Duration::from_millis(100);

/// The longest wait: whoever plugs a device in expects it to work.
const MAX: Duration = Duration::from_secs(2);

/// Waits that double from one failure to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    failures: u32,
}

impl Retry {
    /// Another failure; how long to wait now.
    pub(crate) fn failed(&mut self) -> Duration {
        let wait = MIN.saturating_mul(1 << self.failures.min(10)).min(MAX);
        self.failures += 1;
        wait
    }

    /// It works again.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_two_seconds() {
        let mut retry = Retry::default();
        let waits: Vec<_> = (0..7).map(|_| retry.failed().as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 2000, 2000]);
        retry.succeeded();
        assert_eq!(retry.failed(), MIN);
        for _ in 0..100 {
            retry.failed();
        }
        assert_eq!(retry.failed(), MAX);
    }
}
