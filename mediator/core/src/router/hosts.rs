//! The clients of each host, so that no host takes more than its share of the table. PURE.
//!
//! A host with one client, like most hosts, takes five bytes in an index. Two or more clients
//! form a crowd with its own eviction lists, ordered like those of the whole table: the first
//! in the crowd's lists also comes before the others in the table's lists. (When the second
//! client comes, the first one joins with the standing that it has by then.) The cost of each
//! operation does not depend on the number of clients.

use super::client::{Client, STANDINGS};
use super::eviction_order::{EvictionOrder, Links};
use crate::address::Host;
use crate::hash::Index;
use crate::moment::Moment;
use crate::rate::{Rate, RateLimit};

/// The crowd number of a client that is the only one of its host.
pub(super) const ALONE: u32 = u32::MAX;

/// All hosts that have clients. The client slots belong to the caller.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// One client of each host.
    by_host: Index,
    crowds: Vec<Crowd>,
    free: Vec<u32>,
    links: Links,
}

/// Two or more clients of one host.
#[derive(Debug, Default)]
struct Crowd {
    order: EvictionOrder<STANDINGS>,
    len: u32,
    /// Limits how fast all of them together may send requests to the mediator.
    requests: RateLimit<Moment>,
}

impl Hosts {
    /// The number of clients of a host, and which of them to evict next: a silent one, in the
    /// order of their standings, or the first in that order if none is silent. So clients that
    /// arrive together do not evict each other while others of their host are silent.
    pub(super) fn crowd(
        &self,
        slots: &[Option<Client>],
        host: Host,
        is_silent: impl Fn(u32) -> bool,
    ) -> Option<(usize, u32)> {
        let slot = self.any_of(slots, host)?;
        let client = slots[slot as usize].as_ref()?;
        let Some(crowd) = self.crowds.get(client.crowd as usize) else {
            return Some((1, slot));
        };
        let mut firsts = crowd.order.firsts().map(|(_, slot)| slot);
        let silent = firsts.find(|slot| is_silent(*slot));
        Some((crowd.len as usize, silent.or_else(|| crowd.order.first())?))
    }

    /// One client of the host with the most clients, and how many there are. `any` is any client,
    /// which the result is if no host has two.
    pub(super) fn fullest(&self, any: Option<u32>) -> Option<(u32, usize)> {
        let fullest = self.crowds.iter().max_by_key(|crowd| crowd.len);
        match fullest.and_then(|crowd| Some((crowd.order.first()?, crowd.len as usize))) {
            Some(fullest) => Some(fullest),
            None => any.map(|slot| (slot, 1)),
        }
    }

    /// Whether the clients of a crowd may send one more request to the mediator now. A client
    /// that is alone always may: it has its own limit.
    pub(super) fn may_request(&mut self, crowd: u32, now: Moment, rate: Rate) -> bool {
        let crowd = self.crowds.get_mut(crowd as usize);
        crowd.is_none_or(|crowd| crowd.requests.pass(now, rate))
    }

    /// A client was put into a slot.
    pub(super) fn add(&mut self, slots: &mut [Option<Client>], slot: u32) {
        let Some(host) = host_of(slots, slot) else {
            return;
        };
        let Some(other) = self.any_of(slots, host) else {
            return self.by_host.insert(slot, |slot| host_of(slots, slot));
        };
        let Some(before) = slots[other as usize].as_mut() else {
            return;
        };
        if before.crowd == ALONE {
            before.crowd = self.free.pop().unwrap_or_else(|| {
                self.crowds.push(Crowd::default());
                self.crowds.len() as u32 - 1
            });
            let crowd = &mut self.crowds[before.crowd as usize];
            let standing = before.standing() as usize;
            crowd.order.move_to_end(&mut self.links, other, standing);
            crowd.len = 1;
            crowd.requests = RateLimit::default();
        }
        let number = before.crowd;
        if let Some(client) = slots[slot as usize].as_mut() {
            client.crowd = number;
            self.crowds[number as usize].len += 1;
            self.heard(number, slot, client.standing() as usize);
        }
    }

    /// Moves a client of a crowd to the end of the list for its standing.
    pub(super) fn heard(&mut self, crowd: u32, slot: u32, standing: usize) {
        if let Some(crowd) = self.crowds.get_mut(crowd as usize) {
            crowd.order.move_to_end(&mut self.links, slot, standing);
        }
    }

    /// A client is about to leave its slot.
    pub(super) fn remove(&mut self, slots: &mut [Option<Client>], slot: u32) {
        let (Some(host), Some(client)) = (host_of(slots, slot), &mut slots[slot as usize]) else {
            return;
        };
        let number = std::mem::replace(&mut client.crowd, ALONE);
        let is_named = self.any_of(slots, host) == Some(slot);
        if is_named {
            self.by_host.remove(slot, &host);
        }
        let Some(crowd) = self.crowds.get_mut(number as usize) else {
            return;
        };
        crowd.order.remove(&mut self.links, slot);
        crowd.len -= 1;
        let Some(other) = crowd.order.first() else {
            return;
        };
        if crowd.len == 1 {
            crowd.order.remove(&mut self.links, other);
            crowd.len = 0;
            self.free.push(number);
            if let Some(last) = slots[other as usize].as_mut() {
                last.crowd = ALONE;
            }
        }
        if is_named {
            self.by_host.insert(other, |slot| host_of(slots, slot));
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let crowds = self.crowds.len() * size_of::<Crowd>() + self.free.len() * size_of::<u32>();
        self.by_host.bytes() + crowds + self.links.bytes()
    }

    fn any_of(&self, slots: &[Option<Client>], host: Host) -> Option<u32> {
        (self.by_host).find(&host, |slot| host_of(slots, slot) == Some(host))
    }
}

fn host_of(slots: &[Option<Client>], slot: u32) -> Option<Host> {
    Some(slots[slot as usize].as_ref()?.address.host())
}
