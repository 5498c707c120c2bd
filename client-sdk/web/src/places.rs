//! The places of a server. PURE.
//!
//! [`Guests`] are connections that have not shown a token. A new guest always gets in: if its network
//! has too many, the oldest one of that network leaves, and if there are too many in total, the oldest
//! one of the network with the most. So nobody can keep out others by holding connections. [`Counts`]
//! limits those that stay.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of connections, of all IP addresses and of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections.
    pub total: usize,
    /// Connections of one IP address, so that one does not keep out all others.
    pub per_ip: usize,
}

/// The network of a peer: an IPv6 host may use any address of its network, which has 64 bits.
#[must_use]
pub fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) >> 64 << 64).into(),
    }
}

/// The connections without a token.
#[derive(Debug)]
pub struct Guests {
    limits: Limits,
    last: u64,
    /// The oldest first.
    by_network: HashMap<IpAddr, VecDeque<u64>>,
}

impl Guests {
    /// Nobody is connected.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            last: 0,
            by_network: HashMap::new(),
        }
    }

    /// A guest has connected. Returns its number, and that of the guest who must leave, if any.
    pub fn enter(&mut self, ip: IpAddr) -> (u64, Option<u64>) {
        let network = network_of(ip);
        let total: usize = self.by_network.values().map(VecDeque::len).sum();
        let from_here = self.by_network.get(&network).map_or(0, VecDeque::len);
        let crowded = match (from_here >= self.limits.per_ip, total >= self.limits.total) {
            (true, _) => Some(network),
            (false, true) => self.most_crowded(),
            (false, false) => None,
        };
        let leaves = crowded.and_then(|network| self.by_network.get_mut(&network)?.pop_front());
        self.last += 1;
        let guests = self.by_network.entry(network).or_default();
        guests.push_back(self.last);
        self.by_network.retain(|_, guests| !guests.is_empty());
        (self.last, leaves)
    }

    /// A guest is gone, or has shown a token.
    pub fn leave(&mut self, ip: IpAddr, guest: u64) {
        let network = network_of(ip);
        let Some(guests) = self.by_network.get_mut(&network) else {
            return;
        };
        guests.retain(|it| *it != guest);
        if guests.is_empty() {
            self.by_network.remove(&network);
        }
    }

    /// The network with the most guests; of several, the one whose first guest is oldest.
    fn most_crowded(&self) -> Option<IpAddr> {
        let networks = self.by_network.iter();
        let crowd =
            |guests: &VecDeque<u64>| (guests.len(), std::cmp::Reverse(guests.front().copied()));
        let most = networks.max_by_key(|(_, guests)| crowd(guests));
        most.map(|(network, _)| *network)
    }
}

/// The number of connections per IP address.
#[derive(Debug, Default)]
pub struct Counts(Mutex<HashMap<IpAddr, usize>>);

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub struct Counted {
    counts: Arc<Counts>,
    ip: IpAddr,
}

impl Counts {
    /// Counts one more connection; `None` if there are as many as the limits allow.
    #[must_use]
    pub fn enter(self: &Arc<Self>, ip: IpAddr, limits: Limits) -> Option<Counted> {
        let mut by_ip = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = by_ip.values().sum();
        let from_here = by_ip.get(&ip).copied().unwrap_or_default();
        if total >= limits.total || from_here >= limits.per_ip {
            return None;
        }
        by_ip.insert(ip, from_here + 1);
        Some(Counted {
            counts: self.clone(),
            ip,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_ip = (self.counts.0.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                by_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn a_new_guest_always_gets_in_and_costs_only_its_own_network() {
        let mut guests = Guests::new(Limits {
            total: 6,
            per_ip: 3,
        });
        let (operator, left) = guests.enter(ip(1));
        assert_eq!(left, None);
        let attacks: Vec<_> = (0..40).map(|_| guests.enter(ip(2))).collect();
        assert!(attacks[..3].iter().all(|(_, left)| left.is_none()));
        for (at, (_, left)) in attacks.iter().enumerate().skip(3) {
            assert_eq!(*left, Some(attacks[at - 3].0), "the oldest of its network");
        }
        // Many networks: the one with the most guests makes room.
        assert_eq!(guests.enter(ip(3)).1, None);
        assert_eq!(guests.enter(ip(4)).1, None);
        assert_eq!(guests.enter(ip(5)).1, Some(attacks[37].0));
        assert_eq!(guests.enter(ip(6)).1, Some(attacks[38].0));
        // All have one: the oldest goes.
        assert_eq!(guests.enter(ip(7)).1, Some(operator));
    }

    #[test]
    fn guests_who_are_gone_make_room() {
        let mut guests = Guests::new(Limits {
            total: 2,
            per_ip: 1,
        });
        let (first, _) = guests.enter(ip(1));
        guests.leave(ip(1), first);
        guests.leave(ip(1), first);
        assert_eq!(guests.enter(ip(1)).1, None);
        assert_eq!(guests.enter(ip(2)).1, None);
    }

    #[test]
    fn an_ipv6_network_is_one_guest() {
        let mut guests = Guests::new(Limits {
            total: 9,
            per_ip: 1,
        });
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let (first, _) = guests.enter(at("fd00:1::1"));
        assert_eq!(guests.enter(at("fd00:1::2:0:0:5")).1, Some(first));
        assert_eq!(guests.enter(at("fd00:1:0:1::1")).1, None);
        assert_eq!(network_of(at("::ffff:10.0.0.1")), ip(1));
    }

    #[test]
    fn connections_are_limited_in_total_and_per_address() {
        let counts = Arc::new(Counts::default());
        let limits = Limits {
            total: 3,
            per_ip: 2,
        };
        let enter = |last: u8| counts.enter(IpAddr::from([127, 0, 0, last]), limits);
        let (first, _second) = (enter(1).unwrap(), enter(1).unwrap());
        assert!(enter(1).is_none());
        let _third = enter(2).unwrap();
        assert!(enter(3).is_none());
        drop(first);
        assert!(enter(3).is_some());
        assert!(enter(1).is_some());
    }
}
