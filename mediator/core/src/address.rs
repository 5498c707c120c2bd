//! What the parts of the mediator call clients and drivers: the address of a client, the host that
//! it belongs to, and the key of a driver. PURE.
//!
//! [`PackedAddress`] is our own type because it takes 24 bytes, while `SocketAddr` and the socket's
//! index take 36, in a table with many thousands of entries. It is quick to compare, too.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A configured driver, whether it runs or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverKey(pub u32);

/// The address of a client, and the socket of ours that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress {
    /// Index of our socket.
    pub socket: u8,
    /// Address and port of the client.
    pub address: SocketAddr,
}

/// A [`ClientAddress`] in 24 bytes. The flow label of IPv6 is left out: it is not part of the
/// address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackedAddress {
    ip: [u64; 2],
    /// From the top: 32 bits of IPv6 scope, 16 of port, 8 of our socket, and 8
    /// that are 1 for IPv6.
    rest: u64,
}

/// The machine that an address belongs to. A machine can use all ports of its address.
///
/// For IPv4 this is the address, for IPv6 the network of 64 bits, because a machine can give
/// itself any number of addresses in it. All loopback addresses are one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// All loopback addresses.
    This,
    /// An IPv4 address.
    V4(u32),
    /// An IPv6 network and its scope: link-local networks of two interfaces differ.
    V6(u64, u32),
}

impl PackedAddress {
    pub(super) fn host(self) -> Host {
        match self.address() {
            address if address.ip().is_loopback() => Host::This,
            SocketAddr::V4(v4) => Host::V4(v4.ip().to_bits()),
            SocketAddr::V6(v6) => Host::V6(self.ip[0], v6.scope_id()),
        }
    }

    /// Index of our socket.
    pub fn socket(self) -> u8 {
        (self.rest >> 8) as u8
    }

    /// Whether this is a loopback address.
    pub fn is_loopback(self) -> bool {
        self.address().ip().is_loopback()
    }

    /// The same value for all ports of one address.
    pub fn without_port(self) -> Self {
        Self {
            rest: self.rest & !(0xffff << 16),
            ..self
        }
    }

    /// Address and port of the client.
    pub fn address(self) -> SocketAddr {
        let [high, low] = self.ip;
        let port = (self.rest >> 16) as u16;
        if self.rest as u8 == 0 {
            return (Ipv4Addr::from_bits(low as u32), port).into();
        }
        let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
        SocketAddrV6::new(ip, port, 0, (self.rest >> 32) as u32).into()
    }
}

impl From<ClientAddress> for PackedAddress {
    fn from(ClientAddress { socket, address }: ClientAddress) -> Self {
        let (ip, scope, is_v6) = match address {
            SocketAddr::V4(v4) => ([0, v4.ip().to_bits().into()], 0, 0),
            SocketAddr::V6(v6) => {
                let bits = v6.ip().to_bits();
                let ip = [(bits >> 64) as u64, bits as u64];
                (ip, u64::from(v6.scope_id()), 1)
            }
        };
        let port = u64::from(address.port());
        Self {
            ip,
            rest: scope << 32 | port << 16 | u64::from(socket) << 8 | is_v6,
        }
    }
}

impl From<PackedAddress> for ClientAddress {
    fn from(address: PackedAddress) -> Self {
        Self {
            socket: address.socket(),
            address: address.address(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = ClientAddress> {
        let ip = prop_oneof![
            any::<Ipv4Addr>().prop_map(IpAddr::from),
            any::<Ipv6Addr>().prop_map(IpAddr::from),
            // Addresses that could be mistaken for the other family.
            any::<Ipv4Addr>().prop_map(|v4| v4.to_ipv6_mapped().into()),
            any::<Ipv4Addr>().prop_map(|v4| v4.to_ipv6_compatible().into()),
        ];
        (ip, any::<u16>(), any::<u32>(), any::<u8>()).prop_map(|(ip, port, scope, socket)| {
            let mut address = SocketAddr::new(ip, port);
            if let SocketAddr::V6(v6) = &mut address {
                v6.set_scope_id(scope);
            }
            ClientAddress { socket, address }
        })
    }

    #[test]
    fn a_host_is_an_address_or_an_ipv6_network_or_this_machine() {
        let host = |address: &str| {
            let address = address.parse().unwrap();
            PackedAddress::from(ClientAddress { socket: 0, address }).host()
        };
        for (one, other, same) in [
            ("10.0.0.1:1", "10.0.0.1:2", true),
            ("10.0.0.1:1", "10.0.0.2:1", false),
            // Not another spelling of the same address: such a source is rejected.
            ("10.0.0.1:1", "[::ffff:10.0.0.1]:2", false),
            // Not another spelling of the same address; unused in practice.
            ("10.0.0.1:1", "[::10.0.0.1]:1", false),
            ("[fd00::1]:1", "[fd00::2:3:4:5]:9", true),
            ("[fd00::1]:1", "[fd00:0:0:1::1]:1", false),
            ("[fe80::1%2]:1", "[fe80::2%2]:1", true),
            ("[fe80::1%2]:1", "[fe80::1%3]:1", false),
            ("127.0.0.1:1", "127.9.9.9:2", true),
            ("127.0.0.1:1", "[::1]:1", true),
            ("127.0.0.1:1", "[::ffff:127.0.0.1]:1", false),
            ("[::1]:1", "[::2]:1", false),
            ("127.0.0.1:1", "128.0.0.1:1", false),
        ] {
            assert_eq!(host(one) == host(other), same, "{one} {other}");
        }
    }

    proptest! {
        /// Ports and sockets do not change the host.
        #[test]
        fn ports_and_sockets_do_not_change_the_host(address in address(), port in any::<u16>(), socket in any::<u8>()) {
            let mut other = ClientAddress { socket, ..address };
            other.address.set_port(port);
            prop_assert_eq!(PackedAddress::from(address).host(), PackedAddress::from(other).host());
        }

        #[test]
        fn addresses_survive_packing(address in address(), other in address()) {
            let [packed, other_packed] = [address, other].map(PackedAddress::from);
            prop_assert_eq!(ClientAddress::from(packed), address);
            prop_assert_eq!(packed == other_packed, address == other);
        }
    }
}
