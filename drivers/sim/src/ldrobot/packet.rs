//! The bytes of packets and commands. PURE.

/// The number of points in a packet.
pub const POINTS: usize = 12;
/// The length of a packet.
const LENGTH: usize = 47;
/// The length of a command.
pub(super) const COMMAND: usize = 8;

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The speed of the motor in degrees per second.
    pub speed_deg_s: u16,
    /// The angle of the first point, in 0.01 degrees clockwise from the front.
    pub first: u16,
    /// The angle of the last point.
    pub last: u16,
    /// Millimetres, and the strength of the echo.
    pub points: [(u16, u8); POINTS],
    /// Milliseconds.
    pub stamp_ms: u16,
}

/// The bytes of a packet.
#[must_use]
pub fn packet(packet: &Packet) -> [u8; LENGTH] {
    let mut bytes = vec![0x54, 0x2C];
    let words = [packet.speed_deg_s, packet.first];
    bytes.extend(words.into_iter().flat_map(u16::to_le_bytes));
    for (mm, strength) in packet.points {
        bytes.extend(mm.to_le_bytes());
        bytes.push(strength);
    }
    let words = [packet.last, packet.stamp_ms];
    bytes.extend(words.into_iter().flat_map(u16::to_le_bytes));
    bytes.push(crc(&bytes));
    let mut all = [0; LENGTH];
    all.copy_from_slice(&bytes);
    all
}

/// The bytes of a command: its code and a number.
#[must_use]
pub fn command(code: u8, number: u16) -> [u8; COMMAND] {
    let [low, high] = number.to_le_bytes();
    let mut bytes = [0x54, code, 4, low, high, 0, 0, 0];
    bytes[7] = crc(&bytes[..7]);
    bytes
}

/// The code and the number of a command.
pub(super) fn code_of(bytes: &[u8]) -> Option<(u8, u16)> {
    let (body, sum) = bytes.split_at_checked(COMMAND - 1)?;
    let is_command = body[0] == 0x54 && body[2] == 4 && sum == [crc(body)];
    is_command.then(|| (body[1], u16::from_le_bytes([body[3], body[4]])))
}

/// CRC-8 with the polynomial 4d.
fn crc(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ byte, |sum, _| match sum & 0x80 {
            0 => sum << 1,
            _ => (sum << 1) ^ 0x4D,
        })
    })
}
