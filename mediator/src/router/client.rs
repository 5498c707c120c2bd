//! One client: what is known of it, and what follows from that. PURE.
//!
//! There may be many thousands, so its size is looked after: times take eight
//! bytes, and the first device that it uses stands in place.

use std::net::SocketAddr;

use amber_proto::ClientId;

use super::hosts::ALONE;
use super::place::Place;
use super::uses::Uses;
use crate::limits;
use crate::moment::Moment;
use crate::rate::Gate;

/// What is known of one client.
#[derive(Debug)]
pub struct Client {
    /// Its id.
    pub id: ClientId,
    /// Where it is.
    pub place: Place,
    /// It has spoken to the mediator itself, so it may be spoken to.
    pub announced: bool,
    /// When its last datagram came.
    pub heard: Moment,
    /// Frames that came from it.
    pub received: u64,
    /// Frames that went to it.
    pub sent: Sent,
    /// The devices that it uses.
    pub uses: Uses,
    /// How fast it may send.
    pub(super) datagrams: Gate<Moment>,
    /// How fast it may ask the mediator itself.
    pub(super) requests: Gate<Moment>,
    /// How fast it may be told that a device cannot be used.
    pub(super) refusals: Gate<Moment>,
    since: Moment,
    /// It really is where its datagrams say that they come from: it has answered
    /// a PING with the number in it, or is on this machine, where the system lets
    /// nobody else use that address.
    proved: bool,
    /// Until then, the mediator may send it so many bytes of its own: as many
    /// as came.
    credit: u32,
    /// It answers PINGs: that is learned.
    answers: bool,
    /// PINGs since it was last known to live.
    unanswered: u8,
    /// The last PING that it has not shown to have survived, or, as long as it
    /// has never answered, when it was looked at first.
    pinged: Option<Moment>,
    /// See [`super::hosts`].
    pub(super) crowd: u32,
}

/// Counts frames that went to a client, and knows whether any did since something came from
/// it, in the space of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent(u64);

impl Sent {
    /// How many.
    pub fn count(self) -> u64 {
        self.0 >> 1
    }

    /// Whether any did since something came from the client.
    pub fn since_heard(self) -> bool {
        self.0 & 1 == 1
    }

    pub(super) fn one_more(&mut self) {
        self.0 = (self.0 | 1) + 2;
    }

    fn heard(&mut self) {
        self.0 &= !1;
    }
}

/// How much a client counts when somebody has to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Only just heard of.
    Newcomer,
    /// Known for long, but uses nothing.
    Idle,
    /// Known for long, and uses a device.
    User,
    /// The same, and really is where it says.
    ProvedUser,
}

/// How many there are.
pub(super) const STANDINGS: usize = 4;

/// What the network says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// Nobody listens there: the program has ended.
    PortClosed,
    /// It cannot be reached, for the moment or for good.
    NoRoute,
}

/// An address cannot be reached.
#[derive(Debug)]
pub(super) struct NoRoute {
    since: Moment,
    last: Moment,
}

impl NoRoute {
    pub(super) fn at(now: Moment) -> Self {
        Self {
            since: now,
            last: now,
        }
    }

    /// The network says so again, of somebody who was heard last at that time.
    /// Says whether it has gone on for long enough to believe it.
    pub(super) fn lasts(&mut self, now: Moment, heard: Moment) -> bool {
        if heard > self.since || now.duration_since(self.last) >= limits::UNREACHABLE {
            *self = Self::at(now);
        }
        self.last = now;
        now.duration_since(self.since) >= limits::UNREACHABLE
    }
}

/// What the silence of a client calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Ask whether it is there.
    Ping,
    /// It used to answer and does not any more.
    Lost,
}

impl Client {
    pub(super) fn new(now: Moment, id: ClientId, place: Place) -> Self {
        Self {
            id,
            place,
            announced: false,
            heard: now,
            received: 0,
            sent: Sent::default(),
            uses: Uses::default(),
            datagrams: Gate::default(),
            requests: Gate::default(),
            refusals: Gate::default(),
            since: now,
            proved: place.is_loopback(),
            credit: 0,
            answers: false,
            unanswered: 0,
            pinged: None,
            crowd: ALONE,
        }
    }

    /// Its address and port.
    pub fn address(&self) -> SocketAddr {
        self.place.address()
    }

    /// A datagram of so many bytes has come from it.
    pub(super) fn hear(&mut self, now: Moment, bytes: usize) {
        self.heard = now;
        self.received += 1;
        self.sent.heard();
        self.credit = (self.credit).saturating_add(bytes.try_into().unwrap_or(u32::MAX));
    }

    /// Whether it has proved that it is where it says.
    pub fn is_proved(&self) -> bool {
        self.proved
    }

    /// It has proved that it is where it says.
    pub fn prove(&mut self) {
        self.proved = true;
    }

    /// Whether the mediator may send it so many bytes on its own account; if
    /// so they count as sent. To an address that may be made up, no more goes
    /// than came from there.
    pub(super) fn may_be_sent(&mut self, bytes: usize) -> bool {
        let rest = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| self.credit.checked_sub(bytes));
        self.credit = rest.unwrap_or(self.credit);
        self.proved || rest.is_some()
    }

    /// It has answered a PING.
    pub fn answered_ping(&mut self) {
        self.answers = true;
        self.unanswered = 0;
        self.pinged = None;
    }

    pub(super) fn standing(&self) -> Standing {
        let proved = self.is_proved();
        if !proved && self.heard.duration_since(self.since) < limits::NEWCOMER {
            Standing::Newcomer
        } else if self.uses.is_empty() {
            Standing::Idle
        } else if proved {
            Standing::ProvedUser
        } else {
            Standing::User
        }
    }

    /// What its silence calls for now, if anything.
    pub(super) fn silence(&mut self, now: Moment) -> Option<Silence> {
        let since = if self.answers {
            if self.pinged.is_some_and(|pinged| self.heard > pinged) {
                // Anything that comes after a PING shows that it lives.
                self.pinged = None;
                self.unanswered = 0;
            }
            self.pinged.unwrap_or(self.heard)
        } else {
            // It is asked however much it says: the end of one that never
            // pauses would not be noticed otherwise.
            *self.pinged.get_or_insert(now)
        };
        if now.duration_since(since) < limits::CLIENT_PING_INTERVAL {
            return None;
        }
        if self.unanswered < limits::CLIENT_PINGS {
            self.unanswered += 1;
            self.pinged = Some(now);
            return Some(Silence::Ping);
        }
        self.answers.then_some(Silence::Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a thousand clients cost; `clients.rs` has the tables beside them.
    #[test]
    fn it_is_small() {
        assert!(size_of::<Option<Client>>() <= 136);
    }
}
