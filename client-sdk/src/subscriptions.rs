//! Who listens to which device, and what must be sent so that data comes. PURE.
//!
//! All listeners of a device share one SUBSCRIBE. Drivers of the original
//! system keep duplicates: to subscribe twice means to get everything twice.
//! So a SUBSCRIBE is repeated only where the driver is known to be a new
//! process; where it may or may not have us, we *renew*: UNSUBSCRIBE and then
//! SUBSCRIBE, which ends with exactly one entry either way.
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
//! Data that flowed and stopped may have an innocent reason, or our SUBSCRIBE
//! was overtaken by our own UNSUBSCRIBE, or the driver gave us up for some
//! reason of its own. Renewing does no harm, if it is not done at a pace that
//! would keep a driver which counts its period from the SUBSCRIBE from ever
//! coming to its next message: so the longest pause that was seen counts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_proto::{Device, SynNum};
use bytes::Bytes;

/// So long a device that has published may at least be silent.
const QUIET: Duration = Duration::from_secs(5);
/// A device that fell silent is asked as if that many questions had found no
/// answer: it mostly has nothing to say.
const ATTEMPTS_BEHIND_QUIET: u32 = 3;
/// How long after we left a device data may still come from it, and how often it
/// is told again.
const LEAVE_AGAIN: Duration = Duration::from_secs(1);
/// No longer, or the end of time would be passed.
const LONGEST_PERIOD: Duration = Duration::from_secs(86_400);

/// One local listener; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListenerId(pub(crate) u64);

/// The messages that begin and end a subscription, but for their numbers.
/// Mostly SUBSCRIBE and UNSUBSCRIBE; some devices want something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) join: Bytes,
    pub(crate) leave: Bytes,
    /// How far apart messages will be: so much later silence means something.
    pub(crate) period: Duration,
}

/// What must be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// SUBSCRIBE.
    Subscribe(Device),
    /// UNSUBSCRIBE, then SUBSCRIBE.
    Renew(Device),
}

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// In order, so that what happens at once happens in the same order every time.
    feeds: BTreeMap<Device, Feed>,
    left: BTreeMap<Device, Left>,
}

/// A device whose data is no longer wanted.
#[derive(Debug)]
struct Left {
    leave: Bytes,
    /// Not before this it is told again.
    again_at: Instant,
}

/// What a device publishes, seen from here.
#[derive(Debug)]
struct Feed {
    listeners: Vec<ListenerId>,
    terms: Terms,
    /// Ends what was begun last, which may have been on other terms.
    leave: Bytes,
    state: State,
    /// Listeners have been told that data stopped.
    interrupted: bool,
    /// The last message, or the SUBSCRIBE if there was none since.
    since: Instant,
    /// The longest that was ever waited for a message.
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

/// How to ask a lost device again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// Its driver is a new process.
    Subscribe,
    /// Its driver may still have us.
    Renew,
}

impl Subscriptions {
    /// Adds a listener. The latest terms hold for all.
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

    /// Removes a listener; with the last one of a device its data is no longer
    /// wanted, and this is what to send.
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

    /// Data came that nobody listens to. What to send when it still comes from a
    /// device that was left: the message may have got lost, or the driver was
    /// said to be dead and was not.
    pub(crate) fn unwanted(&mut self, now: Instant, device: Device) -> Option<Bytes> {
        let left = self.left.get_mut(&device)?;
        if now < left.again_at {
            return None;
        }
        left.again_at = now + LEAVE_AGAIN;
        Some(left.leave.clone())
    }

    /// Takes note of the number of the SUBSCRIBE that was made for an [`Ask`].
    pub(crate) fn sent(&mut self, device: Device, number: SynNum) {
        let Some(feed) = self.feeds.get_mut(&device) else {
            return;
        };
        feed.leave = feed.terms.leave.clone();
        if let State::Asked { syn, .. } = &mut feed.state {
            *syn = Some(number);
        }
    }

    /// What ends the subscription to a device that was begun last.
    pub(crate) fn leave(&self, device: Device) -> Bytes {
        let feed = self.feeds.get(&device);
        feed.map(|feed| feed.leave.clone()).unwrap_or_default()
    }

    /// Data came. Says whether listeners must be told that it flows again.
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

    /// DRIVER_DIED came. Says whether listeners must be told that data stopped.
    ///
    /// As an answer it counts only when it answers our latest SUBSCRIBE: an
    /// answer to some other request says nothing about now.
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

    /// The mediator is gone, and with it perhaps every driver, perhaps none.
    /// Gives the devices whose listeners must be told that data stopped.
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

    /// The mediator is there after all, or is a new one: everything is asked
    /// for again at the next [`Self::handle_timeout`]. Gives the devices whose
    /// listeners must be told that data stopped.
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

    /// The devices that somebody listens to.
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
