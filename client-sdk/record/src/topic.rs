//! The channel of a message. PURE.

use amber_proto::feed::Direction;
use amber_proto::{Device, MsgType};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

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

/// The fields that accompany others: `want_outcome`.
const BESIDE: u32 = 186;

/// Looks at the outer fields of a message.
pub(crate) fn kind_of(mut message: &[u8]) -> Kind {
    let (mut msg_type, mut first, mut beside) = (None, None, None);
    while !message.is_empty() {
        let Ok((number, wire)) = decode_key(&mut message) else {
            return Kind::Opaque;
        };
        match (number, wire) {
            // The field that is put before the message must be the only one of its number.
            (super::payload::FRAME, _) => return Kind::Opaque,
            (2, WireType::Varint) => match decode_varint(&mut message) {
                Ok(number) => {
                    msg_type = Some(number as i32);
                    continue;
                }
                Err(_) => return Kind::Opaque,
            },
            (BESIDE, _) => beside = beside.or(Some(number)),
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
    use super::*;

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
