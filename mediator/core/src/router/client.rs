//! The router's state of one client, and the decisions that depend on it. PURE.
//!
//! There may be many thousands of clients, so this struct is kept small: times take eight
//! bytes, and the first device that a client uses is stored inline.

use std::net::SocketAddr;

use amber_proto::ClientId;

use super::hosts::ALONE;
use super::uses::Uses;
use crate::address::PackedAddress;
use crate::limits;
use crate::moment::Moment;
use crate::rate::RateLimit;

/// The router's state of one client.
#[derive(Debug)]
pub struct Client {
    pub id: ClientId,
    /// Its address, port and our socket.
    pub address: PackedAddress,
    /// It has sent a valid message to the mediator itself, so the mediator may send to it.
    pub announced: bool,
    /// The arrival time of its last datagram.
    pub heard: Moment,
    /// Frames received from it.
    pub received: u64,
    /// Frames sent to it.
    pub sent: Sent,
    /// The devices that it uses.
    pub uses: Uses,
    /// Limits how fast it may send.
    pub(super) datagrams: RateLimit<Moment>,
    /// Limits how fast it may send requests to the mediator itself.
    pub(super) requests: RateLimit<Moment>,
    /// Limits how often it is told that a device is unavailable.
    pub(super) refusals: RateLimit<Moment>,
    since: Moment,
    /// Its source address is genuine: it has repeated the number of a PING, or it is on this
    /// machine, where the system rejects forged loopback addresses.
    proved: bool,
    /// Until it is proved, the mediator may send it at most this many bytes of its own: as many
    /// as it has received from it.
    credit: u32,
    /// It has answered a PING before, so a missing answer means something.
    answers: bool,
    /// PINGs sent since the client last gave a sign of life.
    unanswered: u8,
    /// The time of the last PING after which nothing has come from it; or, as long as it has
    /// never answered, the time of the first check.
    pinged: Option<Moment>,
    /// See [`super::hosts`].
    pub(super) crowd: u32,
}

/// Counts frames sent to a client. One bit tells whether any were sent since the client was
/// last heard, and one whether any were sent since [`Sent::look`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent(u64);

impl Sent {
    /// The number of frames.
    pub fn count(self) -> u64 {
        self.0 >> 2
    }

    /// Whether any frame was sent since the client was last heard.
    pub fn since_heard(self) -> bool {
        self.0 & 1 == 1
    }

    pub(super) fn one_more(&mut self) {
        self.0 = (self.0 | 3) + 4;
    }

    fn heard(&mut self) {
        self.0 &= !1;
    }

    /// Whether any frame was sent since the last look.
    fn since_look(self) -> bool {
        self.0 & 2 == 2
    }

    /// From now on, only later frames count for [`Client::holds_nothing`].
    pub(super) fn look(&mut self) {
        self.0 &= !2;
    }
}

/// The rank of a client when one must be evicted; the lowest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// First heard from a short while ago.
    Newcomer,
    /// Known for long, but uses nothing.
    Idle,
    /// Known for long, and uses a device.
    User,
    /// Known for long, uses a device, and has proved its address.
    ProvedUser,
}

/// The number of ranks.
pub(super) const STANDINGS: usize = 4;

/// A report of the network about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No program listens on the port any more.
    PortClosed,
    /// No route, for the moment or for good.
    NoRoute,
}

/// The network has reported an address as unreachable.
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

    /// The network repeats the report, about a client last heard at `heard`. Returns whether
    /// the reports have lasted long enough to be believed.
    pub(super) fn lasts(&mut self, now: Moment, heard: Moment) -> bool {
        if heard > self.since || now.duration_since(self.last) >= limits::UNREACHABLE {
            *self = Self::at(now);
        }
        self.last = now;
        now.duration_since(self.since) >= limits::UNREACHABLE
    }
}

/// The reaction to a silent client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Send it a PING.
    Ping,
    /// It used to answer PINGs and has stopped: it is lost.
    Lost,
}

impl Client {
    pub(super) fn new(now: Moment, id: ClientId, address: PackedAddress) -> Self {
        Self {
            id,
            address,
            announced: false,
            heard: now,
            received: 0,
            sent: Sent::default(),
            uses: Uses::default(),
            datagrams: RateLimit::default(),
            requests: RateLimit::default(),
            refusals: RateLimit::default(),
            since: now,
            proved: address.is_loopback(),
            credit: 0,
            answers: false,
            unanswered: 0,
            pinged: None,
            crowd: ALONE,
        }
    }

    /// Its address and port.
    pub fn address(&self) -> SocketAddr {
        self.address.address()
    }

    /// A datagram of this length has come from it.
    pub(super) fn hear(&mut self, now: Moment, bytes: usize) {
        self.heard = now;
        self.received += 1;
        self.sent.heard();
        self.credit = (self.credit).saturating_add(bytes.try_into().unwrap_or(u32::MAX));
    }

    /// Whether its source address is proved.
    pub fn is_proved(&self) -> bool {
        self.proved
    }

    /// Its source address is proved.
    pub fn prove(&mut self) {
        self.proved = true;
    }

    /// Whether the mediator may send it this many of its own bytes; if so, they are charged. An
    /// unverified address gets no more than it has sent.
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

    /// Whether forgetting it affects nobody, if it stays silent: it is not subscribed to a device,
    /// nothing was sent to it since the last [look](Sent::look), and it got something after its
    /// last request. Without a reply, a request may still be in progress, or it was a command
    /// without a reply, such as a motion.
    pub(super) fn holds_nothing(&self) -> bool {
        let is_served = self.uses.iter().any(|used| used.subscribed) || self.sent.since_look();
        !is_served && (self.uses.is_empty() || self.sent.since_heard())
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

    /// The reaction to its silence now, if any.
    pub(super) fn silence(&mut self, now: Moment) -> Option<Silence> {
        let since = if self.answers {
            if self.pinged.is_some_and(|pinged| self.heard > pinged) {
                // Any datagram after a PING shows that it lives.
                self.pinged = None;
                self.unanswered = 0;
            }
            self.pinged.unwrap_or(self.heard)
        } else {
            // Clients that send without a pause also get PINGs: otherwise their end would not be
            // noticed.
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

    /// Size per client; `clients.rs` has the tables beside it.
    #[test]
    fn a_client_takes_at_most_136_bytes() {
        assert!(size_of::<Option<Client>>() <= 136);
    }
}
