//! Timers: at most one for each thing. PURE.
//!
//! Most alarms are postponed or cleared by the next message, long before they are due. This must
//! be cheap, so it costs one look-up: the alarm keeps its position in the order. It is moved to
//! its new position, or removed, when the old time comes.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::time::Instant;

use amber_core::hash::Map;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Alarms<T> {
    alarms: Map<T, Times>,
    /// By the time at which they are listed.
    order: BTreeSet<(Instant, T)>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    /// `None` if it was cleared.
    due: Option<Instant>,
    /// Not later than `due`.
    listed: Instant,
}

impl<T> Default for Alarms<T> {
    fn default() -> Self {
        Self {
            alarms: Map::default(),
            order: BTreeSet::new(),
        }
    }
}

impl<T: Copy + Hash + Ord> Alarms<T> {
    /// Sets the timer of `what`, and replaces its previous one.
    pub(super) fn set(&mut self, what: T, at: Instant) {
        let new = Times {
            due: Some(at),
            listed: at,
        };
        match self.alarms.entry(what) {
            Entry::Occupied(mut known) if known.get().listed <= at => {
                known.get_mut().due = Some(at);
                return;
            }
            Entry::Occupied(mut known) => {
                let before = known.insert(new);
                self.order.remove(&(before.listed, what));
            }
            Entry::Vacant(free) => {
                free.insert(new);
            }
        }
        self.order.insert((at, what));
    }

    /// Clears a timer.
    pub(super) fn clear(&mut self, what: T) {
        if let Some(times) = self.alarms.get_mut(&what) {
            times.due = None;
        }
    }

    /// Whether a timer is set.
    pub(super) fn is_set(&self, what: T) -> bool {
        self.due_time(what).is_some()
    }

    /// When to call [`Alarms::pop`]. This may be too early, but not too late.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The number of timers that are due by now. Lists postponed ones anew.
    pub(super) fn due(&mut self, now: Instant) -> usize {
        let listed = self.order.iter().take_while(|(at, _)| *at <= now);
        let listed: Vec<_> = listed.copied().collect();
        let due = listed.into_iter().filter(|place| self.is_due(now, *place));
        due.count()
    }

    /// Takes the first timer that is due by now.
    pub(super) fn pop(&mut self, now: Instant) -> Option<T> {
        while let Some(place) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            if self.is_due(now, place) {
                self.order.remove(&place);
                self.alarms.remove(&place.1);
                return Some(place.1);
            }
        }
        None
    }

    /// Whether a listed timer is due. If not, it gets its new place, or is removed.
    fn is_due(&mut self, now: Instant, place: (Instant, T)) -> bool {
        let (_, what) = place;
        let due = self.due_time(what);
        if due.is_some_and(|due| due <= now) {
            return true;
        }
        self.order.remove(&place);
        match due {
            Some(due) => {
                self.order.insert((due, what));
                let listed = due;
                let due = Some(due);
                self.alarms.insert(what, Times { due, listed });
            }
            None => drop(self.alarms.remove(&what)),
        }
        false
    }

    fn due_time(&self, what: T) -> Option<Instant> {
        self.alarms.get(&what)?.due
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

    #[test]
    fn a_postponed_timer_is_due_at_its_new_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut alarms = Alarms::default();
        alarms.set('a', at(10));
        alarms.set('b', at(12));
        alarms.set('a', at(30));
        assert_eq!((alarms.next(), alarms.due(at(11))), (Some(at(10)), 0));
        assert_eq!(alarms.next(), Some(at(12)), "it is too early only once");
        assert_eq!(alarms.pop(at(11)), None);
        alarms.clear('b');
        assert!(!alarms.is_set('b'));
        assert_eq!((alarms.due(at(12)), alarms.pop(at(12))), (0, None));
        assert_eq!(alarms.next(), Some(at(30)));
        // Cleared, and set again: for later, and for earlier.
        alarms.clear('a');
        alarms.set('a', at(40));
        assert_eq!((alarms.pop(at(39)), alarms.next()), (None, Some(at(40))));
        alarms.clear('a');
        alarms.set('a', at(20));
        assert_eq!((alarms.next(), alarms.due(at(20))), (Some(at(20)), 1));
        assert_eq!((alarms.pop(at(20)), alarms.pop(at(99))), (Some('a'), None));
        assert!(alarms.alarms.is_empty() && alarms.order.is_empty());
    }
}
