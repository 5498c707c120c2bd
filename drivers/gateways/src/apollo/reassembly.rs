//! From datagrams of the Apollo bridge to messages. PURE.
//!
//! Frames may arrive in any order and several times. Memory is bounded by the limits of one
//! source and of all together, and an incomplete message is dropped after a second.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::frame::Frame;
use super::limits::{
    MAX_AHEAD, MAX_BEHIND, MAX_OPEN_AGE, MAX_OPEN_PER_SOURCE, MAX_OPEN_TOTAL, MAX_REMEMBERED,
    OPEN_OVERHEAD, RESTART_SILENCE,
};

/// A complete message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub name: String,
    /// Its number; 0 if the sender does not count.
    pub message_id: u32,
    /// When it was made, in seconds since 1970 on the clock of the sender.
    pub time_s: f64,
    /// The serialized message.
    pub bytes: Vec<u8>,
}

/// The fate of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was the last that its message needed.
    Complete(Message),
    /// Other frames of its message are still missing.
    Incomplete,
    /// It was dropped.
    Dropped(Drop),
}

/// The reason why a frame was dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Drop {
    /// The frame was received before.
    Duplicate,
    /// A message with a higher or the same number is already complete, or its number is far from that
    /// of the last one.
    Old,
    /// Its sizes differ from those of the first frame of its message.
    Contradiction,
    /// The time in the header differs too much from the time here.
    Age,
    /// All incomplete messages together have reached their limit.
    Full,
}

/// Collects the frames of all sources of one port.
#[derive(Debug, Default)]
pub struct Reassembly {
    max_age: Option<Duration>,
    open: Vec<Open>,
    published: HashMap<(IpAddr, String), Published>,
    abandoned: u64,
}

/// An incomplete message.
#[derive(Debug)]
struct Open {
    source: IpAddr,
    message: Message,
    since: Duration,
    piece_size: usize,
    received: Vec<bool>,
    missing: usize,
}

/// The last accepted message of a sender with one name.
#[derive(Clone, Copy, Debug)]
struct Published {
    message_id: u32,
    time_s: f64,
    accepted: Duration,
    /// The number of the last complete message that was [`Arrival::Far`].
    far: Option<u32>,
}

/// The number of a message, compared with that of the last accepted one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Arrival {
    Next,
    Old,
    /// Another message must follow it before it is believed: one forged message must not change the
    /// numbers that are accepted, but a sender that has restarted continues with its own.
    Far,
}

impl Published {
    fn order(&self, message_id: u32, time_s: f64) -> Arrival {
        let ahead = message_id.wrapping_sub(self.message_id);
        let behind = self.message_id.wrapping_sub(message_id);
        if (1..=MAX_AHEAD).contains(&ahead) {
            Arrival::Next
        } else if behind > MAX_BEHIND && time_s > self.time_s {
            Arrival::Far
        } else {
            // Messages from before a restart may still arrive: their time is earlier.
            Arrival::Old
        }
    }

    /// Whether a complete message that is [`Arrival::Far`] follows another such message.
    fn has_restarted(&mut self, message_id: u32) -> bool {
        let last = self.far.replace(message_id);
        last.is_some_and(|last| (1..=MAX_BEHIND).contains(&message_id.wrapping_sub(last)))
    }
}

impl Reassembly {
    /// With `max_age`, frames are dropped whose time differs by more from the time here. The
    /// clocks of both machines must then agree.
    pub fn new(max_age: Option<Duration>) -> Self {
        Self {
            max_age,
            ..Self::default()
        }
    }

    /// Accepts a frame. `now` is the time since any start, `wall_s` that in seconds since 1970.
    pub fn handle_frame(
        &mut self,
        now: Duration,
        wall_s: f64,
        source: IpAddr,
        frame: &Frame<'_>,
    ) -> Outcome {
        self.handle_timeout(now);
        // A NaN is too old as well.
        let is_recent = |most: Duration| {
            (wall_s - frame.time_s)
                .abs()
                .total_cmp(&most.as_secs_f64())
                .is_le()
        };
        if !self.max_age.is_none_or(is_recent) {
            return Outcome::Dropped(Drop::Age);
        }
        let order = self.order(source, frame);
        if order == Arrival::Old {
            return Outcome::Dropped(Drop::Old);
        }
        let at = match self.position(source, frame) {
            Some(at) => at,
            None => match self.open(now, source, frame) {
                Ok(at) => at,
                Err(reason) => return Outcome::Dropped(reason),
            },
        };
        match self.open[at].insert(frame) {
            Err(reason) => Outcome::Dropped(reason),
            Ok(()) if self.open[at].missing > 0 => Outcome::Incomplete,
            Ok(()) => {
                let message = self.open.remove(at).message;
                if order == Arrival::Far && !self.has_restarted(source, &message) {
                    return Outcome::Dropped(Drop::Old);
                }
                self.publish(now, source, &message);
                Outcome::Complete(message)
            }
        }
    }

