//! Locates addresses, and finds out whether a host uses them. PURE.
//!
//! The system knows the hosts on its own networks by their hardware addresses. Datagrams to an
//! address that it cannot resolve stay in the sending socket's buffer for seconds, until it
//! gives up. A host that sends to us has been resolved: it had to ask for our hardware address,
//! and that request contained its own. So an unresolved address on one of our networks has no
//! host: it is a forged source, or the address of a client that is gone.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use crate::hash::Set;

/// The location of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// An address of this machine.
    ThisMachine,
    /// A host is known, or a router leads there.
    Resolved,
    /// On one of our networks, without a known host.
    Unresolved,
}

/// A network interface, with one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its own address.
    pub address: IpAddr,
    /// The network that it is on.
    pub network: IpNet,
    /// Hosts there are known by hardware addresses, as with Ethernet and Wi-Fi.
    pub resolves: bool,
}

/// The system's knowledge about its networks.
#[derive(Debug, Default)]
pub struct Links {
    own: Set<IpAddr>,
    /// The networks on which hosts must be resolved.
    networks: Vec<IpNet>,
    hosts: Set<IpAddr>,
}

impl Links {
    /// From all interfaces and all resolved hosts.
    pub fn new(
        interfaces: impl IntoIterator<Item = Interface>,
        hosts: impl IntoIterator<Item = IpAddr>,
    ) -> Self {
        let mut links = Self {
            hosts: hosts.into_iter().collect(),
            ..Self::default()
        };
        for interface in interfaces {
            links.own.insert(interface.address);
            if interface.resolves && !links.networks.contains(&interface.network) {
                links.networks.push(interface.network);
            }
        }
        links
    }

    /// Locates an address.
    pub fn find(&self, address: SocketAddr) -> Whereabouts {
        let ip = address.ip();
        if self.own.contains(&ip) {
            Whereabouts::ThisMachine
        } else if self.hosts.contains(&ip) || !self.networks.iter().any(|net| net.contains(&ip)) {
            Whereabouts::Resolved
        } else {
            Whereabouts::Unresolved
        }
    }
}

/// Calls `each` with the addresses of hosts in one part of the system's answer to
/// [`DUMP_NEIGHBOURS`]. Returns whether this was the last part.
///
/// The format is that of rtnetlink(7): messages of type `RTM_NEWNEIGH`, each with the state
/// of an address and its attributes, of which `NDA_DST` is the address.
pub fn resolved(mut answer: &[u8], mut each: impl FnMut(IpAddr)) -> Dump {
    const NEW_NEIGHBOUR: u16 = 28;
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    while let Some((header, rest)) = answer.split_at_checked(HEADER) {
        let length = u32::from_ne_bytes(number(header, 0)) as usize;
        let kind = u16::from_ne_bytes(number(header, 4));
        let Some(body) = length.checked_sub(HEADER).and_then(|body| rest.get(..body)) else {
            return Dump::Over;
        };
        match kind {
            DONE | ERROR => return Dump::Over,
            NEW_NEIGHBOUR => neighbour(body).into_iter().for_each(&mut each),
            _ => {}
        }
        answer = rest.get(aligned(body.len())..).unwrap_or_default();
    }
    Dump::GoesOn
}

/// Whether more parts follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// More parts follow.
    GoesOn,
    /// This was the last part.
    Over,
}

/// The request for all neighbours: `RTM_GETNEIGH` with the flags `NLM_F_REQUEST | NLM_F_DUMP`,
/// for any address family.
pub const DUMP_NEIGHBOURS: [u8; HEADER + NEIGHBOUR] = {
    let mut bytes = [0; HEADER + NEIGHBOUR];
    let length = (bytes.len() as u32).to_ne_bytes();
    let (kind, flags) = (30_u16.to_ne_bytes(), 0x301_u16.to_ne_bytes());
    let mut i = 0;
    while i < 4 {
        bytes[i] = length[i];
        i += 1;
    }
    (bytes[4], bytes[5], bytes[6], bytes[7]) = (kind[0], kind[1], flags[0], flags[1]);
    bytes
};

/// The length of `nlmsghdr`.
const HEADER: usize = 16;
/// The length of `ndmsg`.
const NEIGHBOUR: usize = 12;

