//! The listeners of each device, and the messages that maintain its subscriptions. PURE.
//!
//! A driver keeps one subscription by SUBSCRIBE per client, and one by each request that starts a
//! stream. Each of them is a *feed* here. A message belongs to the feed whose listeners read one of
//! its fields; if there is no such feed, it belongs to all feeds of the device.
//!
//! All listeners of a feed share one SUBSCRIBE (or one request). Drivers of the original
//! system keep duplicates: a client that subscribes twice gets everything twice.
//! So SUBSCRIBE alone is repeated only to a new process of the driver. If the driver
//! may still have our subscription, we *renew* it: UNSUBSCRIBE and then SUBSCRIBE,
//! which leaves exactly one entry in both cases.
//!
//! ```text
//!              add                      data
//!   (nothing) -----> Asked ------------------------> Flowing
//!                     | ^ ^ ^                         |   |
//!    no data: renew   +-+ | +-------------------------+   |
//!    (1 s .. 17 min)      |   silent for long: renew      |
//!                         |                               |
//!                         | time to retry                 |
//!            Asked -----> Lost <--------------------------+
//!                          driver died, mediator gone
//!                          (retry: 0.1 s .. 2 s)
//! ```
//!
//! If data stops, the device may have nothing to publish, our UNSUBSCRIBE may have
//! overtaken our SUBSCRIBE, or the driver may have removed us. Renewing is harmless
//! unless it is too frequent: a driver that counts its period from the SUBSCRIBE would
//! never reach its next message. So the longest observed pause sets the pace.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use amber_proto::{Device, MsgType, SynNum};
use bytes::Bytes;
use prost::Message;

use crate::wire::{Envelope, own_fields};

/// The shortest silence that leads to a renewal.
const QUIET: Duration = Duration::from_secs(5);
/// A silent device gets renewals as if this many had already failed: usually it has
/// nothing to publish.
const ATTEMPTS_BEHIND_QUIET: u32 = 3;
/// How long data may still come from a device after the last UNSUBSCRIBE, and the time
/// between two of them.
const LEAVE_AGAIN: Duration = Duration::from_secs(1);
/// Longer periods would overflow `Instant`.
const LONGEST_PERIOD: Duration = Duration::from_secs(86_400);

/// One local listener; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerId(pub(crate) u64);

/// A subscription of this client to a device: the driver keeps only one for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FeedKey {
    pub(crate) device: Device,
    /// The field of the request that starts it; `None` for SUBSCRIBE.
    request: Option<u32>,
}

/// The fields of `DriverMsg` that a listener reads; empty if it reads every message.
pub(crate) type Fields = &'static [u32];

/// The messages that begin and end a subscription, without their numbers. Usually
/// SUBSCRIBE and UNSUBSCRIBE; some devices need others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) join: Bytes,
    pub(crate) leave: Bytes,
    /// The expected time between messages; it extends the silence that is accepted.
    pub(crate) period: Duration,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// SUBSCRIBE.
    Subscribe(FeedKey),
    /// UNSUBSCRIBE, then SUBSCRIBE.
    Renew(FeedKey),
}

/// The consequences of a published message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) deliveries: Vec<Delivery>,
    /// A message to send, if the device should have stopped: UNSUBSCRIBE may be lost, or the
    /// driver was reported dead and was not.
    pub(crate) leave: Option<Bytes>,
}

/// The listeners of this feed get the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) feed: FeedKey,
    /// Whether to report to them first that data flows again.
    pub(crate) resumed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// Ordered, so that simultaneous events have the same order in each run.
    feeds: BTreeMap<FeedKey, DeviceSubscription>,
    left: BTreeMap<FeedKey, Left>,
}

/// A feed without listeners.
#[derive(Debug)]
struct Left {
    leave: Bytes,
    /// The fields of its last listener.
    fields: Fields,
    /// The earliest time of the next UNSUBSCRIBE.
    again_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Listener {
    id: ListenerId,
    fields: Fields,
}

/// The state of one subscription to a device.
#[derive(Debug)]
struct DeviceSubscription {
    listeners: Vec<Listener>,
    terms: Terms,
    /// Ends the last subscription, which may have had other terms.
    leave: Bytes,
    state: State,
    /// Whether listeners know that data stopped.
    interrupted: bool,
    /// The last message, or the SUBSCRIBE if there was none since.
    since: Instant,
    /// The longest time between two messages so far.
    longest_pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asked {
        syn: Option<SynNum>,
        again_at: Instant,
        attempt: u32,
    },
    Flowing {
        quiet_at: Instant,
    },
    Lost {
        again_at: Instant,
        attempt: u32,
        again: Again,
    },
}

/// How to subscribe again to a lost device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// Its driver is a new process.
    Subscribe,
    /// Its driver may still have our subscription.
    Renew,
}

