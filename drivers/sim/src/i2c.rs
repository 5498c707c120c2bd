//! Transfers on an I2C bus, and how they are written over a stream, since a
//! bus has no pseudo-terminal. PURE.
//!
//! ```text
//! to the bus    address (7 bits), bytes to write, bytes to read: one byte each; the bytes to write
//! from the bus  06 and the bytes read, or 15 if nobody has answered at the address
//! ```
//!
//! A transfer with both is joined by a repeated start, as is usual to read a
//! register. The answers come in the order of the transfers. A bus on which a
//! chip holds a line down does not answer: whoever waits should hang up, since
//! a later answer could not be told from that to another transfer.

/// In front of the bytes that were read.
const ACK: u8 = 0x06;
/// Nobody has answered.
const NAK: u8 = 0x15;

/// What goes over a bus in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which chip, in 7 bits.
    pub address: u8,
    /// What is written first.
    pub written: Vec<u8>,
    /// How many bytes are read then.
    pub read: u8,
}

/// How a transfer went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The bytes that were read.
    Ack(Vec<u8>),
    /// Nobody is at the address.
    Nak,
}

impl Transfer {
    /// The transfer at the beginning of some bytes, and how many are its own;
    /// `None` when more must come.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let [address, write, read, rest @ ..] = bytes else {
            return None;
        };
        let written = rest.get(..usize::from(*write))?.to_vec();
        let transfer = Self {
            address: *address,
            written,
            read: *read,
        };
        Some((transfer, 3 + usize::from(*write)))
    }
}

impl Reply {
    /// The reply as it is sent.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ack(read) => [&[ACK], read.as_slice()].concat(),
            Self::Nak => vec![NAK],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_found_in_a_stream() {
        let bytes = [0x6B, 1, 6, 0xA8, 0x1E, 2];
        let (transfer, length) = Transfer::parse(&bytes).unwrap();
        let expected = Transfer {
            address: 0x6B,
            written: vec![0xA8],
            read: 6,
        };
        assert_eq!((transfer, length), (expected, 4));
        for short in 0..4 {
            assert_eq!(Transfer::parse(&bytes[..short]), None);
        }
        assert_eq!(Transfer::parse(&bytes[4..]), None);
    }

    #[test]
    fn replies_say_whether_somebody_is_there() {
        assert_eq!(Reply::Ack(vec![1, 2]).bytes(), [0x06, 1, 2]);
        assert_eq!(Reply::Nak.bytes(), [0x15]);
    }
}
