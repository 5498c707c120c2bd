//! The listeners of each device, and the messages that keep its data coming. PURE.
//!
//! All listeners of a device share one SUBSCRIBE. Drivers of the original
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
//!                         | time to try again             |
//!            Asked -----> Lost <--------------------------+
//!                          driver died, mediator gone
//!                          (try again: 0.1 s .. 2 s)
//! ```
//!
//! If data stops, the device may have nothing to publish, our UNSUBSCRIBE may have
//! overtaken our SUBSCRIBE, or the driver may have removed us. Renewing is harmless
//! unless it is too frequent: a driver that counts its period from the SUBSCRIBE would
//! never reach its next message. So the longest observed pause sets the pace.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_proto::{Device, SynNum};
use bytes::Bytes;

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
    Subscribe(Device),
    /// UNSUBSCRIBE, then SUBSCRIBE.
    Renew(Device),
}

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// Ordered, so that simultaneous events have the same order in each run.
    feeds: BTreeMap<Device, Feed>,
    left: BTreeMap<Device, Left>,
}

/// A device without listeners.
#[derive(Debug)]
struct Left {
    leave: Bytes,
    /// The earliest time of the next UNSUBSCRIBE.
    again_at: Instant,
}

/// The state of the subscription to a device.
#[derive(Debug)]
struct Feed {
    listeners: Vec<ListenerId>,
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

impl Subscriptions {
    /// Adds a listener. The latest terms apply to all listeners.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        device: Device,
        listener: ListenerId,
        terms: Terms,
    ) -> Option<Ask> {
        if let Some(feed) = self.feeds.get_mut(&device) {
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
                    Some(Ask::Renew(device))
                }
            };
        }
        self.left.remove(&device);
        let feed = Feed {
            listeners: vec![listener],
            state: asked(now, 0, terms.period),
            leave: terms.leave.clone(),
            terms,
            interrupted: false,
            since: now,
            longest_pause: Duration::ZERO,
        };
        self.feeds.insert(device, feed);
        Some(Ask::Subscribe(device))
    }

    /// Removes a listener. Returns the message to send if it was the last one of the
    /// device.
    pub(crate) fn remove(
        &mut self,
        now: Instant,
        device: Device,
        listener: ListenerId,
    ) -> Option<Bytes> {
        let feed = self.feeds.get_mut(&device)?;
        feed.listeners.retain(|known| *known != listener);
        if !feed.listeners.is_empty() {
            return None;
        }
        let feed = self.feeds.remove(&device)?;
        let left = Left {
            leave: feed.leave.clone(),
            again_at: now + LEAVE_AGAIN,
        };
        self.left.insert(device, left);
        match feed.state {
            State::Asked { .. } | State::Flowing { .. } => Some(feed.leave),
            State::Lost {
                again: Again::Renew,
                ..
            } => Some(feed.leave),
            State::Lost { .. } => None,
        }
    }

    /// Data without a listener. Returns the message to send if the device should have
    /// stopped: UNSUBSCRIBE may be lost, or the driver was reported dead and was not.
    pub(crate) fn unwanted(&mut self, now: Instant, device: Device) -> Option<Bytes> {
        let left = self.left.get_mut(&device)?;
        if now < left.again_at {
            return None;
        }
        left.again_at = now + LEAVE_AGAIN;
        Some(left.leave.clone())
    }

    /// Records the number of the SUBSCRIBE for an [`Ask`].
    pub(crate) fn sent(&mut self, device: Device, number: SynNum) {
        let Some(feed) = self.feeds.get_mut(&device) else {
            return;
        };
        feed.leave = feed.terms.leave.clone();
        if let State::Asked { syn, .. } = &mut feed.state {
            *syn = Some(number);
        }
    }

    /// The message that ends the last subscription to a device.
    pub(crate) fn leave(&self, device: Device) -> Bytes {
        let feed = self.feeds.get(&device);
        feed.map(|feed| feed.leave.clone()).unwrap_or_default()
    }

    /// Data arrived. Returns whether to report to listeners that it flows again.
    pub(crate) fn flows(&mut self, now: Instant, device: Device) -> bool {
        let Some(feed) = self.feeds.get_mut(&device) else {
            return false;
        };
        let pause = now.saturating_duration_since(feed.since);
        feed.longest_pause = feed.longest_pause.max(pause);
        feed.since = now;
        feed.state = State::Flowing {
            quiet_at: now + feed.patience(),
        };
        std::mem::take(&mut feed.interrupted)
    }

    /// DRIVER_DIED arrived. Returns whether to report to listeners that data stopped.
    ///
    /// As an answer it counts only if it answers our latest SUBSCRIBE: an answer to an
    /// earlier request may be outdated.
    pub(crate) fn driver_died(
        &mut self,
        now: Instant,
        device: Device,
        ack: Option<SynNum>,
    ) -> bool {
        let Some(feed) = self.feeds.get_mut(&device) else {
            return false;
        };
        let attempt = match (feed.state, ack) {
            (State::Asked { syn, attempt, .. }, Some(_)) if syn == ack => attempt + 1,
            (State::Asked { attempt, .. }, None) => attempt + 1,
            (State::Flowing { .. }, None) => 0,
            (State::Asked { .. } | State::Flowing { .. }, Some(_)) | (State::Lost { .. }, _) => {
                return false;
            }
        };
        feed.state = State::Lost {
            again_at: now + retry_delay(attempt),
            attempt,
            again: Again::Subscribe,
        };
        !std::mem::replace(&mut feed.interrupted, true)
    }

    /// The mediator is unavailable, and perhaps its drivers. Returns the devices whose
    /// listeners must learn that data stopped.
    pub(crate) fn mediator_lost(&mut self, now: Instant) -> Vec<Device> {
        let mut told = Vec::new();
        for (device, feed) in &mut self.feeds {
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
                told.push(*device);
            }
        }
        told
    }

    /// The mediator is available again, or was restarted: the next
    /// [`Self::handle_timeout`] subscribes to everything again. Returns the devices whose
    /// listeners must learn that data stopped.
    pub(crate) fn mediator_back(&mut self, now: Instant) -> Vec<Device> {
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

    /// What must be asked for again now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Vec<Ask> {
        let mut asks = Vec::new();
        for (device, feed) in &mut self.feeds {
            match feed.state {
                State::Asked {
                    again_at, attempt, ..
                } if again_at <= now => {
                    feed.ask(now, attempt + 1);
                    asks.push(Ask::Renew(*device));
                }
                State::Lost {
                    again_at,
                    attempt,
                    again,
                } if again_at <= now => {
                    feed.ask(now, attempt);
                    asks.push(match again {
                        Again::Subscribe => Ask::Subscribe(*device),
                        Again::Renew => Ask::Renew(*device),
                    });
                }
                State::Flowing { quiet_at } if quiet_at <= now => {
                    feed.ask(now, ATTEMPTS_BEHIND_QUIET);
                    asks.push(Ask::Renew(*device));
                }
                State::Asked { .. } | State::Lost { .. } | State::Flowing { .. } => {}
            }
        }
        asks
    }

    /// When [`Self::handle_timeout`] has something.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let times = self.feeds.values().map(|feed| match feed.state {
            State::Asked { again_at, .. } | State::Lost { again_at, .. } => again_at,
            State::Flowing { quiet_at } => quiet_at,
        });
        times.min()
    }

    /// What begins and ends the subscription to a device.
    pub(crate) fn terms(&self, device: Device) -> Terms {
        self.feeds
            .get(&device)
            .map(|feed| feed.terms.clone())
            .unwrap_or_default()
    }

    pub(crate) fn listeners(&self, device: Device) -> &[ListenerId] {
        self.feeds.get(&device).map_or(&[], |feed| &feed.listeners)
    }

    /// The devices with listeners.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Device> + '_ {
        self.feeds.keys().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }
}

impl Feed {
    /// SUBSCRIBE is sent, for the so manieth time without data.
    fn ask(&mut self, now: Instant, attempt: u32) {
        self.since = now;
        self.state = asked(now, attempt, self.terms.period);
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
