//! Datagrams of other robot systems. PURE.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_gateways::apollo::frame::Frame;
use amber_gateways::apollo::limits::MAX_OPEN_TOTAL;
use amber_gateways::apollo::reassembly::Reassembly;
use amber_gateways::json_relay::codec::Message;
use amber_gateways::json_relay::image;
use amber_gateways::json_relay::limits::MAX_IMAGE;
use amber_gateways::rflysim::codec::{self as rflysim_codec};
use amber_gateways::rflysim::ports::Port;

use crate::input::Input;

/// A packet of RflySim: what is understood is written again in the same length, and means the
/// same.
pub(super) fn rflysim(data: &[u8]) {
    let mut input = Input(data);
    let port = Port::ALL[usize::from(input.byte()) % Port::ALL.len()];
    if let Ok(packet) = rflysim_codec::decode(port, input.0) {
        assert_eq!(packet.port(), port);
        let again = packet.encode();
        assert_eq!(again.len(), input.0.len());
        // A NaN is not equal to itself.
        if packet.is_finite() {
            assert_eq!(rflysim_codec::decode(port, &again), Ok(packet));
        }
    }
}

/// Frames of the Apollo bridge from two sources: each is written again with the same content, and
/// the memory for incomplete messages stays within its limit.
pub(super) fn apollo(data: &[u8]) {
    let mut input = Input(data);
    let mut reassembly = Reassembly::new(None);
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        let choice = input.byte();
        let source = IpAddr::from([127, 0, 0, choice & 1]);
        now += Duration::from_millis(u64::from(choice >> 1) * 4);
        let length = usize::from(input.number()).min(input.0.len());
        let (datagram, rest) = input.0.split_at(length);
        input = Input(rest);
        if let Ok((layout, frame)) = Frame::decode(datagram) {
            let again = frame.encode(layout);
            let found = Frame::decode(&again).expect("a frame that was written");
            assert_eq!((found.0, found.1.payload), (layout, frame.payload));
            assert_eq!(found.1.encode(layout), again);
            reassembly.handle_frame(now, 0.0, source, &frame);
            assert!(reassembly.used() <= MAX_OPEN_TOTAL);
        }
    }
}

/// Messages of the JSON relay, separated by line feeds: each is written again as the same message,
/// and the memory for incomplete images stays within its limit.
pub(super) fn json_relay(data: &[u8]) {
    let mut reassembly = image::Reassembly::default();
    let source = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut now = Duration::ZERO;
    for datagram in data.split(|byte| *byte == b'\n') {
        now += Duration::from_millis(100);
        let Ok(message) = Message::decode(datagram) else {
            continue;
        };
        assert_eq!(Message::decode(&message.encode()), Ok(message.clone()));
        if let Message::ImageFragment {
            sequence,
            total,
            image,
            timestamp,
        } = message
        {
            let image = reassembly.handle_fragment(now, source, sequence, total, image, timestamp);
            assert!(reassembly.used() <= MAX_IMAGE);
            if let Some(image) = image {
                let _ = image.decode();
                assert_eq!(image.messages().len(), image.texts.len());
            }
        }
    }
}
