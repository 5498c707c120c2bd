//! Whether the source address of a datagram can be true. PURE.
//!
//! Much follows from a loopback address: its sender runs on this machine, so it may change
//! things, needs no proof of its address and is matched by rules for `loopback`. Other
//! addresses of this machine may stand in rules, too. But anybody on the network can write
//! such an address into a packet. Linux drops some of those packets and delivers others:
//! with `route_localnet` or `accept_local`, and nearly all of IPv6. So what comes from the
//! network and from this machine arrives at different sockets.
//!
//! IPv4 has sockets of its own. An IPv4 address inside an IPv6 one is always forged, and
//! the [router](crate::router) refuses it.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use crate::hash::Set;
use crate::limits::OWN_ADDRESSES_AGE;

/// Which datagrams reach a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those that programs on this machine send.
    Local,
    /// Those that come from the network.
    Network,
    /// All of them: this system cannot tell them apart.
    Everything,
}

/// The addresses of this machine, which change when a network comes or goes.
#[derive(Debug, Default)]
pub struct OwnAddresses {
    known: Set<IpAddr>,
    asked: Option<Instant>,
}

impl OwnAddresses {
    /// Whether a datagram with this source address cannot have come by this way. `ask` names
    /// all addresses of this machine; it is called once in [`OWN_ADDRESSES_AGE`] at most.
    pub fn forged(
        &mut self,
        now: Instant,
        source: SocketAddr,
        reach: Reach,
        ask: impl FnOnce() -> Vec<IpAddr>,
    ) -> bool {
        if reach != Reach::Network {
            return false;
        }
        let recent = |asked: Instant| now.saturating_duration_since(asked) < OWN_ADDRESSES_AGE;
        if !self.asked.is_some_and(recent) {
            self.known = ask().into_iter().collect();
            self.asked = Some(now);
        }
        source.ip().is_loopback() || self.known.contains(&source.ip())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_address_of_this_machine_does_not_come_from_the_network() {
        let own = || vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        for (source, forged) in [
            ("127.0.0.1:1", true),
            ("127.99.1.2:1", true),
            ("[::1]:1", true),
            ("10.0.0.1:1", true),
            ("[fd00::1]:1", true),
            ("10.0.0.2:1", false),
            ("128.0.0.1:1", false),
            ("[fe80::1%2]:1", false),
            ("[fd00::2]:1", false),
        ] {
            let source = source.parse().unwrap();
            for (reach, expected) in [
                (Reach::Network, forged),
                (Reach::Local, false),
                (Reach::Everything, false),
            ] {
                let mut addresses = OwnAddresses::default();
                let found = addresses.forged(Instant::now(), source, reach, own);
                assert_eq!(found, expected, "{source} {reach:?}");
            }
        }
    }

    #[test]
    fn addresses_are_asked_for_again_after_a_while() {
        let (mut addresses, start) = (OwnAddresses::default(), Instant::now());
        let source = "10.0.0.1:1".parse().unwrap();
        let mut check = |now, own: Option<&str>, forged| {
            let ask = || vec![own.expect("not so soon").parse().unwrap()];
            assert_eq!(addresses.forged(now, source, Reach::Network, ask), forged);
        };
        check(start, Some("10.0.0.9"), false);
        let late = start + OWN_ADDRESSES_AGE - Duration::from_millis(1);
        check(late, None, false);
        check(start + OWN_ADDRESSES_AGE, Some("10.0.0.1"), true);
    }
}
