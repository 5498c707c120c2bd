//! The health of a device, as its driver reports it, and the events about it. PURE.
//!
//! The state changes immediately. Events are rate-limited: if there were too many, the next one is
//! delayed, and reports the state at that time.

use std::time::{Duration, Instant};

use crate::limits::{HEALTH_EVENT_INTERVAL, HEALTH_EVENTS};

/// The allowed burst of events beyond their long-term rate.
const SLACK: Duration = HEALTH_EVENT_INTERVAL.saturating_mul(HEALTH_EVENTS - 1);

#[derive(Debug)]
pub(super) struct Health {
    trouble: Option<Trouble>,
    /// How long the last trouble lasted.
    lasted: Duration,
    /// The trouble that listeners were told about.
    told: Option<String>,
    /// When the next event would come at an even pace.
    next_event: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) text: String,
    /// When the device stopped working, even if the cause has changed since.
    pub(super) since: Instant,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Trouble(String),
    Recovered { after: Duration },
}

impl Health {
    /// A device without known trouble.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            trouble: None,
            lasted: Duration::ZERO,
            told: None,
            next_event: now,
        }
    }

    /// The current trouble.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// The driver reports trouble, or its end. Returns the number of events that will not be
    /// sent: for this report, or for those that it replaces.
    pub(super) fn report(&mut self, now: Instant, text: Option<String>) -> u64 {
        if self.text() == text.as_deref() {
            return 1;
        }
        let overtaken = self.has_news();
        let since = self.trouble.as_ref().map(|trouble| trouble.since);
        if let Some(since) = since {
            self.lasted = now.saturating_duration_since(since);
        }
        let since = since.unwrap_or(now);
        self.trouble = text.map(|text| Trouble { text, since });
        u64::from(overtaken) + u64::from(!self.has_news())
    }

    /// The driver has ended; listeners get a different event about that. Returns the number of
    /// events that will not be sent.
    pub(super) fn forget(&mut self) -> u64 {
        let waiting = self.has_news();
        (self.trouble, self.told) = (None, None);
        waiting.into()
    }

    /// The event to send now.
    pub(super) fn poll_news(&mut self, now: Instant) -> Option<News> {
        if !self.has_news() || self.next_event > now + SLACK {
            return None;
        }
        self.next_event = self.next_event.max(now) + HEALTH_EVENT_INTERVAL;
        self.told = self.text().map(str::to_owned);
        Some(match self.told.clone() {
            Some(text) => News::Trouble(text),
            None => News::Recovered { after: self.lasted },
        })
    }

    /// When the next event is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = self.next_event.checked_sub(SLACK);
        self.has_news().then(|| due.unwrap_or(self.next_event))
    }

    fn has_news(&self) -> bool {
        self.text() != self.told.as_deref()
    }

    fn text(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone() -> Option<String> {
        Some("it is gone".to_owned())
    }

    #[test]
    fn trouble_and_its_end_are_one_event_each() {
        let begin = Instant::now();
        let mut health = Health::new(begin);
        assert_eq!(
            (health.poll_news(begin), health.next_timeout()),
            (None, None)
        );
        assert_eq!(health.report(begin, gone()), 0);
        let news = Some(News::Trouble("it is gone".into()));
        assert_eq!(health.poll_news(begin), news);
        assert_eq!(health.report(begin, gone()), 1, "the same again");
        assert_eq!(
            (health.poll_news(begin), health.next_timeout()),
            (None, None)
        );

        let later = begin + Duration::from_secs(5);
        let other = Some("it talks nonsense".to_owned());
        assert_eq!(health.report(later, other), 0);
        assert_eq!(health.trouble().unwrap().since, begin);
        let news = Some(News::Trouble("it talks nonsense".into()));
        assert_eq!(health.poll_news(later), news);

        let end = begin + Duration::from_secs(9);
        assert_eq!(health.report(end, None), 0);
        let after = Duration::from_secs(9);
        assert_eq!(health.poll_news(end), Some(News::Recovered { after }));
        assert_eq!(health.trouble(), None);
        assert_eq!(health.report(end, None), 1);
    }

    #[test]
    fn events_of_a_flapping_device_are_bounded_and_the_last_one_is_true() {
        let begin = Instant::now();
        let mut health = Health::new(begin);
        let (mut now, mut events, mut untold) = (begin, 0_u64, 0);
        let end = begin + Duration::from_secs(59);
        let mut reports = 0_u64;
        while now < end {
            for text in [gone(), None] {
                reports += 1;
                untold += health.report(now, text);
                events += u64::from(health.poll_news(now).is_some());
            }
            now += Duration::from_millis(10);
        }
        assert_eq!(
            events,
            u64::from(HEALTH_EVENTS) + 9,
            "a burst, then one in 6 s"
        );
        let last = gone().filter(|_| health.told.is_none());
        untold += health.report(now, last.clone());
        reports += 1;
        assert_eq!(health.poll_news(now), None);
        assert_eq!(
            health.text(),
            last.as_deref(),
            "the state itself is not delayed"
        );
        let due = health.next_timeout().unwrap();
        assert!(due > now && due <= now + HEALTH_EVENT_INTERVAL);
        assert_eq!(health.poll_news(due - Duration::from_millis(1)), None);
        assert!(health.poll_news(due).is_some());
        assert_eq!(health.told, last);
        assert_eq!(
            reports,
            events + 1 + untold,
            "every report is accounted for"
        );
    }

    #[test]
    fn quiet_times_restore_the_allowance() {
        let begin = Instant::now();
        let mut health = Health::new(begin);
        let burst = |health: &mut Health, now| {
            let reports = (0..100).map(|i| (i % 2 == 0).then(|| "gone".to_owned()));
            reports
                .filter(|text| {
                    health.report(now, text.clone());
                    health.poll_news(now).is_some()
                })
                .count()
        };
        assert_eq!(burst(&mut health, begin), HEALTH_EVENTS as usize);
        let later = begin + HEALTH_EVENT_INTERVAL * HEALTH_EVENTS;
        assert_eq!(burst(&mut health, later), HEALTH_EVENTS as usize);
    }

    #[test]
    fn no_event_remains_after_the_end_of_the_driver() {
        let now = Instant::now();
        let mut health = Health::new(now);
        health.report(now, gone());
        assert_eq!(health.forget(), 1, "its event was not sent yet");
        assert_eq!((health.poll_news(now), health.trouble()), (None, None));
        assert_eq!(health.report(now, None), 1);
    }
}
