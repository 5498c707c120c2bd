//! What happens when: a virtual clock and what is planned. PURE.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Things to happen, in the order of their times; of equal times, in the order
/// in which they were planned.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Instant,
    planned: BTreeMap<(Instant, u64), E>,
    count: u64,
}

impl<E> Agenda<E> {
    /// An empty one that begins at `now`.
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

    /// Plans something.
    pub fn plan(&mut self, after: Duration, event: E) {
        self.count += 1;
        self.planned.insert((self.now + after, self.count), event);
    }

    /// When the next thing is planned.
    pub fn next(&self) -> Option<Instant> {
        self.planned.first_key_value().map(|((at, _), _)| *at)
    }

    /// Goes on to the next thing that is planned.
    pub fn take(&mut self) -> Option<E> {
        let ((at, _), event) = self.planned.pop_first()?;
        self.advance(at);
        Some(event)
    }

    /// Goes on to a later time, when nothing is planned before.
    pub fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }
}
