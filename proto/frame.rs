//! Frames: two parts, each after its length. PURE.

use byteorder::{BigEndian, ByteOrder};

use crate::header::{Header, HeaderError};
use crate::limits::{FRAME_OVERHEAD, MAX_PART, SURE_HEADER};

/// One frame in a borrowed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// An encoded `DriverHdr`.
    pub header: &'a [u8],
    /// An encoded `DriverMsg`, usually; the mediator does not read it.
    pub message: &'a [u8],
}

/// The reasons why a datagram is not exactly one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// The datagram is empty.
    #[error("empty")]
    Empty,
    /// Too short for the two lengths.
    #[error("too short for a frame")]
    Short,
    /// The header's length points past the end.
    #[error("header length too long")]
    HeaderLength,
    /// The message's length points past the end.
    #[error("message length too long")]
    MessageLength,
    /// There are bytes after the message.
    #[error("message length too short")]
    Trailing,
}

/// The reasons why bytes on a driver's stdout are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The length is followed by bytes that cannot be a header.
    #[error("header length {0} followed by an invalid header")]
    Length(usize),
    /// The header is not a `DriverHdr`.
    #[error("invalid header: {0}")]
    Header(#[from] HeaderError),
}

/// A part is longer than [`MAX_PART`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} of {1} bytes is longer than {MAX_PART}")]
pub struct PartTooLong(pub &'static str, pub usize);

impl<'a> Frame<'a> {
    /// Reads a datagram, which must be exactly one frame.
    pub fn from_datagram(bytes: &'a [u8]) -> Result<Self, DatagramError> {
        if bytes.is_empty() {
            return Err(DatagramError::Empty);
        }
        if bytes.len() < FRAME_OVERHEAD {
            return Err(DatagramError::Short);
        }
        let (header, rest) = part(bytes).ok_or(DatagramError::HeaderLength)?;
        if rest.len() < 2 {
            return Err(DatagramError::HeaderLength);
        }
        let (message, rest) = part(rest).ok_or(DatagramError::MessageLength)?;
        if !rest.is_empty() {
            return Err(DatagramError::Trailing);
        }
        Ok(Self { header, message })
    }

    /// Reads the first frame of a byte stream; `None` while it is incomplete.
    ///
    /// The frame takes [`Frame::wire_len`] bytes. Only the lengths are checked;
    /// [`Header::parse`] and [`check_prefix`] detect noise.
    pub fn from_stream(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = part(bytes)?;
        let (message, _) = part(rest)?;
        Some(Self { header, message })
    }

    /// The number of bytes that the frame takes on the wire.
    pub fn wire_len(&self) -> usize {
        FRAME_OVERHEAD + self.header.len() + self.message.len()
    }

    /// Appends the frame to `out`.
    ///
    /// # Errors
    /// A part is longer than [`MAX_PART`]; then nothing is written.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), PartTooLong> {
        for (name, part) in [("header", self.header), ("message", self.message)] {
            if part.len() > MAX_PART {
                return Err(PartTooLong(name, part.len()));
            }
        }
        out.reserve(self.wire_len());
        for part in [self.header, self.message] {
            // MAX_PART fits, so this cannot truncate.
            out.extend_from_slice(&(part.len() as u16).to_be_bytes());
            out.extend_from_slice(part);
        }
        Ok(())
    }
}

/// Detects early that incomplete data cannot become a frame.
///
/// Text on stdout is detected at its third byte. Otherwise the reader would
/// wait for as many bytes as the first two letters encode.
///
/// # Errors
/// The reason why it cannot be a frame.
pub fn check_prefix(bytes: &[u8]) -> Result<(), StreamError> {
    let Some((length, rest)) = length(bytes) else {
        return Ok(());
    };
    let header = &rest[..length.min(rest.len())];
    if length > SURE_HEADER && header.first().is_some_and(|tag| !Header::knows_tag(*tag)) {
        return Err(StreamError::Length(length));
    }
    match Header::parse(header) {
        Err(HeaderError::Truncated) if header.len() < length => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// Splits off one length-prefixed part.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes)?;
    rest.split_at_checked(length)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_at_checked(2)?;
    Some((BigEndian::read_u16(length).into(), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(header: &[u8], message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Frame { header, message }.encode(&mut out).unwrap();
        out
    }

    #[test]
    fn malformed_datagrams_are_distinguished() {
        use DatagramError::*;
        for (bytes, error) in [
            (&b""[..], Empty),
            (b"\0", Short),
            (b"\0\0\0", Short),
            (b"\0\x05\x08\x01", HeaderLength),
            (b"\0\x02\x08\x01", HeaderLength),
            (b"\0\x02\x08\x01\0", HeaderLength),
            (b"\xff\xff\0\0", HeaderLength),
            (b"\0\0\0\x03ab", MessageLength),
            (b"\0\0\0\x01ab", Trailing),
        ] {
            assert_eq!(Frame::from_datagram(bytes), Err(error), "{bytes:02x?}");
        }
    }

    #[test]
    fn parts_of_32767_bytes_pass_and_one_more_does_not() {
        let longest = vec![7; MAX_PART];
        assert_eq!(encoded(&[], &longest).len(), MAX_PART + 4);
        assert_eq!(encoded(&longest, &longest).len(), 2 * MAX_PART + 4);
        let longer = vec![7; MAX_PART + 1];
        for frame in [
            Frame {
                header: &[],
                message: &longer,
            },
            Frame {
                header: &longer,
                message: &[],
            },
        ] {
            let mut out = Vec::new();
            assert!(frame.encode(&mut out).is_err());
            assert!(out.is_empty());
        }
    }

    #[test]
    fn text_is_detected_at_once() {
        for text in [
            "starting\n",
            "Hello",
            "Hi\n",
            "\x1b[32mok",
            "\nHe",
            "{\"a\":1}",
            "DEBUG x",
        ] {
            assert!(check_prefix(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(check_prefix(&[0xff; 3]).is_err());
    }

    #[test]
    fn long_headers_of_real_drivers_are_not_taken_for_text() {
        let ids: Vec<i32> = (1..12_000).collect();
        let header = prost::Message::encode_to_vec(&crate::DriverHdr {
            client_ids: ids,
            ..Default::default()
        });
        assert!(header.len() > SURE_HEADER);
        let frame = encoded(&header, b"x");
        for cut in 0..frame.len() {
            assert_eq!(check_prefix(&frame[..cut]), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            let _ = Frame::from_datagram(&bytes);
            let _ = Frame::from_stream(&bytes);
            let _ = check_prefix(&bytes);
        }

        #[test]
        fn encode_then_decode_is_identity(header: Vec<u8>, message: Vec<u8>, rest: Vec<u8>) {
            let frame = Frame { header: &header, message: &message };
            let mut bytes = encoded(&header, &message);
            prop_assert_eq!(Frame::from_datagram(&bytes), Ok(frame));
            prop_assert_eq!(frame.wire_len(), bytes.len());
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(Frame::from_stream(&bytes), Some(frame));
        }

        #[test]
        fn a_frame_cut_anywhere_is_incomplete(header: Vec<u8>, message: Vec<u8>) {
            let bytes = encoded(&header, &message);
            for cut in 0..bytes.len() {
                prop_assert_eq!(Frame::from_stream(&bytes[..cut]), None);
                prop_assert!(Frame::from_datagram(&bytes[..cut]).is_err());
            }
        }
    }
}
