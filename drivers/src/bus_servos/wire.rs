//! What goes over a bus of servos, whatever its protocol: requests, answers and noise. PURE.

/// Tells all servos at once.
pub const EVERYBODY: u8 = 254;

/// The largest id of a servo.
pub const MAX_ID: u8 = 252;

/// The most bytes that wait for the rest of a packet: several of the longest ones.
const ROOM: usize = 4 * 1024;

/// A request. Addresses are those of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Whether there is a servo with this id.
    Ping(u8),
    /// The values of registers of one servo.
    Read {
        /// Its id.
        id: u8,
        /// The first register.
        at: u16,
        /// How many bytes.
        count: u8,
    },
    /// The values of registers of several servos, which answer one after another.
    GroupRead {
        /// The first register.
        at: u16,
        /// How many bytes of each servo.
        count: u8,
        /// The servos.
        ids: Vec<u8>,
    },
    /// Values for registers of several servos. Nobody answers.
    GroupWrite {
        /// The first register.
        at: u16,
        /// The servos, and as many bytes for each of them.
        values: Vec<(u8, Vec<u8>)>,
    },
}

impl Request {
    /// The servos that answer.
    #[must_use]
    pub fn asked(&self) -> &[u8] {
        match self {
            Self::Ping(id) | Self::Read { id, .. } => std::slice::from_ref(id),
            Self::GroupRead { ids, .. } => ids,
            Self::GroupWrite { .. } => &[],
        }
    }

    /// How many bytes of registers are in each answer.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Read { count, .. } | Self::GroupRead { count, .. } => (*count).into(),
            Self::Ping(_) | Self::GroupWrite { .. } => 0,
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who answers.
    pub id: u8,
    /// What is wrong with it, or with the request: the bits depend on the protocol.
    pub error: u8,
    /// The values of registers.
    pub data: Vec<u8>,
}

/// What the first bytes on the line are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An intact answer of this many bytes.
    Status(Status, usize),
    /// The beginning of one, perhaps.
    Incomplete,
    /// So many bytes that begin no packet. At least one.
    Noise(usize),
    /// So many bytes that look like a packet, and are damaged. At least one.
    Damaged(usize),
}

/// Bytes from the line, until they are answers.
#[derive(Clone, Debug, Default)]
pub struct Line {
    bytes: Vec<u8>,
    damaged: u32,
}

impl Line {
    /// A request is sent: whatever arrived before is no answer to it.
    pub fn begin(&mut self) {
        self.bytes.clear();
        self.damaged = 0;
    }

    /// Damaged packets since the last call of [`Line::begin`].
    #[must_use]
    pub fn damaged(&self) -> u32 {
        self.damaged
    }

    /// Bytes have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        // Somebody who sends without an end.
        if self.bytes.len() + bytes.len() > ROOM {
            self.bytes.clear();
        }
        self.bytes
            .extend(&bytes[bytes.len().saturating_sub(ROOM)..]);
    }

    /// The next answer. `find` says what the first bytes are.
    pub fn next(&mut self, find: impl Fn(&[u8]) -> Found) -> Option<Status> {
        loop {
            match find(&self.bytes) {
                Found::Status(status, length) => {
                    self.bytes.drain(..length);
                    return Some(status);
                }
                Found::Incomplete => return None,
                Found::Noise(length) => drop(self.bytes.drain(..length)),
                Found::Damaged(length) => {
                    self.damaged += 1;
                    self.bytes.drain(..length);
                }
            }
        }
    }
}

/// A number whose uppermost bit is its sign, as Feetech has it.
#[must_use]
pub fn with_sign(value: u16, sign: u32) -> i32 {
    let magnitude = i32::from(value & ((1 << sign) - 1));
    match value & (1 << sign) == 0 {
        true => magnitude,
        false => -magnitude,
    }
}

/// The same the other way round. What is too large becomes the largest number.
#[must_use]
pub fn sign_magnitude(value: i32, sign: u32) -> u16 {
    let most = (1_u32 << sign) - 1;
    let magnitude = value.unsigned_abs().min(most) as u16;
    match value < 0 {
        true => magnitude | (1 << sign),
        false => magnitude,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_a_bit() {
        for (bytes, sign, value) in [
            ([0x32, 0x80], 15, -50),
            ([0x64, 0x04], 10, -100),
            ([0x69, 0x84], 15, -1129),
            ([0x25, 0x08], 11, -37),
            ([0x12, 0x02], 11, 530),
            ([0x71, 0x09], 11, -369),
            ([0x00, 0x80], 15, 0),
        ] {
            assert_eq!(with_sign(u16::from_le_bytes(bytes), sign), value);
            if value != 0 {
                assert_eq!(sign_magnitude(value, sign).to_le_bytes(), bytes);
            }
        }
        assert_eq!(with_sign(sign_magnitude(-99_999, 15), 15), -32_767);
        assert_eq!(with_sign(sign_magnitude(4_000, 10), 10), 1_023);
    }
}
