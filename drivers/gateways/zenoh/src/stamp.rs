//! The attachments of the fleet: numbers and times of messages. PURE.

/// The attachment of published data: 16 bytes, both numbers in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataStamp {
    /// The number of the message of this device since the robot started, from 1. A jump says how
    /// many are missing.
    pub sequence: u64,
    /// When the robot sent it, by its clock: nanoseconds since 1970.
    pub time_ns: u64,
}

/// The attachment of orders: 24 bytes, three numbers in little-endian order; or 16 bytes, without the
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStamp {
    /// A random number that each program of an operator chooses when it starts.
    pub instance: u64,
    /// The number of the message, which must grow. Late messages are not carried out.
    pub sequence: u64,
    /// When the program sent it, in nanoseconds of any clock that does not jump. Then the robot knows
    /// which orders were held up on their way.
    pub sent_ns: Option<u64>,
}

impl DataStamp {
    /// The bytes.
    #[must_use]
    pub fn encode(self) -> [u8; 16] {
        pair(self.sequence, self.time_ns)
    }

    /// Reads an attachment.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (sequence, time_ns) = numbers(bytes)?;
        Some(Self { sequence, time_ns })
    }
}

impl OrderStamp {
    /// The bytes.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = pair(self.instance, self.sequence).to_vec();
        bytes.extend(self.sent_ns.iter().flat_map(|ns| ns.to_le_bytes()));
        bytes
    }

    /// Reads an attachment.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, sent) = bytes.split_at_checked(16)?;
        let (instance, sequence) = numbers(bytes)?;
        let sent_ns = match sent {
            [] => None,
            sent => Some(u64::from_le_bytes(sent.try_into().ok()?)),
        };
        Some(Self {
            instance,
            sequence,
            sent_ns,
        })
    }
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

fn numbers(bytes: &[u8]) -> Option<(u64, u64)> {
    let both = u128::from_le_bytes(bytes.try_into().ok()?);
    Some((both as u64, (both >> 64) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_written_and_read() {
        let stamp = DataStamp {
            sequence: 1,
            time_ns: 0x0102_0304_0506_0708,
        };
        let bytes = [1, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1];
        assert_eq!(stamp.encode(), bytes);
        assert_eq!(DataStamp::decode(&bytes), Some(stamp));
        for (sent_ns, length) in [(None, 16), (Some(3), 24)] {
            let order = OrderStamp {
                instance: u64::MAX,
                sequence: 2,
                sent_ns,
            };
            let bytes = order.encode();
            assert_eq!(bytes.len(), length);
            assert_eq!(OrderStamp::decode(&bytes), Some(order));
            assert_eq!(OrderStamp::decode(&bytes[1..]), None);
        }
    }
}
