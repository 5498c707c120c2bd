//! The numbers and sizes of the sensor packets. PURE.

/// A packet that is not a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet(pub(super) u8);

impl Packet {
    /// The length of its data, in bytes.
    pub(super) fn size(self) -> usize {
        match self.0 {
            19 | 20 | 22 | 23 | 25..=31 | 33 | 39..=44 | 46..=51 | 54..=57 => 2,
            _ => 1,
        }
    }
}

/// The packets of a group, or the packet itself. There is none with an unknown number.
pub(super) fn range(packet: u8) -> impl Iterator<Item = Packet> {
    let packets = match packet {
        0 => Some(7..=26),
        1 => Some(7..=16),
        2 => Some(17..=20),
        3 => Some(21..=26),
        4 => Some(27..=34),
        5 => Some(35..=42),
        6 => Some(7..=42),
        7..=58 => Some(packet..=packet),
        100 => Some(7..=58),
        101 => Some(43..=58),
        106 => Some(46..=51),
        107 => Some(54..=58),
        _ => None,
    };
    packets.into_iter().flatten().map(Packet)
}
