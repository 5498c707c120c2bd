//! Whether the source address of a datagram can be true. PURE.
//!
//! Much follows from a loopback address: its sender runs on this machine, so it may change
//! things, needs no proof of its address and is matched by rules for `loopback`. But anybody
//! on the network can write such an address into a packet. Linux drops some of those packets
//! and delivers others (for example with `route_localnet`). So the mediator listens with two
//! sockets on each address: one that the system binds to the loopback interface, and one that
//! gets everything else. A loopback source is genuine only if it came by the first.
//!
//! IPv4 has sockets of its own. An IPv4 address inside an IPv6 one is always forged, and
//! the [router](crate::router) refuses it.

use std::net::SocketAddr;

/// Which datagrams reach a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those that come by the loopback interface.
    Loopback,
    /// Those that come by any other interface.
    Network,
    /// All of them: this system cannot bind a socket to an interface.
    Everything,
}

impl Reach {
    /// Whether a datagram with this source address can have come by this way.
    pub fn admits(self, source: SocketAddr) -> bool {
        match self {
            Self::Network => !source.ip().is_loopback(),
            Self::Loopback | Self::Everything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_source_comes_by_the_loopback_interface() {
        for (source, by_network) in [
            ("127.0.0.1:1", false),
            ("127.99.1.2:1", false),
            ("[::1]:1", false),
            ("10.0.0.1:1", true),
            ("128.0.0.1:1", true),
            ("[fe80::1%2]:1", true),
            ("[::2]:1", true),
        ] {
            let source = source.parse().unwrap();
            assert_eq!(Reach::Network.admits(source), by_network, "{source}");
            assert!(Reach::Loopback.admits(source));
            assert!(Reach::Everything.admits(source));
        }
    }
}