    /// Drops messages that have waited too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        let before = self.open.len();
        self.open.retain(|open| now < open.since + MAX_OPEN_AGE);
        self.abandoned += (before - self.open.len()) as u64;
        self.published
            .retain(|_, published| now < published.accepted + RESTART_SILENCE);
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.open.iter().map(|open| open.since + MAX_OPEN_AGE).min()
    }

    /// The number of messages dropped because frames did not come in time, or because the same
    /// source sent newer ones.
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// The memory of all incomplete messages, in bytes.
    pub fn used(&self) -> usize {
        self.open.iter().map(Open::cost).sum()
    }

    fn order(&self, source: IpAddr, frame: &Frame<'_>) -> Arrival {
        if frame.message_id == 0 {
            return Arrival::Next;
        }
        let key = (source, frame.name.to_owned());
        let published = self.published.get(&key);
        published.map_or(Arrival::Next, |it| it.order(frame.message_id, frame.time_s))
    }

    fn has_restarted(&mut self, source: IpAddr, message: &Message) -> bool {
        let key = (source, message.name.clone());
        let published = self.published.get_mut(&key);
        published.is_none_or(|it| it.has_restarted(message.message_id))
    }

    fn position(&self, source: IpAddr, frame: &Frame<'_>) -> Option<usize> {
        self.open.iter().position(|open| {
            open.source == source
                && open.message.message_id == frame.message_id
                && open.message.name == frame.name
        })
    }

    /// Begins a message. Returns its place.
    fn open(&mut self, now: Duration, source: IpAddr, frame: &Frame<'_>) -> Result<usize, Drop> {
        let of_source = || self.open.iter().filter(|open| open.source == source);
        if of_source().count() >= MAX_OPEN_PER_SOURCE {
            // They are in the order of their first frames.
            let oldest = self.open.iter().position(|open| open.source == source);
            self.open.remove(oldest.unwrap_or(0));
            self.abandoned += 1;
        }
        if self.used() + frame.message_size + OPEN_OVERHEAD + frame.frames > MAX_OPEN_TOTAL {
            return Err(Drop::Full);
        }
        self.open.push(Open {
            source,
            message: Message {
                name: frame.name.to_owned(),
                message_id: frame.message_id,
                time_s: frame.time_s,
                bytes: vec![0; frame.message_size],
            },
            since: now,
            piece_size: frame.piece_size().ok_or(Drop::Contradiction)?,
            received: vec![false; frame.frames],
            missing: frame.frames,
        });
        Ok(self.open.len() - 1)
    }

    fn publish(&mut self, now: Duration, source: IpAddr, message: &Message) {
        if message.message_id == 0 {
            return;
        }
        let before = self.open.len();
        self.open.retain(|open| {
            let same = open.source == source && open.message.name == message.name;
            !same || is_newer(open.message.message_id, message.message_id)
        });
        self.abandoned += (before - self.open.len()) as u64;
        let key = (source, message.name.clone());
        if self.published.len() >= MAX_REMEMBERED && !self.published.contains_key(&key) {
            let oldest = self.published.iter().min_by_key(|(_, last)| last.accepted);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.published.remove(&oldest);
            }
        }
        let published = Published {
            message_id: message.message_id,
            time_s: message.time_s,
            accepted: now,
            far: None,
        };
        self.published.insert(key, published);
    }
}

impl Open {
    fn cost(&self) -> usize {
        self.message.bytes.len() + self.received.len() + OPEN_OVERHEAD
    }

    fn insert(&mut self, frame: &Frame<'_>) -> Result<(), Drop> {
        let same = frame.message_size == self.message.bytes.len()
            && frame.frames == self.received.len()
            && frame.piece_size() == Some(self.piece_size);
        if !same {
            return Err(Drop::Contradiction);
        }
        let received = self
            .received
            .get_mut(frame.index)
            .ok_or(Drop::Contradiction)?;
        if std::mem::replace(received, true) {
            return Err(Drop::Duplicate);
        }
        let place = self.message.bytes.get_mut(frame.position..);
        let place = place.and_then(|place| place.get_mut(..frame.payload.len()));
        place
            .ok_or(Drop::Contradiction)?
            .copy_from_slice(frame.payload);
        self.missing -= 1;
        Ok(())
    }
}

/// Whether a message number is above another, although numbers wrap.
fn is_newer(number: u32, than: u32) -> bool {
    let ahead = number.wrapping_sub(than);
    ahead != 0 && ahead < 1 << 31
}

#[cfg(test)]
mod tests;
