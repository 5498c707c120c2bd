//! The messages of the load: forwarded by any mediator, decodable by any protobuf tool, with a time
//! and a number inside. PURE.
//!
//! ```text
//!  0  10 TT                 type
//!  2  18 + 5 bytes          synNum, with a fixed length
//!  8  9a 0b + 3 bytes       field 179, bytes up to the end:
//! 13  u64 LE                nanoseconds of CLOCK_MONOTONIC
//! 21  u32 LE                number of the request
//! 25  zeros
//! ```

use amber_proto::{Device, DeviceType, Frame, HeaderBytes, MsgType};

/// The device that receives the requests.
pub const DEVICE: Device = Device {
    device_type: DeviceType::DUMMY,
    id: amber_proto::DeviceId(0),
};

/// The shortest message, in bytes.
pub const MIN_BYTES: usize = 32;

const TYPE: usize = 1;
const SYN: usize = 3;
const LENGTH: usize = 10;
const CONTENT: usize = 13;
const STAMP: usize = 13;
const NUMBER: usize = 21;

/// A message in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The time at which it was sent, in nanoseconds of CLOCK_MONOTONIC.
    pub stamp_ns: u64,
    pub number: u32,
    /// Whether it is a publication instead of an echo.
    pub is_data: bool,
}

/// Creates a message of this size, which must be stamped before each use.
///
/// # Panics
/// The size is below [`MIN_BYTES`].
pub fn message(kind: MsgType, bytes: usize) -> Vec<u8> {
    assert!(bytes >= MIN_BYTES, "{bytes} bytes are too few");
    let mut message = vec![0; bytes];
    message[TYPE - 1] = 0x10;
    message[TYPE] = kind as u8;
    message[SYN - 1] = 0x18;
    message[SYN + 5..LENGTH].copy_from_slice(&[0x9a, 0x0b]);
    put_varint(&mut message[LENGTH..CONTENT], (bytes - CONTENT) as u64);
    message
}

/// The same as a request to [`DEVICE`], with the offset of the message.
pub fn request(kind: MsgType, bytes: usize) -> (Vec<u8>, usize) {
    let message = message(kind, bytes);
    let header = HeaderBytes::new(Some(DEVICE), None);
    let mut frame = Vec::new();
    Frame {
        header: header.as_slice(),
        message: &message,
    }
    .encode(&mut frame)
    .expect("short enough");
    let at = frame.len() - message.len();
    (frame, at)
}

/// Writes time and number into a message.
pub fn stamp(message: &mut [u8], stamp_ns: u64, number: u32) {
    put_varint(&mut message[SYN..SYN + 5], number.into());
    message[STAMP..STAMP + 8].copy_from_slice(&stamp_ns.to_le_bytes());
    message[NUMBER..NUMBER + 4].copy_from_slice(&number.to_le_bytes());
}

/// Reads a datagram; `None` if it is not a message of the load.
pub fn read(datagram: &[u8]) -> Option<Probe> {
    let message = Frame::from_datagram(datagram).ok()?.message;
    if message.len() < MIN_BYTES {
        return None;
    }
    Some(Probe {
        stamp_ns: u64::from_le_bytes(message[STAMP..STAMP + 8].try_into().ok()?),
        number: u32::from_le_bytes(message[NUMBER..NUMBER + 4].try_into().ok()?),
        is_data: i32::from(message[TYPE]) == MsgType::Data as i32,
    })
}

/// A varint padded to a fixed length, so that the bytes after it keep their place.
fn put_varint(place: &mut [u8], mut value: u64) {
    let last = place.len() - 1;
    for (i, byte) in place.iter_mut().enumerate() {
        *byte = value as u8 & 0x7f | if i < last { 0x80 } else { 0 };
        value >>= 7;
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DriverMsg;

    use super::*;

    #[test]
    fn a_request_is_read_back_and_is_protobuf() {
        for bytes in [MIN_BYTES, 64, 6_800] {
            let (mut frame, at) = request(MsgType::Data, bytes);
            stamp(&mut frame[at..], 123_456_789_000, 77);
            let probe = read(&frame).unwrap();
            assert_eq!(
                probe,
                Probe {
                    stamp_ns: 123_456_789_000,
                    number: 77,
                    is_data: true
                }
            );
            assert_eq!(frame.len() - at, bytes);
            let message: DriverMsg = prost_decode(&frame[at..]);
            assert_eq!(message.syn_num, Some(77));
        }
        assert_eq!(read(b"\0\0\0\0"), None);
    }

    fn prost_decode(bytes: &[u8]) -> DriverMsg {
        prost::Message::decode(bytes).unwrap()
    }
}
