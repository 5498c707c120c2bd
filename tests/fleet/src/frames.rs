//! Frames of a virtual card, made fit for a wire. PURE.
//!
//! A virtual card leaves the checksums of TCP and UDP to the hardware that it does not have.

/// The length of the header of Ethernet.
const ETHERNET: usize = 14;
/// The type of frames with IPv4.
const IPV4: [u8; 2] = [8, 0];

/// Completes the checksum of TCP or UDP over IPv4. Leaves other frames as they are.
pub(crate) fn mend(frame: &mut [u8]) {
    if frame.get(12..14) != Some(&IPV4[..]) {
        return;
    }
    let packet = &mut frame[ETHERNET..];
    let Some((header, length, protocol)) = layout(packet) else {
        return;
    };
    let at = header
        + match protocol {
            6 => 16,
            17 => 6,
            _ => return,
        };
    let Some(field) = packet[..length].get_mut(at..at + 2) else {
        return;
    };
    field.fill(0);
    let part = (length - header) as u32;
    let pseudo = sum(&packet[12..20]) + u32::from(protocol) + part;
    let checksum = match fold(pseudo + sum(&packet[header..length])) {
        // In UDP, 0 means that there is none.
        0 if protocol == 17 => 0xffff,
        checksum => checksum,
    };
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The length of the header, that of the packet, and the protocol. `None` for fragments and packets
/// that are not whole.
fn layout(packet: &[u8]) -> Option<(usize, usize, u8)> {
    let header = usize::from(packet.first()? & 15) * 4;
    let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff;
    let is_whole = (20..=length).contains(&header) && length <= packet.len() && fragment == 0;
    is_whole.then_some((header, length, *packet.get(9)?))
}

/// The sum of 16-bit words; the last byte may be alone.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words
        .map(|it| u32::from(it[0]) << 8 | u32::from(*it.get(1).unwrap_or(&0)))
        .sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of 3 bytes from 10.91.0.1:1 to 10.91.0.2:2.
    fn datagram() -> Vec<u8> {
        let mut frame = vec![0; ETHERNET];
        frame[12..14].copy_from_slice(&IPV4);
        frame.extend([0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 91, 0, 1, 10, 91, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 11, 0xab, 0xcd, b'a', b'b', b'c']);
        frame
    }

    #[test]
    fn a_checksum_makes_the_whole_sum_all_ones() {
        let mut frame = datagram();
        mend(&mut frame);
        let packet = &frame[ETHERNET..];
        let pseudo = sum(&packet[12..20]) + 17 + 11;
        assert_eq!(fold(pseudo + sum(&packet[20..])), 0);
        // What the card adds to short frames does not count.
        let mut padded = datagram();
        padded.extend([1, 2, 3]);
        mend(&mut padded);
        assert_eq!(padded[..frame.len()], frame);
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        let mut arp = datagram();
        arp[13] = 6;
        let mut fragment = datagram();
        fragment[ETHERNET + 7] = 9;
        let mut short = datagram();
        short.truncate(ETHERNET + 25);
        let mut icmp = datagram();
        icmp[ETHERNET + 9] = 1;
        for frame in [arp, fragment, short, icmp, vec![1, 2, 3]] {
            let mut mended = frame.clone();
            mend(&mut mended);
            assert_eq!(mended, frame);
        }
    }
}
