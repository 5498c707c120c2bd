//! IP packets with any source address, as an attacker writes them. PURE.
//!
//! The system refuses to send these for an ordinary program, so the suite builds
//! them itself: Ethernet, IPv4 or IPv6, UDP, each with its checksum.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address of a network card.
pub type Mac = [u8; 6];

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const HOP_LIMIT: u8 = 64;

/// An Ethernet frame that carries a UDP datagram. `None` when the two addresses are
/// of different families, or the datagram is too long for one packet.
pub fn ethernet(
    cards: (Mac, Mac),
    from: SocketAddr,
    to: SocketAddr,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let length = u16::try_from(UDP_HEADER + bytes.len()).ok()?;
    let (kind, ip) = match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            (0x0800_u16, ipv4_header(*from.ip(), *to.ip(), length)?)
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            (0x86dd, ipv6_header(*from.ip(), *to.ip(), length))
        }
        _ => return None,
    };
    let (source, destination) = cards;
    let mut frame = Vec::new();
    frame.extend_from_slice(&destination);
    frame.extend_from_slice(&source);
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(&ip);
    frame.extend_from_slice(&udp(from, to, length, bytes));
    Some(frame)
}

fn ipv4_header(from: Ipv4Addr, to: Ipv4Addr, payload: u16) -> Option<Vec<u8>> {
    let length = payload.checked_add(IPV4_HEADER as u16)?;
    let mut header = vec![0x45, 0];
    header.extend_from_slice(&length.to_be_bytes());
    // No identification, "do not fragment", no offset.
    header.extend_from_slice(&[0, 0, 0x40, 0, HOP_LIMIT, UDP, 0, 0]);
    header.extend_from_slice(&from.octets());
    header.extend_from_slice(&to.octets());
    let sum = checksum([header.as_slice()]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Some(header)
}

fn ipv6_header(from: Ipv6Addr, to: Ipv6Addr, payload: u16) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend_from_slice(&payload.to_be_bytes());
    header.extend_from_slice(&[UDP, HOP_LIMIT]);
    header.extend_from_slice(&from.octets());
    header.extend_from_slice(&to.octets());
    header
}

fn udp(from: SocketAddr, to: SocketAddr, length: u16, bytes: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for word in [from.port(), to.port(), length, 0] {
        datagram.extend_from_slice(&word.to_be_bytes());
    }
    datagram.extend_from_slice(bytes);
    // The checksum covers the addresses as well.
    let mut pseudo = Vec::new();
    for address in [from, to] {
        match address {
            SocketAddr::V4(v4) => pseudo.extend_from_slice(&v4.ip().octets()),
            SocketAddr::V6(v6) => pseudo.extend_from_slice(&v6.ip().octets()),
        }
    }
    pseudo.extend_from_slice(&[0, UDP]);
    pseudo.extend_from_slice(&length.to_be_bytes());
    // Zero means "no checksum".
    let sum = match checksum([pseudo.as_slice(), &datagram]) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    datagram
}

/// The checksum of the Internet protocols. All parts but the last have an even length.
fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for word in part.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([word[0], low]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARDS: (Mac, Mac) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

    fn packet(from: &str, to: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let address = |text: &str| text.parse().unwrap();
        ethernet(CARDS, address(from), address(to), bytes)
    }

    #[test]
    fn the_ipv4_header_has_the_checksum_of_a_known_packet() {
        // The example of RFC 1071 as it is usually shown: 0xb861 with TTL 64 and UDP.
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
            0xc7,
        ];
        assert_eq!(checksum([header.as_slice()]), 0xb861);
        let frame = packet("192.168.0.1:1", "192.168.0.199:2", &[0; 0x73 - 28]).unwrap();
        assert_eq!(frame[14..24], header[..10]);
        assert_eq!(frame[24..26], [0xb8, 0x61]);
    }

    #[test]
    fn all_checksums_add_up() {
        for (from, to) in [
            ("10.0.0.1:7", "10.0.0.2:26233"),
            ("[::ffff:127.0.0.1]:7", "[fd77::1]:26233"),
        ] {
            for length in [0, 1, 2, 999, 1000] {
                let frame = packet(from, to, &vec![7; length]).unwrap();
                assert_eq!(frame[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
                // The addresses with what RFC 768 and RFC 8200 put before a datagram.
                let (addresses, datagram) = match frame[12] {
                    8 => (&frame[26..34], &frame[34..]),
                    _ => (&frame[22..54], &frame[54..]),
                };
                let rest = [&[0, UDP], &datagram[4..6]].concat();
                let all = [addresses, rest.as_slice(), datagram];
                assert_eq!(checksum(all), 0, "{from} {length}");
                assert_eq!(datagram.len(), 8 + length);
            }
        }
    }

    #[test]
    fn families_are_not_mixed_and_lengths_fit() {
        assert_eq!(packet("10.0.0.1:7", "[::1]:7", &[]), None);
        assert_eq!(packet("10.0.0.1:7", "10.0.0.2:7", &[0; 65_508]), None);
    }
}
