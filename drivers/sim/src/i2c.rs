//! Transfers on an I2C bus, and their encoding as a byte stream, since a bus has no
//! pseudo-terminal. PURE.
//!
//! ```text
//! to the bus    address (7 bits), bytes to write, bytes to read: one byte each; the bytes to write
//! from the bus  06 and the bytes read, or 15 if no chip answered at the address
//! ```
//!
//! A repeated start joins the write and the read of a transfer, as is usual for reading a register.
//! Replies arrive in the order of the transfers. If a chip holds a line down, the bus does not
//! answer. The program should then disconnect, since it could not tell a late reply from the reply
//! to another transfer.

/// The byte before the bytes read.
const ACK: u8 = 0x06;
/// No chip answered.
const NAK: u8 = 0x15;

/// A transfer on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The address of the chip, in 7 bits.
    pub address: u8,
    /// The bytes to write first.
    pub written: Vec<u8>,
    /// The number of bytes to read after that.
    pub read: u8,
}

/// The result of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The bytes read.
    Ack(Vec<u8>),
    /// No chip is at the address.
    Nak,
}

impl Transfer {
    /// Parses the transfer at the start of some bytes, and returns its length; `None` if more bytes
    /// are needed.
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
    /// Encodes the reply.
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
    fn replies_show_whether_a_chip_answered() {
        assert_eq!(Reply::Ack(vec![1, 2]).bytes(), [0x06, 1, 2]);
        assert_eq!(Reply::Nak.bytes(), [0x15]);
    }
}
