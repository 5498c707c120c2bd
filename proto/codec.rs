//! Frames over any byte stream, for both SDKs.

use std::io;

use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio_util::codec::{Decoder, Encoder};

use crate::DriverHdr;
use crate::frame::{Frame, check_prefix};

/// An owned frame: the header is decoded, the message is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// The device or the clients.
    pub header: DriverHdr,
    /// An encoded `DriverMsg`, usually.
    pub message: Bytes,
}

/// Reads and writes [`Packet`]s.
///
/// An invalid frame ends the stream with an error of kind `InvalidData`,
/// because the start of the next frame cannot be found.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameCodec;

impl Packet {
    /// Reads a datagram.
    ///
    /// # Errors
    /// `InvalidData`: the bytes are not exactly one frame, or the header is
    /// invalid.
    pub fn from_datagram(bytes: &Bytes) -> io::Result<Self> {
        let frame = Frame::from_datagram(bytes).map_err(invalid)?;
        Ok(Self {
            header: DriverHdr::decode(frame.header).map_err(invalid)?,
            message: bytes.slice_ref(frame.message),
        })
    }

    /// The bytes of the frame.
    ///
    /// # Errors
    /// `InvalidInput`: a part is longer than 32 767 bytes.
    pub fn encode(&self) -> io::Result<Bytes> {
        let mut out = Vec::new();
        let frame = Frame {
            header: &self.header.encode_to_vec(),
            message: &self.message,
        };
        frame
            .encode(&mut out)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(out.into())
    }
}

impl Decoder for FrameCodec {
    type Item = Packet;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Packet>> {
        let Some(frame) = Frame::from_stream(bytes) else {
            check_prefix(bytes).map_err(invalid)?;
            return Ok(None);
        };
        let header = DriverHdr::decode(frame.header).map_err(invalid)?;
        let (length, message) = (frame.wire_len(), frame.message.len());
        let frame = bytes.split_to(length).freeze();
        Ok(Some(Packet {
            header,
            message: frame.slice(length - message..),
        }))
    }
}

impl Encoder<Packet> for FrameCodec {
    type Error = io::Error;

    fn encode(&mut self, packet: Packet, out: &mut BytesMut) -> io::Result<()> {
        out.extend_from_slice(&packet.encode()?);
        Ok(())
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Vec<Packet>> {
        let header = (
            any::<Option<i32>>(),
            any::<Option<i32>>(),
            any::<Vec<i32>>(),
        );
        let packet =
            (header, any::<Vec<u8>>()).prop_map(|((device_type, device_id, ids), bytes)| {
                let header = DriverHdr {
                    device_type,
                    device_id,
                    client_ids: ids,
                };
                Packet {
                    header,
                    message: bytes.into(),
                }
            });
        proptest::collection::vec(packet, 0..5)
    }

    proptest! {
        #[test]
        fn frames_cut_anywhere_resume(packets in packets(), cut: prop::sample::Index) {
            let mut wire = BytesMut::new();
            for packet in &packets {
                FrameCodec.encode(packet.clone(), &mut wire).unwrap();
            }
            let rest = wire.split_off(cut.index(wire.len() + 1));
            let mut read = Vec::new();
            let mut buffer = BytesMut::new();
            for piece in [wire, rest] {
                buffer.extend_from_slice(&piece);
                while let Some(packet) = FrameCodec.decode(&mut buffer).unwrap() {
                    read.push(packet);
                }
            }
            prop_assert_eq!(read, packets);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            let mut buffer = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = FrameCodec.decode(&mut buffer) {}
        }
    }

    #[test]
    fn a_frame_cut_at_every_byte_resumes() {
        let packet = Packet {
            header: DriverHdr {
                device_type: Some(5),
                device_id: Some(0),
                client_ids: vec![1, 300],
            },
            message: Bytes::from_static(b"\x10\x02\x18\x07"),
        };
        let wire = packet.encode().unwrap();
        for cut in 0..wire.len() {
            let mut buffer = BytesMut::from(&wire[..cut]);
            assert_eq!(FrameCodec.decode(&mut buffer).unwrap(), None);
            buffer.extend_from_slice(&wire[cut..]);
            assert_eq!(
                FrameCodec.decode(&mut buffer).unwrap(),
                Some(packet.clone())
            );
        }
    }
}
