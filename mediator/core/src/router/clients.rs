//! The client table: address to id and back, bounded. PURE.
//!
//! When the table is full, a new client evicts another: the one that was silent longest among
//! those with the lowest [`Standing`]. So a program that forges source addresses replaces its
//! own forged clients, not established ones. A host that has reached its own limit evicts one
//! of its own clients, so opening many ports does not displace clients of other hosts. In both
//! cases, clients with a genuine address that were heard a moment ago are not evicted as long as
//! there are silent ones. So clients that arrive together do not evict each other. The work per
//! message does not depend on the number of clients.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use amber_proto::ClientId;

use super::client::{Client, NoRoute, STANDINGS, Silence, Standing, Unreachable};
use super::eviction_order::{EvictionOrder, Links};
use super::hosts::Hosts;
use crate::address::PackedAddress;
use crate::address::{ClientAddress, DriverKey};
use crate::hash::{Index, Map};
use crate::limits;
use crate::moment::{Epoch, Moment};
use crate::rate::Rate;

/// All clients.
#[derive(Debug)]
pub struct Clients {
    limit: usize,
    per_host: usize,
    epoch: Epoch,
    slots: Vec<Option<Client>>,
    free: Vec<u32>,
    /// The slot of each client, by address.
    by_address: Index,
    by_id: Index,
    announced: usize,
    order: EvictionOrder<STANDINGS>,
    links: Links,
    hosts: Hosts,
    /// Clients that the network reports as unreachable; hardly any.
    no_routes: Map<ClientId, NoRoute>,
}

/// The reason why a client is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomFor {
    /// The table is full.
    AnyHost,
    /// Its host has too many clients.
    ItsHost,
}

/// A client that made room for another.
#[derive(Debug)]
pub struct Evicted {
    /// What was known about it.
    pub client: Client,
    /// Why there was no room.
    pub room: RoomFor,
    /// The address of the new client.
    pub newcomer: SocketAddr,
}

/// How full the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// Maximum number of clients.
    pub limit: usize,
    /// Maximum number of clients of one host.
    pub per_host: usize,
    /// The host with the most clients: the address of one of them, and their number.
    pub fullest_host: Option<(SocketAddr, usize)>,
}

impl Clients {
    /// A table for at most `limit` clients. No later event is earlier than `now`.
    pub fn new(now: Instant, limit: NonZeroUsize) -> Self {
        Self {
            // Allocates nothing in advance.
            limit: limit.get(),
            per_host: limits::CLIENTS_PER_HOST,
            epoch: Epoch::at(now),
            slots: Vec::new(),
            free: Vec::new(),
            by_address: Index::default(),
            by_id: Index::default(),
            announced: 0,
            order: EvictionOrder::default(),
            links: Links::default(),
            hosts: Hosts::default(),
            no_routes: Map::default(),
        }
    }

    /// Sets how many clients one host may have. A host that already has more evicts one when
    /// its next client comes.
    pub(super) fn set_per_host(&mut self, limit: NonZeroUsize) {
        self.per_host = limit.get();
    }

    /// A time in the form that clients store.
    pub fn moment(&self, time: Instant) -> Moment {
        self.epoch.moment(time)
    }

    /// The start of the moments that clients store.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The time since a client was last heard.
    pub fn silent_for(&self, now: Instant, client: &Client) -> Duration {
        self.moment(now).duration_since(client.heard)
    }

    /// The client at an address, from which a datagram of this length has just come.
    pub(super) fn heard(
        &mut self,
        now: Moment,
        from: &PackedAddress,
        bytes: usize,
    ) -> Option<&mut Client> {
        let slot = self.slot_at(from)?;
        let client = self.slots[slot as usize].as_mut()?;
        client.hear(now, bytes);
        let standing = client.standing() as usize;
        self.order.move_to_end(&mut self.links, slot, standing);
        self.hosts.heard(client.crowd, slot, standing);
        Some(client)
    }