/// The address of a neighbour, if it is a host.
fn neighbour(body: &[u8]) -> Option<IpAddr> {
    const INCOMPLETE: u16 = 0x01;
    const FAILED: u16 = 0x20;
    const ADDRESS: u16 = 1;
    let (fixed, mut attributes) = body.split_at_checked(NEIGHBOUR)?;
    let state = u16::from_ne_bytes(number(fixed, 8));
    if state == 0 || state & (INCOMPLETE | FAILED) != 0 {
        return None;
    }
    while let Some((header, rest)) = attributes.split_at_checked(4) {
        let length = u16::from_ne_bytes(number(header, 0)) as usize;
        let kind = u16::from_ne_bytes(number(header, 2));
        let value = rest.get(..length.checked_sub(4)?)?;
        if kind == ADDRESS {
            return match value.len() {
                4 => Some(<[u8; 4]>::try_from(value).ok()?.into()),
                16 => Some(<[u8; 16]>::try_from(value).ok()?.into()),
                _ => None,
            };
        }
        attributes = rest.get(aligned(value.len())..)?;
    }
    None
}

/// A number in a header that is known to be long enough.
fn number<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header[at + i])
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_unresolved() {
        let interface = |address: &str, prefix, resolves| {
            let address: IpAddr = address.parse().unwrap();
            let network = IpNet::new(address, prefix).unwrap().trunc();
            Interface {
                address,
                network,
                resolves,
            }
        };
        let links = Links::new(
            [
                interface("10.0.0.1", 24, true),
                interface("fd00::1", 64, true),
                interface("10.8.0.1", 24, false),
            ],
            ["10.0.0.7".parse().unwrap(), "fd00::7".parse().unwrap()],
        );
        for (address, expected) in [
            ("10.0.0.1:1", Whereabouts::ThisMachine),
            ("[fd00::1]:1", Whereabouts::ThisMachine),
            ("10.8.0.1:1", Whereabouts::ThisMachine),
            ("10.0.0.7:1", Whereabouts::Resolved),
            ("[fd00::7]:1", Whereabouts::Resolved),
            ("10.0.0.8:1", Whereabouts::Unresolved),
            ("[fd00::8]:1", Whereabouts::Unresolved),
            // Behind a router, and behind a tunnel.
            ("8.8.8.8:1", Whereabouts::Resolved),
            ("10.8.0.9:1", Whereabouts::Resolved),
        ] {
            assert_eq!(links.find(address.parse().unwrap()), expected, "{address}");
        }
    }

    /// One message of the system.
    fn message(kind: u16, state: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; NEIGHBOUR];
        body[8..10].copy_from_slice(&state.to_ne_bytes());
        for (kind, value) in attributes {
            body.extend((value.len() as u16 + 4).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(aligned(body.len()), 0);
        }
        let mut message = vec![0; HEADER];
        message[..4].copy_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn resolved_hosts_are_read_from_the_answer() {
        let v6: IpAddr = "fd00::7".parse().unwrap();
        let IpAddr::V6(octets) = v6 else { panic!() };
        let octets = octets.octets();
        let hardware = (2, &[1, 2, 3, 4, 5, 6][..]);
        let answer = [
            message(28, 0x02, &[(1, &[10, 0, 0, 7]), hardware]), // reachable
            message(28, 0x04, &[hardware, (1, &octets)]),        // stale
            message(28, 0x01, &[(1, &[10, 0, 0, 8])]),           // incomplete
            message(28, 0x20, &[(1, &[10, 0, 0, 9])]),           // failed
            message(28, 0x80, &[hardware]),                      // without an address
            message(99, 0x02, &[(1, &[10, 0, 0, 10])]),          // something else
        ]
        .concat();
        let mut hosts = Vec::new();
        assert_eq!(resolved(&answer, |ip| hosts.push(ip)), Dump::GoesOn);
        assert_eq!(hosts, ["10.0.0.7".parse().unwrap(), v6]);
        assert_eq!(resolved(&message(3, 0, &[]), |_| panic!()), Dump::Over);
    }

    #[test]
    fn a_truncated_answer_is_read_up_to_its_end() {
        let answer = message(28, 0x02, &[(1, &[10, 0, 0, 7]), (2, &[1, 2, 3, 4, 5, 6])]);
        for length in 0..answer.len() {
            resolved(&answer[..length], |_| {});
        }
    }
}
