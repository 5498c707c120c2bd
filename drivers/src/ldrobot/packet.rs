//! The packets of LDROBOT scanners: 12 points in 47 bytes, sent all the time. PURE.
//!
//! ```text
//!  0   54 2c        head: the second byte says that 12 points follow
//!  2   u16          speed of the motor, degrees per second
//!  4   u16          angle of the first point, 0.01 degrees, clockwise
//!  6   12 x u16 u8  distance in mm (0: no echo), strength of the echo
//!  42  u16          angle of the last point
//!  44  u16          time in ms, below 30000
//!  46  u8           CRC-8 of all bytes before: polynomial 4d, start 0, not reflected
//! ```

/// The number of points in a packet.
pub const POINTS: usize = 12;
/// The length of a packet in bytes.
pub const LENGTH: usize = 47;
/// The time stamp wraps to 0 here, in ms.
pub const STAMP_END_MS: u16 = 30_000;

const HEAD: [u8; 2] = [0x54, 0x2C];
/// A full turn in 0.01 degrees.
const TURN: u16 = 36_000;

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The speed of the motor in degrees per second.
    pub speed_deg_s: u16,
    /// The angle of the first point in 0.01 degrees, clockwise from the front mark.
    pub first: u16,
    /// The angle of the last point.
    pub last: u16,
    /// Distances in mm with the strength of their echoes; 0 and 0 without an echo.
    pub points: [(u16, u8); POINTS],
    /// The scanner's time in ms, below [`STAMP_END_MS`].
    pub stamp_ms: u16,
}

impl Packet {
    /// Reads a packet; `None` if its head, its checksum or an angle is wrong.
    #[must_use]
    pub fn read(bytes: &[u8; LENGTH]) -> Option<Self> {
        let (body, sum) = bytes.split_at(LENGTH - 1);
        if body[..2] != HEAD || crc(body) != sum[0] {
            return None;
        }
        let word = |at: usize| u16::from_le_bytes([body[at], body[at + 1]]);
        let packet = Self {
            speed_deg_s: word(2),
            first: word(4),
            last: word(42),
            points: std::array::from_fn(|k| (word(6 + 3 * k), body[8 + 3 * k])),
            stamp_ms: word(44),
        };
        let makes_sense = packet.first < TURN && packet.last < TURN;
        makes_sense.then_some(packet)
    }

    /// The angle from the first point to the last one, in degrees.
    #[must_use]
    pub fn span_deg(&self) -> f64 {
        let ahead = match self.last.checked_sub(self.first) {
            Some(ahead) => ahead,
            None => self.last + (TURN - self.first),
        };
        f64::from(ahead) / 100.0
    }

    /// The angle of a point in degrees, from 0 to below 360.
    #[must_use]
    pub fn angle_deg(&self, point: usize) -> f64 {
        let way = self.span_deg() * point as f64 / (POINTS - 1) as f64;
        (f64::from(self.first) / 100.0 + way).rem_euclid(360.0)
    }
}

/// Finds packets in a stream of bytes, also after invalid ones.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    bytes: Vec<u8>,
    skipped: u64,
}

impl Parser {
    /// Adds received bytes. Take all packets after each call.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next packet.
    pub fn poll(&mut self) -> Option<Packet> {
        let mut at = 0;
        let mut found = None;
        while let Some(bytes) = self.bytes[at..].first_chunk::<LENGTH>() {
            found = Packet::read(bytes);
            if found.is_some() {
                break;
            }
            // A damaged packet may hide the head of the next one.
            let next = self.bytes[at + 1..].iter().position(|it| *it == HEAD[0]);
            at = next.map_or(self.bytes.len(), |next| at + 1 + next);
        }
        self.skipped += at as u64;
        let used = at + found.map_or(0, |_| LENGTH);
        self.bytes.drain(..used);
        found
    }

    /// The number of bytes that belong to no packet.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Discards a partial packet.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// The command that starts the motor of an LD14P.
pub const START: [u8; 8] = command(0xA0);
/// The command that stops it. A stopped LD14P sends nothing.
pub const STOP: [u8; 8] = command(0xA1);

/// A command without a parameter.
const fn command(code: u8) -> [u8; 8] {
    let mut bytes = [HEAD[0], code, 4, 0, 0, 0, 0, 0];
    let mut sum = 0;
    let mut at = 0;
    while at < 7 {
        sum = CRC[(sum ^ bytes[at]) as usize];
        at += 1;
    }
    bytes[7] = sum;
    bytes
}

const CRC: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u8;
        let mut bit = 0;
        while bit < 8 {
            let carry = sum & 0x80 != 0;
            sum <<= 1;
            if carry {
                sum ^= 0x4D;
            }
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

fn crc(bytes: &[u8]) -> u8 {
    let next = |sum: u8, byte: &u8| CRC[usize::from(sum ^ byte)];
    bytes.iter().fold(0, next)
}

#[cfg(test)]
mod tests;