impl FeedKey {
    /// The subscription that a message starts.
    pub(crate) fn of(device: Device, join: &[u8]) -> Self {
        let kind = Envelope::decode(join).ok().and_then(|it| it.kind());
        let request = match kind {
            Some(MsgType::Subscribe) => None,
            _ => Some(own_fields(join).into_iter().min().unwrap_or(0)),
        };
        Self { device, request }
    }

    fn all_of(device: Device) -> RangeInclusive<Self> {
        let key = |request| Self { device, request };
        key(None)..=key(Some(u32::MAX))
    }
}

impl Subscriptions {
    /// Adds a listener. The latest terms apply to all listeners of a feed.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        device: Device,
        id: ListenerId,
        terms: Terms,
        fields: Fields,
    ) -> Option<Ask> {
        let key = FeedKey::of(device, &terms.join);
        let listener = Listener { id, fields };
        if let Some(feed) = self.feeds.get_mut(&key) {
            feed.listeners.push(listener);
            if feed.terms == terms {
                return None;
            }
            feed.terms = terms;
            return match feed.state {
                State::Lost { .. } => None,
                State::Asked { .. } | State::Flowing { .. } => {
                    feed.longest_pause = Duration::ZERO;
                    feed.ask(now, 0);
                    Some(Ask::Renew(key))
                }
            };
        }
        self.left.remove(&key);
        let feed = DeviceSubscription {
            listeners: vec![listener],
            state: asked(now, 0, terms.period),
            leave: terms.leave.clone(),
            terms,
            interrupted: false,
            since: now,
            longest_pause: Duration::ZERO,
        };
        self.feeds.insert(key, feed);
        Some(Ask::Subscribe(key))
    }

    /// Removes a listener. Returns the message to send if it was the last one of its feed.
    pub(crate) fn remove(&mut self, now: Instant, device: Device, id: ListenerId) -> Option<Bytes> {
        let mut feeds = self.feeds.range_mut(FeedKey::all_of(device));
        let (key, feed, at) = feeds.find_map(|(key, feed)| {
            let at = feed.listeners.iter().position(|known| known.id == id)?;
            Some((*key, feed, at))
        })?;
        let Listener { fields, .. } = feed.listeners.remove(at);
        if !feed.listeners.is_empty() {
            return None;
        }
        let feed = self.feeds.remove(&key)?;
        let left = Left {
            leave: feed.leave.clone(),
            fields,
            again_at: now + LEAVE_AGAIN,
        };
        self.left.insert(key, left);
        match feed.state {
            State::Asked { .. } | State::Flowing { .. } => Some(feed.leave),
            State::Lost {
                again: Again::Renew,
                ..
            } => Some(feed.leave),
            State::Lost { .. } => None,
        }
    }

    /// A device has published a message.
    pub(crate) fn published(&mut self, now: Instant, device: Device, message: &[u8]) -> Published {
        let keys = FeedKey::all_of(device);
        let known = self.feeds.range(keys.clone()).count() + self.left.range(keys.clone()).count();
        // Usually there is one, and then the content does not matter.
        let content = match known {
            0 | 1 => Vec::new(),
            _ => own_fields(message),
        };
        let is_claimed = (self.feeds.range(keys.clone())).any(|(_, feed)| feed.claims(&content));
        let leave = match is_claimed {
            true => None,
            false => self.unwanted(now, device, &content),
        };
        let is_of_left = !is_claimed
            && (self.left.range(keys.clone())).any(|(_, left)| reads(left.fields, &content));
        let mut deliveries = Vec::new();
        for (key, feed) in self.feeds.range_mut(keys) {
            let belongs = feed.claims(&content) || !is_claimed && !is_of_left;
            if belongs || feed.reads_everything() {
                let resumed = belongs && feed.flows(now);
                let feed = *key;
                deliveries.push(Delivery { feed, resumed });
            }
        }
        Published { deliveries, leave }
    }

    /// The message that ends a feed without listeners, if a message comes from it and it is time.
    fn unwanted(&mut self, now: Instant, device: Device, content: &[u32]) -> Option<Bytes> {
        let keys = FeedKey::all_of(device);
        let is_alone = self.feeds.range(keys.clone()).next().is_none();
        let left = (self.left.range_mut(keys))
            .map(|(_, left)| left)
            .filter(|left| is_alone || reads(left.fields, content))
            .min_by_key(|left| (!reads(left.fields, content), left.again_at))?;
        if now < left.again_at {
            return None;
        }
        left.again_at = now + LEAVE_AGAIN;
        Some(left.leave.clone())
    }

    /// Records the number of the SUBSCRIBE for an [`Ask`].
    pub(crate) fn sent(&mut self, key: FeedKey, number: SynNum) {
        let Some(feed) = self.feeds.get_mut(&key) else {
            return;
        };
        feed.leave = feed.terms.leave.clone();
        if let State::Asked { syn, .. } = &mut feed.state {
            *syn = Some(number);
        }
    }

    /// The message that ends the last subscription of a feed.
    pub(crate) fn leave(&self, key: FeedKey) -> Bytes {
        let feed = self.feeds.get(&key);
        feed.map(|feed| feed.leave.clone()).unwrap_or_default()
    }

    /// DRIVER_DIED arrived. Returns the feeds whose listeners must learn that data stopped.
    ///
    /// As an answer it counts only if it answers the latest SUBSCRIBE of a feed: an answer to an
    /// earlier request may be outdated.
    pub(crate) fn driver_died(
        &mut self,
        now: Instant,
        device: Device,
        ack: Option<SynNum>,
    ) -> Vec<FeedKey> {
        let feeds = self.feeds.range_mut(FeedKey::all_of(device));
        let told = feeds.filter_map(|(key, feed)| feed.driver_died(now, ack).then_some(*key));
        told.collect()
    }

    /// The mediator is unavailable, and perhaps its drivers. Returns the feeds whose
    /// listeners must learn that data stopped.
    pub(crate) fn mediator_lost(&mut self, now: Instant) -> Vec<FeedKey> {
        let mut told = Vec::new();
        for (key, feed) in &mut self.feeds {
            let attempt = match feed.state {
                State::Lost { .. } => continue,
                State::Asked { attempt, .. } => attempt + 1,
                State::Flowing { .. } => 0,
            };
            feed.state = State::Lost {
                again_at: now + retry_delay(attempt),
                attempt,
                again: Again::Renew,
            };
            if !std::mem::replace(&mut feed.interrupted, true) {
                told.push(*key);
            }
        }
        told
    }

    /// The mediator is available again, or was restarted: the next
    /// [`Self::handle_timeout`] subscribes to everything again. Returns the feeds whose
    /// listeners must learn that data stopped.
    pub(crate) fn mediator_back(&mut self, now: Instant) -> Vec<FeedKey> {
        let told = self.mediator_lost(now);
        for feed in self.feeds.values_mut() {
            feed.state = State::Lost {
                again_at: now,
                attempt: 0,
                again: Again::Renew,
            };
        }
        told
    }

    /// The messages that must be sent again now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<Ask> {
        let mut asks = Vec::new();
        for (key, feed) in &mut self.feeds {
            match feed.state {
                State::Asked {
                    again_at, attempt, ..
                } if again_at <= now => {
                    feed.ask(now, attempt + 1);
                    asks.push(Ask::Renew(*key));
                }
                State::Lost {
                    again_at,
                    attempt,
                    again,
                } if again_at <= now => {
                    feed.ask(now, attempt);
                    asks.push(match again {
                        Again::Subscribe => Ask::Subscribe(*key),
                        Again::Renew => Ask::Renew(*key),
                    });
                }
                State::Flowing { quiet_at } if quiet_at <= now => {
                    feed.ask(now, ATTEMPTS_BEHIND_QUIET);
                    asks.push(Ask::Renew(*key));
                }
                State::Asked { .. } | State::Lost { .. } | State::Flowing { .. } => {}
            }
        }
        asks
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let times = self.feeds.values().map(|feed| match feed.state {
            State::Asked { again_at, .. } | State::Lost { again_at, .. } => again_at,
            State::Flowing { quiet_at } => quiet_at,
        });
        times.min()
    }

    /// The messages that begin and end the subscription.
    pub(crate) fn terms(&self, key: FeedKey) -> Terms {
        let feed = self.feeds.get(&key);
        feed.map(|feed| feed.terms.clone()).unwrap_or_default()
    }

    pub(crate) fn listeners(&self, key: FeedKey) -> impl Iterator<Item = ListenerId> + '_ {
        let feed = self.feeds.get(&key).into_iter();
        feed.flat_map(|feed| feed.listeners.iter().map(|listener| listener.id))
    }

    /// The listeners that miss a lost message whose first field is this one.
    pub(crate) fn readers(&self, device: Device, field: u32) -> Vec<ListenerId> {
        let keys = FeedKey::all_of(device);
        let feeds = || self.feeds.range(keys.clone()).map(|(_, feed)| feed);
        let listeners = || feeds().flat_map(|feed| &feed.listeners);
        // As with messages that arrive, one that nobody claims belongs to all.
        let is_claimed = feeds().any(|feed| feed.claims(&[field]))
            || (self.left.range(keys.clone())).any(|(_, left)| reads(left.fields, &[field]));
        let misses =
            |it: &&Listener| !is_claimed || it.fields.is_empty() || reads(it.fields, &[field]);
        listeners().filter(misses).map(|it| it.id).collect()
    }

    /// The feeds; each has listeners.
    pub(crate) fn feeds(&self) -> impl Iterator<Item = FeedKey> + '_ {
        self.feeds.keys().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }
}

