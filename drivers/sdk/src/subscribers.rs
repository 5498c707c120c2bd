//! Who is subscribed, and when they are to hear something. PURE.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use amber_proto::{ClientId, Device};

/// The shortest period at which a driver publishes.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// The subscribers of one process, apart for each device that it serves.
///
/// The device is `None` in a process that serves one device only.
#[derive(Debug, Default)]
pub struct Subscribers {
    topics: BTreeMap<Option<Device>, Topic>,
}

#[derive(Debug)]
struct Topic {
    clients: BTreeSet<ClientId>,
    due: Instant,
}

impl Subscribers {
    /// Adds a subscriber; `false` if it was one before.
    ///
    /// The first one hears something at once, unless others did less than a
    /// period ago.
    pub fn subscribe(&mut self, device: Option<Device>, client: ClientId, now: Instant) -> bool {
        let topic = self.topics.entry(device).or_insert_with(|| Topic {
            clients: BTreeSet::new(),
            due: now,
        });
        if topic.clients.is_empty() {
            topic.due = topic.due.max(now);
        }
        topic.clients.insert(client)
    }

    /// Removes a subscriber; `false` if it was none.
    pub fn unsubscribe(&mut self, device: Option<Device>, client: ClientId) -> bool {
        (self.topics.get_mut(&device)).is_some_and(|topic| topic.clients.remove(&client))
    }

    /// Removes a subscriber from every device.
    pub fn remove(&mut self, client: ClientId) {
        for topic in self.topics.values_mut() {
            topic.clients.remove(&client);
        }
    }

    /// The subscribers of one device.
    pub fn of(&self, device: Option<Device>) -> impl Iterator<Item = ClientId> + '_ {
        (self.topics.get(&device).into_iter()).flat_map(|topic| topic.clients.iter().copied())
    }

    /// The devices that have subscribers.
    pub fn devices(&self) -> impl Iterator<Item = Option<Device>> + '_ {
        self.listened().map(|(device, _)| *device)
    }

    /// How many subscriptions there are.
    pub fn count(&self) -> usize {
        self.topics.values().map(|topic| topic.clients.len()).sum()
    }

    /// When something is to be published next; `None` while nobody listens.
    pub fn next_due(&self) -> Option<Instant> {
        self.listened().map(|(_, topic)| topic.due).min()
    }

    /// A device for which something is to be published now. Its next turn is
    /// a period later; turns that were missed are left out, not made up for.
    pub fn take_due(&mut self, now: Instant, period: Duration) -> Option<Option<Device>> {
        let period = period.max(MIN_PERIOD);
        let (device, topic) = (self.topics.iter_mut())
            .filter(|(_, topic)| !topic.clients.is_empty() && topic.due <= now)
            .min_by_key(|(_, topic)| topic.due)?;
        let missed = now.duration_since(topic.due).as_nanos() / period.as_nanos();
        // Keeps the phase, so that small delays do not add up to a lower rate.
        topic.due += period.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX));
        topic.due += period;
        if topic.due <= now {
            topic.due = now + period;
        }
        Some(*device)
    }

    fn listened(&self) -> impl Iterator<Item = (&Option<Device>, &Topic)> {
        self.topics
            .iter()
            .filter(|(_, topic)| !topic.clients.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);
    const A: ClientId = ClientId(1);
    const B: ClientId = ClientId(2);

    /// The times in milliseconds at which something is published when one
    /// looks at the clock at these times.
    fn published(subscribers: &mut Subscribers, start: Instant, looks: &[u64]) -> Vec<u64> {
        let is_due = |look: &&u64| {
            let now = start + Duration::from_millis(**look);
            subscribers.take_due(now, PERIOD).is_some()
        };
        looks.iter().filter(is_due).copied().collect()
    }

    #[test]
    fn a_subscriber_is_one_however_often_it_subscribes() {
        let mut subscribers = Subscribers::default();
        let now = Instant::now();
        assert!(subscribers.subscribe(None, A, now));
        assert!(!subscribers.subscribe(None, A, now));
        assert!(subscribers.subscribe(None, B, now));
        assert_eq!(subscribers.of(None).collect::<Vec<_>>(), [A, B]);
        assert!(subscribers.unsubscribe(None, A));
        assert!(!subscribers.unsubscribe(None, A));
        assert_eq!(subscribers.of(None).collect::<Vec<_>>(), [B]);
    }

    #[test]
    fn devices_have_subscribers_of_their_own() {
        let mut subscribers = Subscribers::default();
        let now = Instant::now();
        let [left, right] = [0, 1].map(|id| Some(Device::new(DeviceType::DUMMY, id)));
        subscribers.subscribe(left, A, now);
        subscribers.subscribe(right, A, now);
        subscribers.subscribe(right, B, now);
        assert_eq!(subscribers.count(), 3);
        assert!(!subscribers.unsubscribe(None, A));
        subscribers.remove(A);
        assert_eq!(subscribers.devices().collect::<Vec<_>>(), [right]);
        assert_eq!(subscribers.take_due(now, PERIOD), Some(right));
        assert_eq!(subscribers.take_due(now, PERIOD), None);
    }

    #[test]
    fn nothing_is_due_while_nobody_listens() {
        let mut subscribers = Subscribers::default();
        let now = Instant::now();
        assert_eq!(subscribers.next_due(), None);
        subscribers.subscribe(None, A, now);
        assert_eq!(subscribers.next_due(), Some(now));
        subscribers.unsubscribe(None, A);
        assert_eq!(subscribers.next_due(), None);
        assert_eq!(subscribers.take_due(now + PERIOD, PERIOD), None);
    }

    #[test]
    fn small_delays_do_not_add_up() {
        let mut subscribers = Subscribers::default();
        let start = Instant::now();
        subscribers.subscribe(None, A, start);
        assert_eq!(
            published(
                &mut subscribers,
                start,
                &[0, 99, 103, 199, 201, 299, 304, 400]
            ),
            [0, 103, 201, 304, 400]
        );
    }

    #[test]
    fn being_late_causes_no_burst() {
        let mut subscribers = Subscribers::default();
        let start = Instant::now();
        subscribers.subscribe(None, A, start);
        assert_eq!(
            published(
                &mut subscribers,
                start,
                &[0, 1050, 1051, 1099, 1100, 1101, 1200]
            ),
            [0, 1050, 1100, 1200]
        );
    }

    #[test]
    fn coming_and_going_makes_nothing_faster() {
        let mut subscribers = Subscribers::default();
        let start = Instant::now();
        subscribers.subscribe(None, A, start);
        assert_eq!(published(&mut subscribers, start, &[0]), [0]);
        subscribers.unsubscribe(None, A);
        subscribers.subscribe(None, B, start + Duration::from_millis(10));
        assert_eq!(
            published(&mut subscribers, start, &[10, 50, 99, 100]),
            [100]
        );
        subscribers.remove(B);
        subscribers.subscribe(None, B, start + Duration::from_millis(1234));
        assert_eq!(
            published(&mut subscribers, start, &[1234, 1300, 1334]),
            [1234, 1334]
        );
    }

    #[test]
    fn years_of_sleep_and_a_period_of_nothing_are_survived() {
        let mut subscribers = Subscribers::default();
        let start = Instant::now();
        subscribers.subscribe(None, A, start);
        let later = start + Duration::from_secs(300_000_000);
        for period in [Duration::ZERO, Duration::from_nanos(1), PERIOD] {
            assert_eq!(subscribers.take_due(later, period), Some(None));
            assert!(subscribers.next_due() > Some(later));
            subscribers.topics.get_mut(&None).unwrap().due = start;
        }
    }
}
