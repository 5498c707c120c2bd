//! `DriverHdr` without allocation: the one message that the mediator reads and writes for every
//! frame. PURE.
//!
//! [`Header::parse`] accepts and reads exactly what the generated `DriverHdr` accepts and
//! reads; a property test compares the two.

use crate::ids::{ClientId, Device, DeviceId, DeviceType};
use crate::limits::MAX_GROUP_DEPTH;

const DEVICE_TYPE: u32 = 1;
const DEVICE_ID: u32 = 2;
const CLIENT_IDS: u32 = 3;

/// A header in a borrowed buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header<'a> {
    /// The type of the device, if present.
    pub device_type: Option<DeviceType>,
    /// The id of the device, if present (0 is not absent).
    pub device_id: Option<DeviceId>,
    /// All fields that may name clients, or only packed ids.
    clients: Clients<'a>,
    has_clients: bool,
}

/// The position of the clients in a header.
#[derive(Clone, Copy, Debug)]
enum Clients<'a> {
    /// Somewhere in the encoded header.
    Fields(&'a [u8]),
    /// In one packed field.
    Packed(&'a [u8]),
}

impl Default for Clients<'_> {
    fn default() -> Self {
        Self::Packed(&[])
    }
}

/// The reasons why bytes are not a `DriverHdr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The bytes end within a field.
    #[error("truncated")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("a number is too long")]
    Varint,
    /// A field number or wire type that protobuf does not have, or a known
    /// field of the wrong type.
    #[error("not a protobuf field")]
    Field,
}

impl<'a> Header<'a> {
    /// Reads a header.
    ///
    /// # Errors
    /// The bytes are not a `DriverHdr`.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        match bytes {
            // A fast path for the usual headers of clients and drivers.
            [0x08, device_type @ ..0x80, 0x10, device_id @ ..0x80] => Ok(Self {
                device_type: Some(DeviceType((*device_type).into())),
                device_id: Some(DeviceId((*device_id).into())),
                ..Self::default()
            }),
            [0x1a, length @ 1..0x80, ids @ ..]
                if usize::from(*length) == ids.len() && are_short(ids) =>
            {
                Ok(Self {
                    clients: Clients::Packed(ids),
                    has_clients: true,
                    ..Self::default()
                })
            }
            _ => Self::parse_any(bytes),
        }
    }

    fn parse_any(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        let mut header = Self {
            clients: Clients::Fields(bytes),
            ..Self::default()
        };
        let mut fields = Fields { rest: bytes };
        while let Some(field) = fields.next()? {
            match field {
                Field::Varint(DEVICE_TYPE, value) => {
                    header.device_type = Some(DeviceType(value as i32));
                }
                Field::Varint(DEVICE_ID, value) => header.device_id = Some(DeviceId(value as i32)),
                Field::Varint(CLIENT_IDS, _) => header.has_clients = true,
                Field::Bytes(CLIENT_IDS, mut packed) => {
                    header.has_clients |= !packed.is_empty();
                    while !packed.is_empty() {
                        varint(&mut packed)?;
                    }
                }
                Field::Varint(..) | Field::Bytes(..) | Field::Unknown => {}
            }
        }
        Ok(header)
    }

    /// The device, if the header names both its type and its id.
    pub fn device(&self) -> Option<Device> {
        Some(Device {
            device_type: self.device_type?,
            id: self.device_id?,
        })
    }

    /// Whether the header names any client.
    pub fn has_clients(&self) -> bool {
        self.has_clients
    }

    /// The clients in their order in the header, packed or not.
    pub fn client_ids(&self) -> impl Iterator<Item = ClientId> + 'a {
        let (rest, packed): (&[u8], &[u8]) = match self.clients {
            Clients::Fields(rest) => (rest, &[]),
            Clients::Packed(packed) => (&[], packed),
        };
        ClientIds {
            fields: Fields { rest },
            packed,
        }
    }

    /// Whether a header may begin with this byte without unknown fields.
    pub(crate) fn knows_tag(tag: u8) -> bool {
        matches!(tag, 0x08 | 0x10 | 0x18 | 0x1a)
    }
}

