//! A virtual clock and the planned events. PURE.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Events, ordered by time; events with equal times are in the order of planning.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Instant,
    planned: BTreeMap<(Instant, u64), E>,
    count: u64,
}

impl<E> Agenda<E> {
    /// An empty agenda that starts at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            now,
            planned: BTreeMap::new(),
            count: 0,
        }
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Plans an event.
    pub fn plan(&mut self, after: Duration, event: E) {
        self.count += 1;
        self.planned.insert((self.now + after, self.count), event);
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Instant> {
        self.planned.first_key_value().map(|((at, _), _)| *at)
    }

    /// Advances to the next event.
    pub fn take(&mut self) -> Option<E> {
        let ((at, _), event) = self.planned.pop_first()?;
        self.advance(at);
        Some(event)
    }

    /// Advances to a time before the next event.
    pub fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }
}
