//! When something fails and when it works again, said once each. PURE.

use std::time::{Duration, Instant};

/// How long it must work before the next failure is a new one.
const STABLE: Duration = Duration::from_secs(2);

/// Whether something fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outage {
    failing: Option<Failing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failing {
    since: Instant,
    /// Since when it works after all.
    works: Option<Instant>,
}

impl Outage {
    /// It fails; `true` when that is news.
    pub(super) fn fails(&mut self, now: Instant) -> bool {
        match &mut self.failing {
            Some(failing) => {
                failing.works = None;
                false
            }
            None => {
                let works = None;
                self.failing = Some(Failing { since: now, works });
                true
            }
        }
    }

    /// It works; how long it did not, when that is over for good.
    pub(super) fn works(&mut self, now: Instant) -> Option<Duration> {
        let failing = self.failing.as_mut()?;
        let works = *failing.works.get_or_insert(now);
        if now.saturating_duration_since(works) < STABLE {
            return None;
        }
        let lasted = works.saturating_duration_since(failing.since);
        self.failing = None;
        Some(lasted)
    }

    /// Whether it has failed and not worked for long since.
    pub(super) fn is_on(&self) -> bool {
        self.failing.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outage_is_news_once_however_it_flaps() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut outage = Outage::default();
        assert_eq!(outage.works(at(0)), None);
        assert!(outage.fails(at(1000)));
        for ms in [1100, 1500] {
            assert_eq!(outage.works(at(ms)), None);
            assert!(!outage.fails(at(ms + 50)));
        }
        assert_eq!(outage.works(at(4000)), None);
        assert!(outage.is_on());
        assert_eq!(outage.works(at(6000)), Some(Duration::from_secs(3)));
        assert!(!outage.is_on());
        assert_eq!(outage.works(at(6001)), None);
        assert!(outage.fails(at(7000)));
    }
}
