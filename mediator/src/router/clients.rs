//! Who the clients are: address to id and back, bounded. PURE.
//!
//! When there are too many, somebody makes room for the next: of those who
//! have the lowest [`Standing`] the one that was silent longest. So whoever
//! sends from addresses that he has made up replaces his own made-up clients,
//! not those that have been here for long. All that happens for a message
//! costs the same, however many clients there are.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Instant;

use amber_proto::ClientId;

use super::order::Order;
use super::uses::Uses;
use super::{ClientAddress, DriverKey};
use crate::hash::Map;
use crate::limits;
use crate::rate::Gate;

/// What is known of one client.
#[derive(Debug)]
pub struct Client {
    /// Its id.
    pub id: ClientId,
    /// Where it is.
    pub address: ClientAddress,
    /// It has spoken to the mediator itself, so it may be spoken to.
    pub announced: bool,
    /// When its last datagram came.
    pub heard: Instant,
    /// Frames that came from it.
    pub received: u64,
    /// Frames that went to it.
    pub sent: u64,
    /// The devices that it uses.
    pub uses: Uses,
    /// How fast it may send.
    pub(super) datagrams: Gate,
    /// How fast it may ask the mediator itself.
    pub(super) requests: Gate,
    /// How fast it may be told that a device cannot be used.
    pub(super) refusals: Gate,
    since: Instant,
    proof: Proof,
    keepalive: Keepalive,
    no_route: Option<NoRoute>,
}

/// Whether somebody really is where its datagrams say that they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// It has answered a PING with the number in it, or is on this machine:
    /// the system lets nobody else use that address.
    Given,
    /// The mediator may send it so many bytes of its own: as many as came.
    Credit(u32),
}

/// How much a client counts when somebody has to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Only just heard of.
    Newcomer,
    /// Known for long, but uses nothing.
    Idle,
    /// Known for long, and uses a device.
    User,
    /// The same, and really is where it says.
    ProvedUser,
}

const STANDINGS: usize = 4;

/// Whether a client answers PINGs is learned.
#[derive(Debug, Default)]
struct Keepalive {
    answers: bool,
    unanswered: u8,
    /// The last PING that it has not shown to have survived, or, as long as it
    /// has never answered, when it was looked at first.
    pinged: Option<Instant>,
}

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
struct NoRoute {
    since: Instant,
    last: Instant,
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
    fn new(now: Instant, id: ClientId, address: ClientAddress) -> Self {
        let local = address.address.ip().to_canonical().is_loopback();
        Self {
            id,
            address,
            announced: false,
            heard: now,
            received: 0,
            sent: 0,
            uses: Uses::default(),
            datagrams: Gate::default(),
            requests: Gate::default(),
            refusals: Gate::default(),
            since: now,
            proof: if local {
                Proof::Given
            } else {
                Proof::Credit(0)
            },
            keepalive: Keepalive::default(),
            no_route: None,
        }
    }

    /// The network says that it is not there. Says whether it counts as lost.
    ///
    /// A closed port is certain. Everything else may pass, as when a laptop
    /// changes its access point: it has to go on for a while without a word
    /// from the client. Somebody to whom nothing was sent cannot be unreachable:
    /// that is made up.
    pub fn unreachable(&mut self, now: Instant, how: Unreachable) -> bool {
        if self.sent == 0 {
            return false;
        }
        if how == Unreachable::PortClosed {
            return true;
        }
        let goes_on = |trouble: &&mut NoRoute| {
            self.heard <= trouble.since && now.duration_since(trouble.last) < limits::UNREACHABLE
        };
        match self.no_route.as_mut().filter(goes_on) {
            Some(trouble) => {
                trouble.last = now;
                now.duration_since(trouble.since) >= limits::UNREACHABLE
            }
            None => {
                self.no_route = Some(NoRoute {
                    since: now,
                    last: now,
                });
                false
            }
        }
    }

    fn hear(&mut self, now: Instant, bytes: usize) {
        self.heard = now;
        self.received += 1;
        if let Proof::Credit(credit) = &mut self.proof {
            *credit = credit.saturating_add(bytes.try_into().unwrap_or(u32::MAX));
        }
    }

    /// Whether it has proved that it is where it says.
    pub fn is_proved(&self) -> bool {
        self.proof == Proof::Given
    }

    /// It has proved that it is where it says.
    pub fn prove(&mut self) {
        self.proof = Proof::Given;
    }

    /// Whether the mediator may send it so many bytes on its own account; if
    /// so they count as sent. To an address that may be made up, no more goes
    /// than came from there.
    pub(super) fn may_be_sent(&mut self, bytes: usize) -> bool {
        match &mut self.proof {
            Proof::Given => true,
            Proof::Credit(credit) => {
                let rest = u32::try_from(bytes)
                    .ok()
                    .and_then(|bytes| credit.checked_sub(bytes));
                *credit = rest.unwrap_or(*credit);
                rest.is_some()
            }
        }
    }

    /// It has answered a PING.
    pub fn answered_ping(&mut self) {
        self.keepalive = Keepalive {
            answers: true,
            ..Keepalive::default()
        };
    }

