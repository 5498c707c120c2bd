//! Checks whether the source address of a datagram can be genuine. PURE.
//!
//! A loopback address gives rights: its sender runs on this machine, so it may change things,
//! needs no proof of its address, and matches rules for `loopback`. Rules may also name other
//! addresses of this machine. But any host on the network can forge such an address. Linux
//! drops some of those packets and delivers others: with `route_localnet` or `accept_local`,
//! and nearly all for IPv6. So datagrams from the network and from this machine arrive at
//! different sockets.
//!
//! IPv4 has its own sockets. An IPv4 address inside an IPv6 one is always forged, and the
//! [router](crate::router) rejects it.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use crate::counters::DropReason;
use crate::hash::Set;
use crate::limits::OWN_ADDRESSES_AGE;

/// The origin of the datagrams that reach a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only those from programs on this machine.
    Local,
    /// Only those from the network.
    Network,
    /// All: this system cannot distinguish them.
    Everything,
}

/// The addresses of this machine, which may change at any time.
#[derive(Debug)]
pub struct OwnAddresses {
    /// The addresses that the mediator listens on.
    listening: Vec<SocketAddr>,
    known: Set<IpAddr>,
    asked: Option<Instant>,
}

impl OwnAddresses {
    /// For a mediator that listens on these addresses.
    pub fn new(listening: &[SocketAddr]) -> Self {
        Self {
            listening: listening.into(),
            known: Set::default(),
            asked: None,
        }
    }

    /// Whether the addresses of this machine must be queried again, at most once per
    /// [`OWN_ADDRESSES_AGE`]; then the caller [sets](Self::set) them.
    pub fn are_old(&mut self, now: Instant) -> bool {
        let recent = |asked: Instant| now.saturating_duration_since(asked) < OWN_ADDRESSES_AGE;
        let old = !self.asked.is_some_and(recent);
        if old {
            self.asked = Some(now);
        }
        old
    }

    /// Sets all addresses of this machine.
    pub fn set(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.known = addresses.into_iter().collect();
    }

    /// Checks a source address.
    ///
    /// # Errors
    /// The source is an address of this machine although the datagram came from the network, or
    /// it is an address of the mediator itself.
    pub fn check(&self, source: SocketAddr, reach: Reach) -> Result<(), DropReason> {
        let ours = self
            .listening
            .iter()
            .any(|ours| ours.port() == source.port());
        if reach != Reach::Network && !ours {
            return Ok(());
        }
        let ip = source.ip();
        let own = ip.is_loopback() || self.known.contains(&ip);
        if own && reach == Reach::Network {
            return Err(DropReason::DatagramForged);
        }
        let listens = |ours: &SocketAddr| {
            let all = ours.ip().is_unspecified() && ours.is_ipv4() == source.is_ipv4();
            ours.port() == source.port() && (ours.ip() == ip || all && own)
        };
        match self.listening.iter().any(listens) {
            true => Err(DropReason::DatagramFromMediator),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FORGED: Result<(), DropReason> = Err(DropReason::DatagramForged);

    #[test]
    fn own_addresses_from_the_network_are_forged() {
        let own = ["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap());
        for (source, by_network) in [
            ("127.0.0.1:1", FORGED),
            ("127.99.1.2:1", FORGED),
            ("[::1]:1", FORGED),
            ("10.0.0.1:1", FORGED),
            ("[fd00::1]:1", FORGED),
            ("10.0.0.2:1", Ok(())),
            ("128.0.0.1:1", Ok(())),
            ("[fe80::1%2]:1", Ok(())),
            ("[fd00::2]:1", Ok(())),
        ] {
            let source = source.parse().unwrap();
            for (reach, expected) in [
                (Reach::Network, by_network),
                (Reach::Local, Ok(())),
                (Reach::Everything, Ok(())),
            ] {
                let mut addresses = OwnAddresses::new(&[]);
                addresses.set(own);
                let found = addresses.check(source, reach);
                assert_eq!(found, expected, "{source} {reach:?}");
            }
        }
    }

    #[test]
    fn datagrams_of_the_mediator_itself_are_rejected() {
        let own = ["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap());
        let ours = Err(DropReason::DatagramFromMediator);
        for (listening, source, expected) in [
            ("0.0.0.0:7", "10.0.0.1:7", ours),
            ("0.0.0.0:7", "127.0.0.2:7", ours),
            ("0.0.0.0:7", "10.0.0.1:8", Ok(())),
            ("0.0.0.0:7", "10.0.0.2:7", Ok(())),
            ("0.0.0.0:7", "[fd00::1]:7", Ok(())),
            ("[::]:7", "[fd00::1]:7", ours),
            ("[::]:7", "10.0.0.1:7", Ok(())),
            ("127.0.0.1:7", "127.0.0.1:7", ours),
            // Another program on this machine, perhaps another mediator.
            ("127.0.0.1:7", "127.0.0.2:7", Ok(())),
            ("10.0.0.1:7", "127.0.0.1:7", Ok(())),
        ] {
            let mut addresses = OwnAddresses::new(&[listening.parse().unwrap()]);
            addresses.set(own);
            let found = addresses.check(source.parse().unwrap(), Reach::Local);
            assert_eq!(found, expected, "{listening} {source}");
        }
    }

    #[test]
    fn own_addresses_are_queried_again_after_a_while() {
        let (mut addresses, start) = (OwnAddresses::new(&[]), Instant::now());
        assert!(addresses.are_old(start));
        let late = start + OWN_ADDRESSES_AGE - Duration::from_millis(1);
        assert!(!addresses.are_old(late));
        assert!(addresses.are_old(start + OWN_ADDRESSES_AGE));
    }
}
