//! Frames, headers, and their handling in SDKs. PURE, except for the start of a clock.

use std::time::Instant;

use amber_driver::session::Session;
use amber_proto::frame::check_prefix;
use amber_proto::limits::{MAX_PART, SURE_HEADER};
use amber_proto::{ClientId, DriverHdr, Frame, FrameCodec, Header, Packet, dummy};
use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio_util::codec::Decoder;

use crate::Input;

/// One datagram: every byte is accounted for, and comes back as it was.
pub(super) fn frame(data: &[u8]) {
    let Ok(frame) = Frame::from_datagram(data) else {
        return;
    };
    assert_eq!(frame.wire_len(), data.len());
    assert_eq!(Frame::from_stream(data), Some(frame));
    let mut again = Vec::new();
    let fits = frame.header.len() <= MAX_PART && frame.message.len() <= MAX_PART;
    assert_eq!(frame.encode(&mut again).is_ok(), fits);
    if fits {
        assert_eq!(again, data);
    }
    // The SDKs see the same.
    let packet = Packet::from_datagram(&Bytes::copy_from_slice(data));
    assert_eq!(packet.is_ok(), Header::parse(frame.header).is_ok());
}

/// A driver's stdout, in pieces: the same frames, however it is cut, and no
/// good frame is taken for noise while it is incomplete.
pub(super) fn stream(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let (mut whole, mut rest) = (Vec::new(), input.0);
    while let Some(frame) = Frame::from_stream(rest) {
        if Header::parse(frame.header).is_err() {
            break;
        }
        whole.push(&rest[..frame.wire_len()]);
        rest = &rest[frame.wire_len()..];
    }
    for frame in &whole {
        let header = Frame::from_stream(frame).expect("it was one").header;
        for end in 0..frame.len().min(64) {
            let verdict = check_prefix(&frame[..end]);
            assert!(verdict.is_ok() || header.len() > SURE_HEADER, "{verdict:?}");
        }
    }
    let (mut buffer, mut found, mut noise) = (BytesMut::new(), 0, false);
    for piece in input.0.chunks(cut) {
        buffer.extend_from_slice(piece);
        loop {
            match FrameCodec.decode(&mut buffer) {
                Ok(Some(packet)) => {
                    let header = Frame::from_stream(whole[found]).expect("it was one").header;
                    assert_eq!(packet.header, DriverHdr::decode(header).expect("parsed"));
                    found += 1;
                }
                Ok(None) => break,
                Err(_) => {
                    noise = true;
                    break;
                }
            }
        }
        if noise {
            break;
        }
    }
    assert!(noise || found == whole.len());
}

/// The header that the mediator reads by hand is what protobuf reads.
pub(super) fn header(data: &[u8]) {
    let (ours, theirs) = (Header::parse(data), DriverHdr::decode(data));
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
    if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
        assert_eq!(ours.device_type.map(|number| number.0), theirs.device_type);
        assert_eq!(ours.device_id.map(|number| number.0), theirs.device_id);
        let ids: Vec<i32> = ours.client_ids().map(|ClientId(id)| id).collect();
        assert_eq!(ids, theirs.client_ids);
        assert_eq!(ours.has_clients(), !theirs.client_ids.is_empty());
    }
}

/// What a driver in Rust makes of frames from the mediator.
pub(super) fn session(data: &[u8]) {
    let mut buffer = BytesMut::from(data);
    let mut session = Session::<dummy::DriverMsg>::default();
    let now = Instant::now();
    while let Ok(Some(packet)) = FrameCodec.decode(&mut buffer) {
        let (named, pieces) = (packet.header.client_ids.len(), packet.message.len());
        session.handle_packet(now, packet);
        let mut answers = 0;
        while let Some(answer) = session.poll_output() {
            answers += 1;
            answer.encode().expect("an answer can be sent");
        }
        assert!(answers <= 1 + named, "{answers} answers to {pieces} bytes");
        while session.poll_from_device().is_some() {}
        if session.is_full() {
            while session.poll_work(now).is_some() {}
        }
    }
}
