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

    /// Checks a source address. `ask` returns all addresses of this machine; it is called at
    /// most once per [`OWN_ADDRESSES_AGE`].
    ///
    /// # Errors
    /// The source is an address of this machine although the datagram came from the network, or
    /// it is an address of the mediator itself.
    pub fn check(
        &mut self,
        now: Instant,
        source: SocketAddr,
        reach: Reach,
        ask: impl FnOnce() -> Vec<IpAddr>,
    ) -> Result<(), DropReason> {
        let ours = self
            .listening
            .iter()
            .any(|ours| ours.port() == source.port());
        if reach != Reach::Network && !ours {
            return Ok(());
        }
        let recent = |asked: Instant| now.saturating_duration_since(asked) < OWN_ADDRESSES_AGE;
        if !self.asked.is_some_and(recent) {
            self.known = ask().into_iter().collect();
            self.asked = Some(now);
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
        let own = || vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
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
                let found = addresses.check(Instant::now(), source, reach, own);
                assert_eq!(found, expected, "{source} {reach:?}");
            }
        }
    }

    #[test]
    fn datagrams_of_the_mediator_itself_are_rejected() {
        let own = || vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
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
            let source = source.parse().unwrap();
            let found = addresses.check(Instant::now(), source, Reach::Local, own);
            assert_eq!(found, expected, "{listening} {source}");
        }
    }

    #[test]
    fn own_addresses_are_queried_again_after_a_while() {
        let (mut addresses, start) = (OwnAddresses::new(&[]), Instant::now());
        let source = "10.0.0.1:1".parse().unwrap();
        let mut check = |now, own: Option<&str>, expected| {
            let ask = || vec![own.expect("not so soon").parse().unwrap()];
            let found = addresses.check(now, source, Reach::Network, ask);
            assert_eq!(found, expected);
        };
        check(start, Some("10.0.0.9"), Ok(()));
        let late = start + OWN_ADDRESSES_AGE - Duration::from_millis(1);
        check(late, None, Ok(()));
        check(start + OWN_ADDRESSES_AGE, Some("10.0.0.1"), FORGED);
    }
}
