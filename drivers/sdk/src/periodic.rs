//! Subscribers that each have their own publishing period. PURE.
//!
//! For devices whose clients subscribe by a request that states a period. Clients that send
//! SUBSCRIBE do not appear here.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use amber_driver::{ClientId, Origin, Periodic, StreamRequest};
//!
//! let mut readings = Periodic::default();
//! let (now, origin) = (Instant::now(), Origin::of(ClientId(5)));
//! // In the method of the stream; the request is its period in milliseconds.
//! let request = StreamRequest::Start(100);
//! readings.handle(now, &origin, request, |ms| Duration::from_millis(*ms));
//! // `Driver::wake_at` returns the time of the next publication,
//! assert_eq!(readings.next_due(), Some(now + Duration::from_millis(100)));
//! // and `Driver::wake` publishes to the clients that are due.
//! for (origin, _) in readings.take_due(now) {
//!     // link.readings(&origin, reading)
//! #   let _ = origin;
//! }
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_proto::{ClientId, Device};

use crate::reply::StreamRequest;
use crate::request::Origin;

/// The shortest period: a shorter one loads the bus without new information.
pub const MIN_PERIOD: Duration = Duration::from_millis(5);

/// Maximum number of subscribers; further ones are rejected.
const MAX_SUBSCRIBERS: usize = 1024;

/// The subscribers, with the data of each request (`T`) and the time when each is due.
#[derive(Debug)]
pub struct Periodic<T> {
    subscribers: BTreeMap<(ClientId, Option<Device>), Subscriber<T>>,
}

#[derive(Debug)]
struct Subscriber<T> {
    what: T,
    period: Duration,
    due: Instant,
}

impl<T> Default for Periodic<T> {
    fn default() -> Self {
        Self {
            subscribers: BTreeMap::new(),
        }
    }
}

impl<T: Clone> Periodic<T> {
    /// Handles a stream request of a client: starts, changes or stops it. Returns `false`
    /// if there are too many subscribers.
    pub fn handle(
        &mut self,
        now: Instant,
        origin: &Origin,
        request: StreamRequest<T>,
        period: impl FnOnce(&T) -> Duration,
    ) -> bool {
        match request {
            StreamRequest::Start(what) => self.subscribe(now, origin, period(&what), what),
            StreamRequest::Stop(_) => {
                self.unsubscribe(origin);
                true
            }
            StreamRequest::ClientGone => {
                for client in &origin.clients {
                    self.remove(*client);
                }
                true
            }
        }
    }

    /// Subscribes the clients of an origin with this period, in place of earlier subscriptions.
    /// Returns `false` if there are too many subscribers.
    pub fn subscribe(&mut self, now: Instant, origin: &Origin, period: Duration, what: T) -> bool {
        let period = period.max(MIN_PERIOD);
        let due = now + period;
        for client in &origin.clients {
            let key = (*client, origin.device);
            if self.subscribers.len() == MAX_SUBSCRIBERS && !self.subscribers.contains_key(&key) {
                return false;
            }
            let what = what.clone();
            let subscriber = Subscriber { what, period, due };
            self.subscribers.insert(key, subscriber);
        }
        true
    }

    /// Unsubscribes the clients of an origin.
    pub fn unsubscribe(&mut self, origin: &Origin) {
        for client in &origin.clients {
            self.subscribers.remove(&(*client, origin.device));
        }
    }

    /// A client is gone.
    pub fn remove(&mut self, client: ClientId) {
        self.subscribers.retain(|(other, _), _| *other != client);
    }

    /// When the next publication is due; `None` without subscribers.
    pub fn next_due(&self) -> Option<Instant> {
        self.subscribers.values().map(|one| one.due).min()
    }

    /// The data for the subscribers that are due now.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = T> {
        let due = move |one: &&Subscriber<T>| one.due <= now;
        self.subscribers
            .values()
            .filter(due)
            .map(|one| one.what.clone())
    }

    /// The subscribers that are due now, with their data. Schedules the next publication one period
    /// later; missed publications are skipped.
    pub fn take_due(&mut self, now: Instant) -> Vec<(Origin, T)> {
        let mut taken = Vec::new();
        for ((client, device), one) in &mut self.subscribers {
            if one.due > now {
                continue;
            }
            let missed = now.duration_since(one.due).as_nanos() / one.period.as_nanos();
            // Keeps the phase, so that small delays do not add up to a lower rate.
            let turns = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
            one.due += one.period.saturating_mul(turns);
            let origin = Origin {
                clients: vec![*client],
                device: *device,
                ..Origin::default()
            };
            taken.push((origin, one.what.clone()));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn client(id: i32) -> Origin {
        Origin {
            clients: vec![ClientId(id)],
            ..Origin::default()
        }
    }

    fn taken(periodic: &mut Periodic<char>, now: Instant) -> Vec<(i32, char)> {
        let taken = periodic.take_due(now);
        let client = |origin: Origin| origin.clients[0].0;
        taken
            .into_iter()
            .map(|(origin, what)| (client(origin), what))
            .collect()
    }

    #[test]
    fn each_client_has_its_own_period_and_waits_one_period_first() {
        let start = Instant::now();
        let mut periodic = Periodic::default();
        assert_eq!(periodic.next_due(), None);
        assert!(periodic.subscribe(start, &client(1), 100 * MS, 'a'));
        assert!(periodic.subscribe(start, &client(2), 30 * MS, 'b'));
        let mut heard = [0, 0];
        assert_eq!(taken(&mut periodic, start), []);
        for time in 1..=1000 {
            for (client, what) in taken(&mut periodic, start + time * MS) {
                assert_eq!(what, ['a', 'b'][client as usize - 1]);
                heard[client as usize - 1] += 1;
            }
        }
        assert_eq!(heard, [10, 33]);
    }

    #[test]
    fn missed_publications_are_skipped_and_the_phase_is_kept() {
        let start = Instant::now();
        let mut periodic = Periodic::default();
        periodic.subscribe(start, &client(1), 100 * MS, 'a');
        assert_eq!(taken(&mut periodic, start + 1050 * MS), [(1, 'a')]);
        assert_eq!(taken(&mut periodic, start + 1050 * MS), []);
        assert_eq!(periodic.next_due(), Some(start + 1100 * MS));
    }

    #[test]
    fn subscribing_again_replaces_the_subscription() {
        let start = Instant::now();
        let mut periodic = Periodic::default();
        periodic.subscribe(start, &client(1), 1000 * MS, 'a');
        periodic.subscribe(start + MS, &client(1), 10 * MS, 'b');
        assert_eq!(taken(&mut periodic, start + 11 * MS), [(1, 'b')]);
        periodic.unsubscribe(&client(1));
        periodic.subscribe(start + 12 * MS, &client(1), 10 * MS, 'c');
        assert_eq!(taken(&mut periodic, start + 22 * MS), [(1, 'c')]);
        periodic.remove(ClientId(1));
        assert_eq!(periodic.next_due(), None);
    }

    #[test]
    fn periods_and_subscribers_have_their_limits() {
        let start = Instant::now();
        let mut periodic = Periodic::default();
        periodic.subscribe(start, &client(0), Duration::ZERO, 'a');
        assert_eq!(periodic.next_due(), Some(start + MIN_PERIOD));
        for id in 1..MAX_SUBSCRIBERS {
            assert!(periodic.subscribe(start, &client(id as i32), MS, 'a'));
        }
        assert!(!periodic.subscribe(start, &client(-1), MS, 'a'));
        assert!(
            periodic.subscribe(start, &client(5), MS, 'b'),
            "a new subscriber is rejected"
        );
    }
}
