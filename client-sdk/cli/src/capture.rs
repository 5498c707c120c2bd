//! UDP datagrams from captures of tcpdump and Wireshark: pcap and pcapng. PURE.
//!
//! This is our own code because it is small: it reads only the packet blocks of both formats.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// One datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    /// Time since the Unix epoch.
    pub(super) time: Duration,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) payload: Vec<u8>,
}

/// The content of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Capture {
    pub(super) datagrams: Vec<Datagram>,
    /// Number of packets that were truncated during capture, or were fragments.
    pub(super) incomplete: usize,
    /// The file ends within a packet.
    pub(super) cut_off: bool,
}

const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Whether a file looks like a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    bytes.starts_with(&PCAPNG) || classic(bytes).is_some()
}

/// Reads a capture; `None` if the bytes are not one.
pub(super) fn read(bytes: &[u8]) -> Option<Capture> {
    let mut capture = Capture::default();
    match classic(bytes) {
        Some((order, unit)) => read_classic(bytes, order, unit, &mut capture),
        None if bytes.starts_with(&PCAPNG) => read_ng(bytes, &mut capture),
        None => return None,
    }
    Some(capture)
}

#[derive(Clone, Copy)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }
}

/// The byte order of a pcap file, and the unit of its fractions in nanoseconds.
fn classic(bytes: &[u8]) -> Option<(ByteOrder, u32)> {
    match bytes.get(..4)? {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((ByteOrder::Little, 1000)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((ByteOrder::Big, 1000)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((ByteOrder::Little, 1)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((ByteOrder::Big, 1)),
        _ => None,
    }
}

fn read_classic(bytes: &[u8], order: ByteOrder, unit: u32, capture: &mut Capture) {
    let Some(link) = order.u32(bytes, 20) else {
        return;
    };
    let mut at = 24;
    while at < bytes.len() {
        let field = |i: usize| order.u32(bytes, at + 4 * i);
        let (Some(seconds), Some(fraction), Some(length), Some(original)) =
            (field(0), field(1), field(2), field(3))
        else {
            capture.cut_off = true;
            return;
        };
        at += 16;
        let Some(packet) = bytes.get(at..).and_then(|rest| rest.get(..length as usize)) else {
            capture.cut_off = true;
            return;
        };
        at += packet.len();
        let time = Duration::from_secs(seconds.into())
            + Duration::from_nanos(u64::from(fraction) * u64::from(unit));
        capture.add(time, link & 0xffff, packet, length < original);
    }
}

/// Link type and time units per second of an interface.
type Interface = (u32, u64);

fn read_ng(bytes: &[u8], capture: &mut Capture) {
    let (mut at, mut order, mut interfaces) = (0, ByteOrder::Little, Vec::<Interface>::new());
    while at < bytes.len() {
        if bytes[at..].starts_with(&PCAPNG) {
            // A section header shows its byte order.
            order = match bytes.get(at + 8..at + 12) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => ByteOrder::Big,
                _ => ByteOrder::Little,
            };
            interfaces.clear();
        }
        let (Some(kind), Some(length)) = (order.u32(bytes, at), order.u32(bytes, at + 4)) else {
            capture.cut_off = true;
            return;
        };
        let length = length as usize;
        let block = bytes.get(at..).and_then(|rest| rest.get(..length));
        let Some(block) = block.filter(|block| block.len() >= 12) else {
            capture.cut_off = true;
            return;
        };
        at += length;
        match kind {
            1 => interfaces.extend(interface(block, order)),
            6 if packet(block, order, &interfaces, capture).is_none() => capture.incomplete += 1,
            _ => {}
        }
    }
}

fn interface(block: &[u8], order: ByteOrder) -> Option<Interface> {
    let link = order.u16(block, 8)?;
    let mut units = 1_000_000;
    let mut at = 16;
    // Options: code, length, value, padded to four bytes.
    while let (Some(code @ 1..), Some(length)) = (order.u16(block, at), order.u16(block, at + 2)) {
        if let (9, Some(exponent)) = (code, block.get(at + 4)) {
            let base: u64 = if exponent & 0x80 == 0 { 10 } else { 2 };
            units = base.checked_pow(u32::from(exponent & 0x7f))?;
        }
        at += 4 + usize::from(length).next_multiple_of(4);
    }
    Some((link.into(), units))
}

fn packet(
    block: &[u8],
    order: ByteOrder,
    interfaces: &[Interface],
    capture: &mut Capture,
) -> Option<()> {
    let field = |i: usize| order.u32(block, 8 + 4 * i);
    let (link, units) = *interfaces.get(field(0)? as usize)?;
    let units_since = u64::from(field(1)?) << 32 | u64::from(field(2)?);
    let (length, original) = (field(3)?, field(4)?);
    let packet = block.get(28..)?.get(..length as usize)?;
    let nanos = u128::from(units_since % units) * 1_000_000_000 / u128::from(units);
    let time = Duration::new(units_since / units, nanos as u32);
    capture.add(time, link, packet, length < original);
    Some(())
}

impl Capture {
    fn add(&mut self, time: Duration, link: u32, packet: &[u8], cut: bool) {
        match network(link, packet).and_then(udp) {
            Some(Udp::Datagram(from, to, payload)) if !cut => self.datagrams.push(Datagram {
                time,
                from,
                to,
                payload: payload.to_vec(),
            }),
            Some(_) => self.incomplete += 1,
            // The packet is not UDP.
            None => {}
        }
    }
}

/// The IP packet within a frame of the link.
fn network(link: u32, packet: &[u8]) -> Option<&[u8]> {
    match link {
        // Loopback of BSD and macOS: the address family first.
        0 | 108 => packet.get(4..),
        1 => {
            let tagged = packet.get(12..14)? == [0x81, 0x00];
            packet.get(if tagged { 18 } else { 14 }..)
        }
        12 | 14 | 101 | 228 | 229 => Some(packet),
        // The old and the new format of `tcpdump -i any`.
        113 => packet.get(16..),
        276 => packet.get(20..),
        _ => None,
    }
}

enum Udp<'a> {
    Datagram(SocketAddr, SocketAddr, &'a [u8]),
    Fragment,
}

fn udp(ip: &[u8]) -> Option<Udp<'_>> {
    const UDP: u8 = 17;
    let (from, to, rest): (IpAddr, IpAddr, _) = match ip.first()? >> 4 {
        4 => {
            let header = usize::from(ip[0] & 0xf) * 4;
            if *ip.get(9)? != UDP {
                return None;
            }
            let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff;
            if fragment != 0 {
                return Some(Udp::Fragment);
            }
            let address = |at: usize| {
                Some(Ipv4Addr::from(
                    <[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?,
                ))
            };
            (address(12)?.into(), address(16)?.into(), ip.get(header..)?)
        }
        6 => {
            const FRAGMENT: u8 = 44;
            match *ip.get(6)? {
                UDP => {}
                FRAGMENT => return Some(Udp::Fragment),
                _ => return None,
            }
            let address = |at: usize| {
                Some(Ipv6Addr::from(
                    <[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?,
                ))
            };
            (address(8)?.into(), address(24)?.into(), ip.get(40..)?)
        }
        _ => return None,
    };
    let number = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
    let (source, destination, length) = (number(0)?, number(2)?, usize::from(number(4)?));
    let Some(payload) = length.checked_sub(8).and_then(|n| rest.get(8..)?.get(..n)) else {
        return Some(Udp::Fragment);
    };
    let (from, to) = (
        SocketAddr::new(from, source),
        SocketAddr::new(to, destination),
    );
    Some(Udp::Datagram(from, to, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 127.0.0.1:40000 to 127.0.0.1:26233.
    fn ipv4(payload: &[u8]) -> Vec<u8> {
        let length = (28 + payload.len()) as u16;
        let mut ip = vec![0x45, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        ip.extend(40_000_u16.to_be_bytes());
        ip.extend(26_233_u16.to_be_bytes());
        ip.extend((length - 20).to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(payload);
        ip
    }

    fn pcap(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.extend([0; 8]);
        file.extend(65_535_u32.to_le_bytes());
        file.extend(link.to_le_bytes());
        for packet in packets {
            for field in [7, 250_000, packet.len() as u32, packet.len() as u32] {
                file.extend(field.to_le_bytes());
            }
            file.extend(packet);
        }
        file
    }

    fn pcapng(packet: &[u8]) -> Vec<u8> {
        let block = |kind: u32, body: &[u8]| {
            let length = (12 + body.len() as u32).to_be_bytes();
            [&kind.to_be_bytes()[..], &length, body, &length].concat()
        };
        let section = block(
            0x0a0d_0d0a,
            b"\x1a\x2b\x3c\x4d\0\x01\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
        );
        // Raw IP, times in milliseconds.
        let interface = block(1, b"\0\x65\0\0\0\0\xff\xff\0\x09\0\x01\x03\0\0\0\0\0\0\0");
        let mut body = Vec::new();
        for field in [0, 0, 7250, packet.len() as u32, packet.len() as u32] {
            body.extend(u32::to_be_bytes(field));
        }
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        [section, interface, block(6, &body)].concat()
    }

    #[test]
    fn datagrams_come_out_of_both_formats_and_every_link() {
        let ip = ipv4(b"hello");
        let expected = Datagram {
            time: Duration::from_millis(7250),
            from: "127.0.0.1:40000".parse().unwrap(),
            to: "127.0.0.1:26233".parse().unwrap(),
            payload: b"hello".to_vec(),
        };
        for (link, before) in [(1, 14), (101, 0), (0, 4), (113, 16), (276, 20)] {
            let packet = [vec![0; before], ip.clone()].concat();
            let capture = read(&pcap(link, &[packet])).unwrap();
            assert_eq!(capture.datagrams, std::slice::from_ref(&expected), "{link}");
        }
        assert_eq!(read(&pcapng(&ip)).unwrap().datagrams, [expected]);
        assert_eq!(read(b"no capture"), None);
    }

    #[test]
    fn incomplete_packets_are_counted_and_others_skipped() {
        let mut fragment = ipv4(b"hello");
        fragment[6] = 0x20;
        let mut tcp = ipv4(b"hello");
        tcp[9] = 6;
        let mut short = ipv4(b"hello");
        short.truncate(30);
        let mut file = pcap(101, &[fragment, tcp, short, ipv4(b"x")]);
        let capture = read(&file).unwrap();
        assert_eq!((capture.datagrams.len(), capture.incomplete), (1, 2));
        file.pop();
        assert!(read(&file).unwrap().cut_off);
    }

    #[test]
    fn no_input_causes_a_panic() {
        for file in [pcap(1, &[ipv4(b"hello")]), pcapng(&ipv4(b"hello"))] {
            for cut in 0..file.len() {
                read(&file[..cut]);
                for value in [0, 1, 0x7f, 0xff] {
                    let mut wrong = file.clone();
                    wrong[cut] = value;
                    read(&wrong);
                }
            }
        }
    }
}