/// An encoded header: fields in the order of their numbers, ids packed.
#[derive(Clone, Copy, Debug)]
pub struct HeaderBytes {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl HeaderBytes {
    /// Two numbers of ten bytes and one packed id, with their tags.
    const MAX: usize = 2 * 11 + 2 + 10;

    /// A header with this device and client, if given.
    pub fn new(device: Option<Device>, client: Option<ClientId>) -> Self {
        let mut header = Self {
            bytes: [0; Self::MAX],
            len: 0,
        };
        if let Some(device) = device {
            header.push(0x08);
            header.push_varint(device.device_type.0);
            header.push(0x10);
            header.push_varint(device.id.0);
        }
        if let Some(client) = client {
            header.push(0x1a);
            let at = header.len;
            header.push(0);
            header.push_varint(client.0);
            header.bytes[usize::from(at)] = header.len - at - 1;
        }
        header
    }

    /// The encoded header.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.len)] = byte;
        self.len += 1;
    }

    /// Negative numbers take ten bytes, as everywhere in protobuf.
    fn push_varint(&mut self, value: i32) {
        let mut value = i64::from(value) as u64;
        while value > 0x7f {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }
}

/// Whether these bytes are numbers of one or two bytes each.
fn are_short(mut numbers: &[u8]) -> bool {
    while let [0..=0x7f, rest @ ..] | [0x80..=0xff, 0..=0x7f, rest @ ..] = numbers {
        numbers = rest;
    }
    numbers.is_empty()
}

enum Field<'a> {
    Varint(u32, u64),
    Bytes(u32, &'a [u8]),
    Unknown,
}

struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<Field<'a>>, HeaderError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = tag(&mut self.rest)?;
        let field = match (number, wire_type) {
            (_, 0) => Field::Varint(number, varint(&mut self.rest)?),
            (DEVICE_TYPE | DEVICE_ID, _) => return Err(HeaderError::Field),
            (_, 2) => {
                let length = varint(&mut self.rest)?;
                Field::Bytes(number, take(&mut self.rest, length)?)
            }
            (CLIENT_IDS, _) => return Err(HeaderError::Field),
            (_, _) => {
                skip(&mut self.rest, number, wire_type, MAX_GROUP_DEPTH)?;
                Field::Unknown
            }
        };
        Ok(Some(field))
    }
}

struct ClientIds<'a> {
    fields: Fields<'a>,
    packed: &'a [u8],
}

impl Iterator for ClientIds<'_> {
    type Item = ClientId;

    fn next(&mut self) -> Option<ClientId> {
        loop {
            if !self.packed.is_empty() {
                return varint(&mut self.packed).ok().map(|id| ClientId(id as i32));
            }
            // `parse` has checked every field, so there are no errors.
            match self.fields.next().ok()?? {
                Field::Varint(CLIENT_IDS, id) => return Some(ClientId(id as i32)),
                Field::Bytes(CLIENT_IDS, packed) => self.packed = packed,
                _ => {}
            }
        }
    }
}

fn tag(bytes: &mut &[u8]) -> Result<(u32, u8), HeaderError> {
    let tag = u32::try_from(varint(bytes)?).map_err(|_| HeaderError::Field)?;
    match (tag >> 3, (tag & 7) as u8) {
        (0, _) | (_, 6 | 7) => Err(HeaderError::Field),
        tag => Ok(tag),
    }
}

#[inline]
fn varint(bytes: &mut &[u8]) -> Result<u64, HeaderError> {
    // Nearly all numbers in headers have one byte.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok((*byte).into());
    }
    long_varint(bytes)
}

fn long_varint(bytes: &mut &[u8]) -> Result<u64, HeaderError> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            if i == 9 && *byte > 1 {
                return Err(HeaderError::Varint);
            }
            *bytes = &bytes[i + 1..];
            return Ok(value);
        }
    }
    Err(if bytes.len() < 10 {
        HeaderError::Truncated
    } else {
        HeaderError::Varint
    })
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], HeaderError> {
    let length = usize::try_from(length).map_err(|_| HeaderError::Truncated)?;
    let (taken, rest) = bytes
        .split_at_checked(length)
        .ok_or(HeaderError::Truncated)?;
    *bytes = rest;
    Ok(taken)
}

