//! The subscribers, and when the next publication is due. PURE.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use amber_proto::{ClientId, Device};

/// The shortest period at which a driver publishes.
const MIN_PERIOD: Duration = Duration::from_millis(1);

/// The maximum delay of a timer with millisecond resolution, with a margin. Without it, shorter
/// periods would skip every second publication.
const TIMER_DELAY: Duration = Duration::from_millis(3);

/// The subscribers of one process, separate for each device that it serves.
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
    /// Adds a subscriber. Returns `false` if it was already subscribed.
    ///
    /// The first subscriber gets a message at once, unless the last publication was less than a
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

    /// Removes a subscriber. Returns `false` if it was not subscribed.
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

    /// The number of subscriptions.
    pub fn count(&self) -> usize {
        self.topics.values().map(|topic| topic.clients.len()).sum()
    }

    /// When to publish next; `None` while there are no subscribers.
    pub fn next_due(&self) -> Option<Instant> {
        self.listened().map(|(_, topic)| topic.due).min()
    }

    /// A device that is due to publish now. Schedules the next publication one period later. Missed
    /// publications are skipped, unless only the timer was late.
    pub fn take_due(&mut self, now: Instant, period: Duration) -> Option<Option<Device>> {
        let period = period.max(MIN_PERIOD);
        let (device, topic) = (self.topics.iter_mut())
            .filter(|(_, topic)| !topic.clients.is_empty() && topic.due <= now)
            .min_by_key(|(_, topic)| topic.due)?;
        let late = now.duration_since(topic.due);
        if period < TIMER_DELAY && late < TIMER_DELAY {
            topic.due += period;
            return Some(*device);
        }
        let missed = late.as_nanos() / period.as_nanos();
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
mod tests;