impl DeviceSubscription {
    /// SUBSCRIBE was sent; counts the attempts without data.
    fn ask(&mut self, now: Instant, attempt: u32) {
        self.since = now;
        self.state = asked(now, attempt, self.terms.period);
    }

    /// Data arrived. Returns whether to report to listeners that it flows again.
    fn flows(&mut self, now: Instant) -> bool {
        let pause = now.saturating_duration_since(self.since);
        self.longest_pause = self.longest_pause.max(pause);
        self.since = now;
        self.state = State::Flowing {
            quiet_at: now + self.patience(),
        };
        std::mem::take(&mut self.interrupted)
    }

    /// Returns whether to report to listeners that data stopped.
    fn driver_died(&mut self, now: Instant, ack: Option<SynNum>) -> bool {
        let attempt = match (self.state, ack) {
            (State::Asked { syn, attempt, .. }, Some(_)) if syn == ack => attempt + 1,
            (State::Asked { attempt, .. }, None) => attempt + 1,
            (State::Flowing { .. }, None) => 0,
            (State::Asked { .. } | State::Flowing { .. }, Some(_)) | (State::Lost { .. }, _) => {
                return false;
            }
        };
        self.state = State::Lost {
            again_at: now + retry_delay(attempt),
            attempt,
            again: Again::Subscribe,
        };
        !std::mem::replace(&mut self.interrupted, true)
    }

    /// Whether a listener reads one of these fields.
    fn claims(&self, content: &[u32]) -> bool {
        self.listeners.iter().any(|it| reads(it.fields, content))
    }

    /// Whether a listener reads every message of the device.
    fn reads_everything(&self) -> bool {
        self.listeners.iter().any(|it| it.fields.is_empty())
    }

    /// How long a device that has published may be silent.
    fn patience(&self) -> Duration {
        let period = self
            .terms
            .period
            .max(self.longest_pause)
            .min(LONGEST_PERIOD);
        QUIET.max(3 * period)
    }
}

fn reads(fields: Fields, content: &[u32]) -> bool {
    fields.iter().any(|field| content.contains(field))
}

fn asked(now: Instant, attempt: u32, period: Duration) -> State {
    let delay = Duration::from_secs(1 << attempt.min(10));
    State::Asked {
        syn: None,
        again_at: now + delay + period.min(LONGEST_PERIOD),
        attempt,
    }
}

fn retry_delay(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(5)).min(Duration::from_secs(2))
}

#[cfg(test)]
mod tests;