fn skip(bytes: &mut &[u8], number: u32, wire_type: u8, depth: usize) -> Result<(), HeaderError> {
    match wire_type {
        0 => varint(bytes).map(drop),
        1 => take(bytes, 8).map(drop),
        2 => {
            let length = varint(bytes)?;
            take(bytes, length).map(drop)
        }
        5 => take(bytes, 4).map(drop),
        3 if depth > 0 => loop {
            match tag(bytes)? {
                (end, 4) if end == number => return Ok(()),
                (_, 4) => return Err(HeaderError::Field),
                (number, wire_type) => skip(bytes, number, wire_type, depth - 1)?,
            }
        },
        _ => Err(HeaderError::Field),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::DriverHdr;

    /// Compares our result with prost's for the same bytes.
    fn check(bytes: &[u8]) {
        let ours = Header::parse(bytes).ok().map(|header| DriverHdr {
            device_type: header.device_type.map(|t| t.0),
            device_id: header.device_id.map(|i| i.0),
            client_ids: header.client_ids().map(|id| id.0).collect(),
        });
        assert_eq!(ours, DriverHdr::decode(bytes).ok(), "{bytes:02x?}");
        if let (Some(ours), Ok(header)) = (ours, Header::parse(bytes)) {
            assert_eq!(header.has_clients(), !ours.client_ids.is_empty());
        }
    }

    #[test]
    fn packed_unpacked_and_unknown_fields_are_read() {
        check(b"");
        check(b"\x08\x4d\x10\x03");
        check(b"\x1a\x03\x05\x06\x07");
        check(b"\x1a\x05\x05\x85\x01\x80\0");
        check(b"\x1a\x03\x05\x85\x81"); // the last id is cut off
        check(b"\x1a\x03\x85\x81\x01");
        check(b"\x1a\x02\x05"); // the field is cut off
        check(b"\x1a\x01\x05\x06"); // half a field follows
        check(b"\x18\x05\x18\x06");
        check(b"\x1a\x01\x05\x18\x06\x1a\x01\x07");
        check(b"\x1a\0");
        check(b"\x48\x07\x1a\x01\x05\x52\x02hi\x5d1234\x61\x31\x32\x33\x34\x35\x36\x37\x38");
        check(b"\x4b\x08\x01\x4c\x08\x05"); // a group
        check(b"\x4b\x4b\x4c\x4c\x10\x05"); // a group within a group
        check(b"\x4b\x54\x08\x05"); // a group ended by another's end
        check(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        check(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
        check(b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
        check(b"\x0a\x01\x05"); // deviceType of the wrong type
        check(b"\x1d1234"); // clientIDs of the wrong type
        check(b"\x00\x01"); // field 0
    }

    #[test]
    fn an_id_of_0_is_written_and_read() {
        let header = HeaderBytes::new(Some(Device::default()), None);
        assert_eq!(header.as_slice(), b"\x08\0\x10\0");
        assert_eq!(
            Header::parse(header.as_slice()).unwrap().device(),
            Some(Device::default())
        );
        assert_eq!(Header::parse(b"\x08\0").unwrap().device(), None);
    }

    fn fields() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            Just(0x08u8),
            Just(0x10),
            Just(0x18),
            Just(0x1a),
            Just(0x4b),
            Just(0x4c),
            Just(0xff),
            Just(0x01),
            0u8..8,
            any::<u8>(),
        ];
        proptest::collection::vec(byte, 0..40)
    }

    proptest! {
        #[test]
        fn it_reads_the_same_as_prost(bytes in fields()) {
            check(&bytes);
        }

        #[test]
        fn it_writes_the_same_as_prost(
            device: Option<(i32, i32)>,
            client in proptest::option::of(0..i32::MAX),
        ) {
            let header = HeaderBytes::new(
                device.map(|(t, i)| Device::new(DeviceType(t), i)),
                client.map(ClientId),
            );
            let expected = DriverHdr {
                device_type: device.map(|d| d.0),
                device_id: device.map(|d| d.1),
                client_ids: client.into_iter().collect(),
            };
            prop_assert_eq!(header.as_slice(), expected.encode_to_vec());
        }
    }
}
