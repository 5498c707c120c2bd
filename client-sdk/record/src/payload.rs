//! The stored form of a frame: its message after the field `frame`. PURE.

use std::borrow::Cow;

use amber_proto::ClientId;
use prost::Message;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};

use crate::companion::Carrier;

/// The field before the message. Messages have no field with this number: those of `DriverMsg`
/// begin with 2.
pub(crate) const FRAME: u32 = 1;

/// In [`crate::Descriptors::unknown`], the field with the message.
pub(crate) const OPAQUE: u32 = 2;

/// In a [`Carrier`], the field with [`Rest`]. Other programs skip it: their messages have no field with
/// this number.
const REST: u32 = 1000;

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
    /// In a message for other programs.
    Carried,
}

/// What a carrier lacks of the recorded frame.
#[derive(Clone, PartialEq, Message)]
struct Rest {
    #[prost(message, optional, tag = "1")]
    framing: Option<Framing>,
    /// The bytes of the message before and after the large part.
    #[prost(bytes = "vec", tag = "2")]
    before: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    after: Vec<u8>,
    /// The field of the carrier with the large part.
    #[prost(uint32, tag = "4")]
    field: u32,
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

/// Appends a carrier with everything of the frame.
pub(crate) fn write_carrier(
    out: &mut Vec<u8>,
    clients: impl Iterator<Item = ClientId>,
    carrier: &Carrier,
    message: &[u8],
) {
    let Carrier { part, field, .. } = carrier;
    let rest = Rest {
        framing: Some(Framing {
            clients: clients.map(|id| id.0).collect(),
            dropped: None,
        }),
        before: message[..part.start].to_vec(),
        after: message[part.end..].to_vec(),
        field: *field,
    };
    out.reserve(carrier.head.len() + message.len() + 64);
    out.extend_from_slice(&carrier.head);
    for (number, bytes) in [
        (*field, &message[part.clone()]),
        (REST, &rest.encode_to_vec()[..]),
    ] {
        encode_key(number, WireType::LengthDelimited, out);
        encode_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }
}

/// Reads the output of [`write`] or [`write_carrier`]: the framing and the message. `None` if it is
/// something else.
pub(crate) fn read(stored: &[u8], form: Form) -> Option<(Framing, Cow<'_, [u8]>)> {
    if form == Form::Carried {
        let rest = Rest::decode(found(stored, REST)?).ok()?;
        let part = found(stored, rest.field)?;
        let message = [&rest.before[..], part, &rest.after].concat();
        return Some((rest.framing?, message.into()));
    }
    let (frame, rest) = field(stored, FRAME)?;
    let framing = Framing::decode(frame).ok()?;
    match form {
        Form::Fields | Form::Carried => Some((framing, rest.into())),
        Form::Opaque => {
            let (message, rest) = field(rest, OPAQUE)?;
            rest.is_empty().then_some((framing, message.into()))
        }
    }
}

/// The value of the first field with this number, wherever it is.
fn found(mut bytes: &[u8], wanted: u32) -> Option<&[u8]> {
    loop {
        if let Some((value, _)) = field(bytes, wanted) {
            return Some(value);
        }
        let (number, wire) = decode_key(&mut bytes).ok()?;
        skip_field(wire, number, &mut bytes, DecodeContext::default()).ok()?;
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
            prop_assert_eq!(read(&out, form), Some((framing, message.into())));
        }

        #[test]
        fn a_carried_message_is_read_again(
            ids in prop::collection::vec(any::<i32>(), 0..5),
            message in prop::collection::vec(any::<u8>(), 0..50),
            cuts in (0_usize..=50, 0_usize..=50),
        ) {
            let [a, b] = [cuts.0, cuts.1].map(|cut| cut.min(message.len()));
            let carrier = Carrier {
                topic: "/t".into(),
                schema: "s",
                descriptors: &[],
                head: b"\x1a\x04jpeg".to_vec(),
                field: 2,
                part: a.min(b)..a.max(b),
            };
            let mut out = Vec::new();
            write_carrier(&mut out, ids.iter().map(|id| ClientId(*id)), &carrier, &message);
            prop_assert!(out.starts_with(&carrier.head));
            prop_assert_eq!(found(&out, 2), Some(&message[carrier.part.clone()]));
            let framing = Framing { clients: ids, dropped: None };
            prop_assert_eq!(read(&out, Form::Carried), Some((framing, message.into())));
        }

        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            for form in [Form::Fields, Form::Opaque, Form::Carried] {
                let _ = read(&bytes, form);
            }
        }
    }
}
