//! The channel of a message. PURE.

use amber_proto::feed::Direction;
use amber_proto::{Device, MsgType};
use prost::encoding::{DecodeContext, WireType, decode_varint, skip_field};

/// The kind of a message, according to its outer fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// It has this field of the device.
    Field(u32),
    /// It has none, but a type.
    Type(i32),
    /// It is not a `DriverMsg`.
    Opaque,
}

/// The fields of `DriverMsg` itself, and that before it: see [`crate::payload`].
const OUTER: u32 = 9;

/// The fields that accompany others: `want_outcome`, `valid_ms` and `for_client`.
pub(crate) const BESIDE: [u32; 3] = [186, 189, 197];

/// Looks at the outer fields of a message.
///
/// Own code, because each message of a recording passes through here, and reading fields with prost
/// took an eighth of the recorder's time. A test compares both.
pub(crate) fn kind_of(message: &[u8]) -> Kind {
    outer_fields(message).unwrap_or(Kind::Opaque)
}

/// `None` if the message is not a `DriverMsg`.
fn outer_fields(mut message: &[u8]) -> Option<Kind> {
    let (mut msg_type, mut first, mut beside) = (None, None, None);
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let number = u32::try_from(key >> 3).ok()?;
        match (number, key & 7) {
            // The field that is put before the message must be the only one of its number. No field
            // has number 0.
            (0 | super::payload::FRAME, _) => return None,
            (2, 0) => {
                msg_type = Some(varint(&mut message)? as i32);
                continue;
            }
            (number, _) if BESIDE.contains(&number) => beside = beside.or(Some(number)),
            (number, _) if number > OUTER => first = first.or(Some(number)),
            _ => {}
        }
        let length = match key & 7 {
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)?).ok()?,
            5 => 4,
            // Groups are rare.
            wire => {
                let wire = WireType::try_from(wire).ok()?;
                skip_field(wire, number, &mut message, DecodeContext::default()).ok()?;
                continue;
            }
        };
        message = message.get(length..)?;
    }
    match (first.or(beside), msg_type) {
        (Some(field), _) => Some(Kind::Field(field)),
        (None, Some(msg_type)) => Some(Kind::Type(msg_type)),
        (None, None) => None,
    }
}

#[inline]
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    match bytes.split_first() {
        Some((byte, rest)) if *byte < 0x80 => {
            *bytes = rest;
            Some((*byte).into())
        }
        _ => decode_varint(bytes).ok(),
    }
}

/// The name of a channel.
pub(crate) fn name(
    device: Device,
    device_name: &str,
    direction: Direction,
    dropped: bool,
    what: &str,
) -> String {
    let dropped = if dropped { "dropped/" } else { "" };
    let requests = match direction {
        Direction::ToDriver => "requests/",
        Direction::FromDriver => "",
    };
    format!("/{device_name}/{}/{dropped}{requests}{what}", device.id)
}

/// The name of a message without fields of the device.
pub(crate) fn type_name(number: i32) -> String {
    match MsgType::try_from(number) {
        Ok(kind) => kind.as_str_name().to_ascii_lowercase(),
        Err(_) => format!("type_{number}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::encoding::decode_key;

    use super::*;

    /// The same as [`kind_of`], with prost alone.
    fn kind_by_prost(mut message: &[u8]) -> Kind {
        let (mut msg_type, mut first, mut beside) = (None, None, None);
        while !message.is_empty() {
            let Ok((number, wire)) = decode_key(&mut message) else {
                return Kind::Opaque;
            };
            match (number, wire) {
                (super::super::payload::FRAME, _) => return Kind::Opaque,
                (2, WireType::Varint) => {
                    let Ok(number) = decode_varint(&mut message) else {
                        return Kind::Opaque;
                    };
                    msg_type = Some(number as i32);
                    continue;
                }
                (number, _) if BESIDE.contains(&number) => beside = beside.or(Some(number)),
                (number, _) if number > OUTER => first = first.or(Some(number)),
                _ => {}
            }
            if skip_field(wire, number, &mut message, DecodeContext::default()).is_err() {
                return Kind::Opaque;
            }
        }
        match (first.or(beside), msg_type) {
            (Some(field), _) => Kind::Field(field),
            (None, Some(msg_type)) => Kind::Type(msg_type),
            (None, None) => Kind::Opaque,
        }
    }

    /// Bytes that are often the start of fields: keys of one and two bytes, lengths, groups.
    fn fields() -> impl Strategy<Value = Vec<u8>> {
        let key = (0..200_u32, 0..8_u32).prop_map(|(number, wire)| {
            let mut bytes = Vec::new();
            prost::encoding::encode_varint(u64::from(number << 3 | wire), &mut bytes);
            bytes
        });
        let value = prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..10);
        let part = prop_oneof![3 => key, 1 => value];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn kinds_are_those_that_prost_finds(message in fields()) {
            prop_assert_eq!(kind_of(&message), kind_by_prost(&message));
        }
    }

    #[test]
    fn the_first_field_of_the_device_names_the_message() {
        for (message, kind) in [
            (&b"\x10\x01\xa0\x03\x01"[..], Kind::Field(52)),
            // type, want_outcome (186), then field 22.
            (b"\x10\x01\xd0\x0b\x01\xb2\x01\x00", Kind::Field(22)),
            (b"\x10\x01\xd0\x0b\x01", Kind::Field(186)),
            (b"\x10\x06", Kind::Type(6)),
            (b"\x10\x63\x18\x01", Kind::Type(99)),
            (b"", Kind::Opaque),
            (b"\x18\x01", Kind::Opaque),
            (b"hello", Kind::Opaque),
            // It has a field 1.
            (b"\x08\x01\x10\x01", Kind::Opaque),
            // A field that is cut off.
            (b"\x10\x01\xb2\x01\x09", Kind::Opaque),
        ] {
            assert_eq!(kind_of(message), kind, "{message:?}");
        }
        assert_eq!(
            (type_name(6), type_name(99)),
            ("subscribe".into(), "type_99".into())
        );
    }
}