    /// The client to evict before a new one at `address` can be added; `None` if there is room.
    pub(super) fn to_evict(
        &self,
        now: Moment,
        address: &PackedAddress,
    ) -> Option<(ClientId, RoomFor)> {
        let is_silent = |slot: u32| {
            let client = self.slots[slot as usize].as_ref();
            client.is_some_and(|client| now.duration_since(client.heard) >= limits::SILENT)
        };
        let crowd = (self.hosts).crowd(&self.slots, address.host(), is_silent);
        let (slot, room) = match crowd {
            Some((len, first)) if len >= self.per_host => (first, RoomFor::ItsHost),
            _ if self.len() >= self.limit => {
                // Newcomers may be forged: they go first even if they were just heard.
                let goes = |(standing, slot): &(usize, u32)| {
                    *standing == Standing::Newcomer as usize || is_silent(*slot)
                };
                let chosen = self.order.firsts().find(goes).map(|(_, slot)| slot);
                (chosen.or_else(|| self.order.first())?, RoomFor::AnyHost)
            }
            _ => return None,
        };
        Some((self.slots[slot as usize].as_ref()?.id, room))
    }

    /// A client that was just heard now has another standing: it began or ended a use, or has
    /// proved its address.
    pub(super) fn rank_again(&mut self, id: ClientId) {
        let Some(slot) = self.slot_of(id) else {
            return;
        };
        if let Some(client) = &self.slots[slot as usize] {
            let standing = client.standing() as usize;
            self.order.move_to_end(&mut self.links, slot, standing);
            self.hosts.heard(client.crowd, slot, standing);
        }
    }

    /// Adds a client that has sent this many bytes. The caller has made room.
    pub(super) fn add(&mut self, now: Moment, id: ClientId, address: PackedAddress, bytes: usize) {
        let mut client = Client::new(now, id, address);
        client.hear(now, bytes);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let standing = client.standing() as usize;
        self.order.move_to_end(&mut self.links, slot, standing);
        self.slots[slot as usize] = Some(client);
        self.hosts.add(&mut self.slots, slot);
        let slots = &self.slots;
        self.by_address.insert(slot, |slot| {
            slots[slot as usize].as_ref().map(|c| c.address)
        });
        self.by_id
            .insert(slot, |slot| slots[slot as usize].as_ref().map(|c| c.id));
    }

    /// Removes a client.
    pub(super) fn remove(&mut self, id: ClientId) -> Option<Client> {
        let slot = self.slot_of(id)?;
        self.hosts.remove(&mut self.slots, slot);
        let slots = &self.slots;
        let address = slots[slot as usize].as_ref()?.address;
        self.by_id.remove(slot, &id);
        self.by_address.remove(slot, &address);
        let client = self.slots[slot as usize].take()?;
        self.free.push(slot);
        self.order.remove(&mut self.links, slot);
        self.no_routes.remove(&id);
        self.announced -= usize::from(client.announced);
        Some(client)
    }

    /// The network reports a client as unreachable. Returns whether the client counts as lost.
    ///
    /// A closed port is certain. Anything else may be temporary, for example a laptop that
    /// changes its access point; so it must last for a while with no datagram from the client.
    /// If nothing was sent to the client since it was last heard, the report is ignored: it is
    /// forged, or concerns an earlier program on the same port. If it does concern this one,
    /// the next datagram to it brings another report.
    pub fn unreachable(&mut self, now: Instant, id: ClientId, how: Unreachable) -> bool {
        let now = self.moment(now);
        let Some(client) = self.client(id).filter(|client| client.sent.since_heard()) else {
            return false;
        };
        if how == Unreachable::PortClosed {
            return true;
        }
        let heard = client.heard;
        let trouble = (self.no_routes.entry(id)).or_insert_with(|| NoRoute::at(now));
        trouble.lasts(now, heard)
    }

    /// Whether a client may send one more request to the mediator now. All clients of another
    /// machine share one rate, so opening more ports does not raise it.
    pub(super) fn may_request(&mut self, id: ClientId, now: Moment, rate: Rate) -> bool {
        let Some(slot) = self.slot_of(id) else {
            return true;
        };
        let Some(client) = self.slots[slot as usize].as_mut() else {
            return true;
        };
        let together =
            client.address.is_loopback() || self.hosts.may_request(client.crowd, now, rate);
        together && client.requests.pass(now, rate)
    }

    /// From now on the mediator may send its own messages to this client.
    pub(super) fn announce(&mut self, id: ClientId) {
        self.set_announced(id, true);
    }

    /// The mediator may no longer send its own messages to this client.
    pub(super) fn renounce(&mut self, id: ClientId) {
        self.set_announced(id, false);
    }

    fn set_announced(&mut self, id: ClientId, announced: bool) {
        if let Some(client) = self.client_mut(id) {
            let before = std::mem::replace(&mut client.announced, announced);
            self.announced += usize::from(announced);
            self.announced -= usize::from(before);
        }
    }

