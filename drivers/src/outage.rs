//! An unreachable device: when to retry it, what to log, and how long the outage lasted. PURE.
//!
//! Call [`Outage::complain`] for each problem, [`Outage::try_again_at`] when the connection is
//! given up for now, and [`Outage::over`] when the device works.

use std::time::{Duration, Instant};

/// How long a client is assumed to wait for an answer: as long as the commands of `amber`. An answer
/// for one that has given up does no harm.
pub(crate) const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// The first delay: long enough to push a loose plug back in.
const MIN_WAIT: Duration = Duration::from_millis(100);

/// The longest delay: a device that is plugged in should work soon.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How long a device must work before delays are short again.
const STABLE: Duration = Duration::from_secs(5);

/// How many different problems are logged in one outage.
const MAX_SAID: usize = 8;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Outage {
    since: Option<Instant>,
    said: Vec<String>,
    /// When it started to work; `None` after a failure.
    works_since: Option<Instant>,
    has_worked: bool,
    failures: u32,
}

impl Outage {
    /// Reports a problem. Returns whether to log it: each problem is logged once per outage.
    pub(crate) fn complain(&mut self, now: Instant, what: &str) -> bool {
        self.since.get_or_insert(now);
        let is_new = self.said.len() < MAX_SAID && !self.said.iter().any(|said| said == what);
        if is_new {
            self.said.push(what.to_owned());
        }
        is_new
    }

    /// The connection is given up for now; returns when to retry. Delays double after each failure
    /// and are reset when the device has worked for a while.
    pub(crate) fn try_again_at(&mut self, now: Instant) -> Instant {
        if let Some(since) = self.works_since.take()
            && now.saturating_duration_since(since) >= STABLE
        {
            self.failures = 0;
        }
        let wait = MIN_WAIT.saturating_mul(1 << self.failures.min(10));
        self.failures += 1;
        now + wait.min(MAX_WAIT)
    }

    /// The device works. Returns how long the outage lasted, if there was one.
    pub(crate) fn over(&mut self, now: Instant) -> Option<Duration> {
        let since = self.since.take();
        self.said.clear();
        self.works_since = Some(now);
        let was_well = std::mem::replace(&mut self.has_worked, true);
        let since = since.filter(|_| was_well)?;
        Some(now.saturating_duration_since(since))
    }

    /// The current problem: the last one reported.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.said.last().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_two_seconds() {
        let now = Instant::now();
        let mut outage = Outage::default();
        let mut wait = |now| (outage.try_again_at(now) - now).as_millis();
        let waits: Vec<_> = (0..7).map(|_| wait(now)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 2000, 2000]);
        for _ in 0..100 {
            wait(now);
        }
        assert_eq!(wait(now), 2000);
    }

    #[test]
    fn waits_are_short_again_only_after_the_device_was_stable() {
        let now = Instant::now();
        let mut outage = Outage::default();
        for _ in 0..5 {
            outage.try_again_at(now);
        }
        outage.over(now);
        let soon = now + SECOND;
        assert_eq!(outage.try_again_at(soon), soon + 2 * SECOND);
        outage.over(soon);
        let later = soon + STABLE;
        assert_eq!(outage.try_again_at(later), later + MIN_WAIT);
        // Time after a failure does not count as working.
        let much_later = later + 10 * STABLE;
        assert_eq!(outage.try_again_at(much_later), much_later + 2 * MIN_WAIT);
    }

    #[test]
    fn each_problem_is_logged_once_per_outage() {
        let now = Instant::now();
        let mut outage = Outage::default();
        assert_eq!(outage.trouble(), None);
        assert!(outage.complain(now, "unplugged"));
        assert!(outage.complain(now, "not there"));
        assert!(!outage.complain(now, "unplugged"));
        assert_eq!(outage.trouble(), Some("not there"));
        assert_eq!(outage.over(now + SECOND), None, "it starts to work");
        assert_eq!(outage.trouble(), None);

        assert!(outage.complain(now + 2 * SECOND, "unplugged"));
        assert!(!outage.complain(now + 4 * SECOND, "unplugged"));
        assert_eq!(outage.over(now + 5 * SECOND), Some(3 * SECOND));
        assert_eq!(outage.over(now + 6 * SECOND), None, "nothing was wrong");
    }

    #[test]
    fn the_number_of_logged_problems_is_limited() {
        let mut outage = Outage::default();
        let now = Instant::now();
        let said = (0..1000).filter(|i| outage.complain(now, &i.to_string()));
        assert_eq!(said.count(), MAX_SAID);
    }
}
