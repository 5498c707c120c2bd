//! The stored form of a frame: its message after the field `frame`. PURE.

use amber_proto::ClientId;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_varint};

/// The field before the message. Messages have no field with this number: those of `DriverMsg`
/// begin with 2.
pub(crate) const FRAME: u32 = 1;

/// In [`crate::Descriptors::unknown`], the field with the message.
pub(crate) const OPAQUE: u32 = 2;

/// The data from the header of a frame and from the mediator.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Framing {
    /// The client that has sent the message, or the clients that got it.
    #[prost(int32, repeated, tag = "1")]
    pub clients: Vec<i32>,
    /// The reason why the mediator dropped it; absent if it was forwarded.
    #[prost(string, optional, tag = "2")]
    pub dropped: Option<String>,
}

/// The stored form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// With its own fields.
    Fields,
    /// As bytes in one field.
    Opaque,
}

/// Appends the stored form of a frame.
pub(crate) fn write(
    out: &mut Vec<u8>,
    clients: impl Iterator<Item = ClientId> + Clone,
    dropped: &str,
    form: Form,
    message: &[u8],
) {
    let ids: usize = clients.clone().map(|id| varint_len(id.0)).sum();
    let list = match ids {
        0 => 0,
        _ => 1 + varint_len(ids as i32) + ids,
    };
    let reason = match dropped.len() {
        0 => 0,
        length => 1 + varint_len(length as i32) + length,
    };
    // Two keys and two lengths of at most ten bytes are added to these.
    out.reserve(list + reason + message.len() + 24);
    out.push(key(FRAME));
    varint((list + reason) as u64, out);
    if list > 0 {
        out.push(key(1));
        varint(ids as u64, out);
        for id in clients {
            varint(i64::from(id.0) as u64, out);
        }
    }
    if reason > 0 {
        out.push(key(2));
        varint(dropped.len() as u64, out);
        out.extend_from_slice(dropped.as_bytes());
    }
    if form == Form::Opaque {
        out.push(key(OPAQUE));
        varint(message.len() as u64, out);
    }
    out.extend_from_slice(message);
}

/// The key of a field with a length. Numbers below 16 need one byte.
const fn key(number: u32) -> u8 {
    assert!(number < 16);
    (number << 3) as u8 | WireType::LengthDelimited as u8
}

/// Most numbers here need one byte, and each message of a recording has several.
#[inline]
fn varint(number: u64, out: &mut Vec<u8>) {
    match number {
        0..0x80 => out.push(number as u8),
        _ => encode_varint(number, out),
    }
}

/// Reads the output of [`write`]: the framing and the message. `None` if it is something else.
pub(crate) fn read(stored: &[u8], form: Form) -> Option<(Framing, &[u8])> {
    let (frame, rest) = field(stored, FRAME)?;
    let framing = Framing::decode(frame).ok()?;
    match form {
        Form::Fields => Some((framing, rest)),
        Form::Opaque => {
            let (message, rest) = field(rest, OPAQUE)?;
            rest.is_empty().then_some((framing, message))
        }
    }
}

/// The value of the field with this number at the start, and what follows.
fn field(mut bytes: &[u8], number: u32) -> Option<(&[u8], &[u8])> {
    let key = decode_key(&mut bytes).ok()?;
    if key != (number, WireType::LengthDelimited) {
        return None;
    }
    let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
    bytes.split_at_checked(length)
}

fn varint_len(number: i32) -> usize {
    prost::encoding::encoded_len_varint(i64::from(number) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_stored_is_read_again(
            ids in prop::collection::vec(any::<i32>(), 0..5),
            dropped in "[a-z_]{0,20}",
            message in prop::collection::vec(any::<u8>(), 0..50),
            opaque in any::<bool>(),
        ) {
            let form = if opaque { Form::Opaque } else { Form::Fields };
            let mut out = Vec::new();
            write(&mut out, ids.iter().map(|id| ClientId(*id)), &dropped, form, &message);
            let framing = Framing {
                clients: ids,
                dropped: (!dropped.is_empty()).then_some(dropped),
            };
            prop_assert_eq!(read(&out, form), Some((framing, &message[..])));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            for form in [Form::Fields, Form::Opaque] {
                let _ = read(&bytes, form);
            }
        }
    }
}