    fn standing(&self) -> Standing {
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

    fn silence(&mut self, now: Instant) -> Option<Silence> {
        let keepalive = &mut self.keepalive;
        let since = if keepalive.answers {
            if keepalive.pinged.is_some_and(|pinged| self.heard > pinged) {
                // Anything that comes after a PING shows that it lives.
                keepalive.pinged = None;
                keepalive.unanswered = 0;
            }
            keepalive.pinged.unwrap_or(self.heard)
        } else {
            // It is asked however much it says: the end of one that never
            // pauses would not be noticed otherwise.
            *keepalive.pinged.get_or_insert(now)
        };
        if now.duration_since(since) < limits::CLIENT_PING_INTERVAL {
            return None;
        }
        if keepalive.unanswered < limits::CLIENT_PINGS {
            keepalive.unanswered += 1;
            keepalive.pinged = Some(now);
            return Some(Silence::Ping);
        }
        keepalive.answers.then_some(Silence::Lost)
    }
}

/// All clients.
#[derive(Debug)]
pub struct Clients {
    limit: usize,
    /// Where each client stands in `slots`.
    addresses: Map<ClientAddress, u32>,
    ids: Map<ClientId, u32>,
    in_order: BTreeSet<ClientId>,
    announced: BTreeSet<ClientId>,
    slots: Vec<Option<Client>>,
    free: Vec<u32>,
    order: Order<STANDINGS>,
}

impl Clients {
    /// Room for so many.
    pub fn new(limit: NonZeroUsize) -> Self {
        Self {
            // Takes no memory for clients that may never come.
            limit: limit.get(),
            addresses: Map::default(),
            ids: Map::default(),
            in_order: BTreeSet::new(),
            announced: BTreeSet::new(),
            slots: Vec::new(),
            free: Vec::new(),
            order: Order::default(),
        }
    }

    /// The client at an address, from which so many bytes have just come.
    pub fn heard(
        &mut self,
        now: Instant,
        from: &ClientAddress,
        bytes: usize,
    ) -> Option<&mut Client> {
        let slot = *self.addresses.get(from)?;
        let client = self.slots[slot as usize].as_mut()?;
        client.hear(now, bytes);
        self.order.move_to_end(slot, client.standing() as usize);
        Some(client)
    }

    /// The client that makes room for the next new one, when there is no room.
    pub fn to_evict(&self) -> Option<ClientId> {
        if self.addresses.len() < self.limit {
            return None;
        }
        let slot = self.order.first()?;
        self.slots[slot as usize].as_ref().map(|client| client.id)
    }

    /// Adds a client from which so many bytes have come; the caller has made
    /// room.
    pub fn add(&mut self, now: Instant, id: ClientId, address: ClientAddress, bytes: usize) {
        let mut client = Client::new(now, id, address);
        client.hear(now, bytes);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.order.move_to_end(slot, client.standing() as usize);
        self.slots[slot as usize] = Some(client);
        self.addresses.insert(address, slot);
        self.ids.insert(id, slot);
        self.in_order.insert(id);
    }

    /// Forgets a client.
    pub fn remove(&mut self, id: ClientId) -> Option<Client> {
        let slot = self.ids.remove(&id)?;
        let client = self.slots[slot as usize].take()?;
        self.free.push(slot);
        self.order.remove(slot);
        self.addresses.remove(&client.address);
        self.in_order.remove(&id);
        self.announced.remove(&id);
        Some(client)
    }

    /// From now on the mediator may speak to it on its own account.
    pub fn announce(&mut self, id: ClientId) {
        if let Some(client) = self.client_mut(id) {
            client.announced = true;
            self.announced.insert(id);
        }
    }

    /// The mediator may not speak to it any more.
    pub fn renounce(&mut self, id: ClientId) {
        if let Some(client) = self.client_mut(id) {
            client.announced = false;
            self.announced.remove(&id);
        }
    }

    /// One client.
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.slots[*self.ids.get(&id)? as usize].as_ref()
    }

    /// One client.
    pub fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.slots[*self.ids.get(&id)? as usize].as_mut()
    }

    /// The client at an address.
    pub fn at(&self, address: &ClientAddress) -> Option<&Client> {
        self.slots[*self.addresses.get(address)? as usize].as_ref()
    }

    /// The announced clients whose silence calls for something.
    pub fn silent(&mut self, now: Instant) -> Vec<(ClientId, Silence)> {
        let Self {
            ids,
            slots,
            announced,
            ..
        } = self;
        let silence = |id: &ClientId| {
            let client = slots[*ids.get(id)? as usize].as_mut()?;
            Some((*id, client.silence(now)?))
        };
        announced.iter().filter_map(silence).collect()
    }

    /// Whether any client is announced, so that silence has to be watched.
    pub fn any_announced(&self) -> bool {
        !self.announced.is_empty()
    }

    /// All of them, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.in_order.iter().filter_map(|id| self.client(*id))
    }

    /// Their ids, in order.
    pub fn ids(&self) -> Vec<ClientId> {
        self.in_order.iter().copied().collect()
    }

    /// Ends the uses of a driver, whose process has ended: the next process
    /// knows none of its clients.
    pub(super) fn driver_down(&mut self, driver: DriverKey) -> Vec<(ClientId, Vec<super::Use>)> {
        let mut ended = Vec::new();
        for (slot, client) in self.slots.iter_mut().enumerate() {
            let Some(client) = client else { continue };
            let uses = client.uses.end(|used| used.driver == driver);
            if !uses.is_empty() {
                ended.push((client.id, uses));
                if client.standing() == Standing::Idle {
                    self.order.move_to_end(slot as u32, Standing::Idle as usize);
                }
            }
        }
        ended.sort_unstable_by_key(|(id, _)| *id);
        ended
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}
