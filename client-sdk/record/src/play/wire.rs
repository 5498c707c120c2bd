//! The outer fields of messages. PURE.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::topic::BESIDE;

/// The common fields of all messages; missing ones are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outer {
    pub(crate) msg_type: u64,
    pub(crate) syn: u64,
    pub(crate) ack: u64,
}

const TYPE: u32 = 2;
const SYN: u32 = 3;
const ACK: u32 = 4;
const LISTENER: u32 = 5;
const JOINS: u32 = 9;

/// Number and bytes (with the key) of each field; `None` if the message is malformed.
pub fn fields(mut message: &[u8]) -> Option<Vec<(u32, &[u8])>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let start = message;
        let (number, wire) = decode_key(&mut message).ok()?;
        skip_field(wire, number, &mut message, DecodeContext::default()).ok()?;
        fields.push((number, &start[..start.len() - message.len()]));
    }
    Some(fields)
}

/// The key of equal requests: everything except the numbers that differ each time.
pub fn key(message: &[u8]) -> Option<Vec<u8>> {
    let fields = fields(message)?.into_iter();
    let is_own = |number: u32| {
        !matches!(number, TYPE | SYN | ACK | LISTENER | JOINS) && !BESIDE.contains(&number)
    };
    let own = fields.filter(|(number, _)| is_own(*number));
    Some(own.flat_map(|(_, bytes)| bytes).copied().collect())
}

/// The outer fields of a message; `None` if it is malformed.
pub(crate) fn outer(mut message: &[u8]) -> Option<Outer> {
    let mut outer = Outer::default();
    while !message.is_empty() {
        let (number, wire) = decode_key(&mut message).ok()?;
        let place = match (number, wire) {
            (TYPE, WireType::Varint) => &mut outer.msg_type,
            (SYN, WireType::Varint) => &mut outer.syn,
            (ACK, WireType::Varint) => &mut outer.ack,
            _ => {
                skip_field(wire, number, &mut message, DecodeContext::default()).ok()?;
                continue;
            }
        };
        *place = decode_varint(&mut message).ok()?;
    }
    Some(outer)
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, SynNum, roboclaw};
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    #[test]
    fn requests_with_other_numbers_are_the_same() {
        let mut message = roboclaw::DriverMsg::data();
        message.current_speed_request = Some(true);
        let plain = key(&message.encode_to_vec()).unwrap();
        message.set_syn(Some(SynNum(70_000)));
        let mut numbered = message.encode_to_vec();
        assert_eq!(outer(&numbered).unwrap().syn, 70_000);
        // want_outcome and valid_ms
        numbered.extend([0xd0, 0x0b, 1, 0xe8, 0x0b, 100]);
        assert_eq!(key(&numbered).unwrap(), plain);
        message.current_speed_request = Some(false);
        assert_ne!(key(&message.encode_to_vec()).unwrap(), plain);
    }

    #[test]
    fn fields_are_found_with_their_bytes() {
        let message = b"\x10\x01\xa2\x01\x02hi\x20\x07";
        let expected = [(2, &message[..2]), (20, &message[2..7]), (4, &message[7..])];
        assert_eq!(fields(message).unwrap(), expected);
        let outer = outer(message).unwrap();
        assert_eq!((outer.msg_type, outer.syn, outer.ack), (1, 0, 7));
        assert_eq!(fields(b"\x10\x01\xa2\x01\x09hi"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(fields(&bytes).is_some(), key(&bytes).is_some());
            // It also rejects numbers that are too long, which `fields` skips.
            let _ = outer(&bytes);
        }
    }
}