    /// One client.
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.slots[self.slot_of(id)? as usize].as_ref()
    }

    /// One client.
    pub fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        let slot = self.slot_of(id)?;
        self.slots[slot as usize].as_mut()
    }

    pub fn at(&self, address: &ClientAddress) -> Option<&Client> {
        let slot = self.slot_at(&PackedAddress::from(*address))?;
        self.slots[slot as usize].as_ref()
    }

    fn slot_at(&self, address: &PackedAddress) -> Option<u32> {
        let is_it = |client: &Client| client.address == *address;
        (self.by_address).find(address, |slot| {
            self.slots[slot as usize].as_ref().is_some_and(is_it)
        })
    }

    fn slot_of(&self, id: ClientId) -> Option<u32> {
        let is_it = |client: &Client| client.id == id;
        (self.by_id).find(&id, |slot| {
            self.slots[slot as usize].as_ref().is_some_and(is_it)
        })
    }

    /// The announced clients whose silence calls for an action.
    pub fn silent(&mut self, now: Instant) -> Vec<(ClientId, Silence)> {
        let now = self.moment(now);
        let silence = |client: &mut Client| Some((client.id, client.silence(now)?));
        let announced = (self.slots.iter_mut().flatten()).filter(|client| client.announced);
        let mut silent: Vec<_> = announced.filter_map(silence).collect();
        silent.sort_unstable_by_key(|(id, _)| *id);
        silent
    }

    /// Whether any client is announced, so that silence must be watched.
    pub fn any_announced(&self) -> bool {
        self.announced > 0
    }

    /// All clients, sorted by id.
    pub fn in_order(&self) -> Vec<&Client> {
        let mut all: Vec<_> = self.slots.iter().flatten().collect();
        all.sort_unstable_by_key(|client| client.id);
        all
    }

    /// All ids, sorted.
    pub fn ids(&self) -> Vec<ClientId> {
        let mut ids: Vec<_> = (self.slots.iter().flatten())
            .map(|client| client.id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// The process of a driver has ended: ends all uses of it, because the next process knows
    /// none of its clients.
    pub(super) fn driver_down(&mut self, driver: DriverKey) -> Vec<(ClientId, Vec<super::Use>)> {
        let mut ended = Vec::new();
        for client in self.slots.iter_mut().flatten() {
            let uses = client.uses.end(|used| used.driver == driver);
            if !uses.is_empty() {
                ended.push((client.id, uses));
            }
        }
        if !ended.is_empty() {
            self.rank_idle_again();
        }
        ended.sort_unstable_by_key(|(id, _)| *id);
        ended
    }

    /// Some clients have become idle: puts all idle ones in the order in which they were heard.
    fn rank_idle_again(&mut self) {
        let idle = (0..).zip(&self.slots).filter_map(|(slot, client)| {
            let client = client.as_ref()?;
            (client.standing() == Standing::Idle).then_some((client.heard, slot, client.crowd))
        });
        let mut idle: Vec<(Moment, u32, u32)> = idle.collect();
        idle.sort_unstable();
        for (_, slot, crowd) in idle {
            let standing = Standing::Idle as usize;
            self.order.move_to_end(&mut self.links, slot, standing);
            self.hosts.heard(crowd, slot, standing);
        }
    }

    /// How full the table is.
    pub fn fullness(&self) -> Fullness {
        let any = (0..).zip(&self.slots).find(|(_, client)| client.is_some());
        let fullest = self.hosts.fullest(any.map(|(slot, _)| slot));
        let address = |slot: u32| Some(self.slots[slot as usize].as_ref()?.address());
        Fullness {
            limit: self.limit,
            per_host: self.per_host,
            fullest_host: fullest.and_then(|(slot, clients)| Some((address(slot)?, clients))),
        }
    }

    /// The clients that have been silent for this long and hold nothing, as far as the mediator
    /// can tell: see `Client::holds_nothing`. Call it no more often than that.
    pub fn abandoned(&mut self, now: Instant, silence: Duration) -> Vec<ClientId> {
        let now = self.moment(now);
        let mut abandoned: Vec<ClientId> = (self.slots.iter_mut().flatten())
            .filter_map(|client| {
                let holds_nothing = client.holds_nothing();
                client.sent.look();
                let is_silent = now.duration_since(client.heard) >= silence;
                (is_silent && holds_nothing).then_some(client.id)
            })
            .collect();
        abandoned.sort_unstable();
        abandoned
    }

    /// The number of clients.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
