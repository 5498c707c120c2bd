//! Timers: at most one for each thing. PURE.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Instant;

use amber_core::hash::Map;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Alarms<T> {
    due: Map<T, Instant>,
    order: BTreeSet<(Instant, T)>,
}

impl<T> Default for Alarms<T> {
    fn default() -> Self {
        Self {
            due: Map::default(),
            order: BTreeSet::new(),
        }
    }
}

impl<T: Copy + Hash + Ord> Alarms<T> {
    /// Sets the timer of `what`, and replaces its previous one.
    pub(super) fn set(&mut self, what: T, at: Instant) {
        self.clear(what);
        self.due.insert(what, at);
        self.order.insert((at, what));
    }

    /// Clears a timer.
    pub(super) fn clear(&mut self, what: T) {
        if let Some(at) = self.due.remove(&what) {
            self.order.remove(&(at, what));
        }
    }

    /// Whether a timer is set.
    pub(super) fn is_set(&self, what: T) -> bool {
        self.due.contains_key(&what)
    }

    /// The time of the first timer.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The number of timers that are due by now.
    pub(super) fn due(&self, now: Instant) -> usize {
        let is_due = |(at, _): &&(Instant, T)| *at <= now;
        self.order.iter().take_while(is_due).count()
    }

    /// Takes the first timer that is due by now.
    pub(super) fn pop(&mut self, now: Instant) -> Option<T> {
        let (_, what) = *self.order.first().filter(|(at, _)| *at <= now)?;
        self.clear(what);
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_timer_is_due_once_and_in_order() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut alarms = Alarms::default();
        for (what, ms) in [('a', 30), ('b', 10), ('c', 10), ('d', 20), ('a', 5)] {
            alarms.set(what, at(ms));
        }
        assert!(alarms.is_set('d') && !alarms.is_set('x'));
        alarms.clear('d');
        alarms.clear('x');
        assert_eq!(alarms.next(), Some(at(5)));
        assert_eq!(alarms.pop(at(4)), None);
        assert_eq!(alarms.pop(at(5)), Some('a'));
        assert_eq!(alarms.pop(at(9)), None);
        assert_eq!((alarms.due(at(9)), alarms.due(at(10))), (0, 2));
        assert_eq!(alarms.pop(at(99)), Some('b'));
        assert_eq!(alarms.pop(at(99)), Some('c'));
        assert_eq!((alarms.pop(at(99)), alarms.next()), (None, None));
    }
}
