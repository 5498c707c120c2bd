//! The worked frame, both layouts, and every kind of bad frame.

use proptest::prelude::*;
use prost::Message;

use super::super::messages::{Chassis, Header};
use super::*;
use crate::testing::unhex;

/// Header and payload of a Chassis message.
const CHASSIS: &str = "
    41706f6c6c6f42726964676548656164
    6572000aa80000000a000000003a0400
    00003a000000000a010000003a080000
    003a43686173736973000a020000003a
    040000003a070000000a030000003a04
    0000003a1c0000000a040000003a0400
    00003a010000000a050000003a040000
    003a1c0000000a060000003a04000000
    3a000000000a070000003a040000003a
    000000000a080000003a080000003a00
    001040fc54d9410a18012d0000003fca
    01120900001040fc54d9411205616d62
    65721807";

fn chassis() -> Chassis {
    Chassis {
        engine_started: Some(true),
        speed_mps: Some(0.5),
        header: Some(Header {
            timestamp_sec: Some(1_700_000_000.25),
            module_name: Some("amber".into()),
            sequence_num: Some(7),
        }),
        wheel_speed: None,
    }
}

fn frame(payload: &[u8]) -> Frame<'_> {
    Frame {
        name: "Chassis",
        message_id: 7,
        message_size: payload.len(),
        frames: 1,
        position: 0,
        index: 0,
        time_s: 1_700_000_000.25,
        payload,
    }
}

#[test]
fn worked_datagram() {
    let bytes = unhex(CHASSIS);
    assert_eq!(bytes.len(), 196);
    let (layout, found) = Frame::decode(&bytes).unwrap();
    let payload = chassis().encode_to_vec();
    assert_eq!((layout, &found), (Layout::Current, &frame(&payload)));
    assert_eq!(found.encode(layout), bytes);
    assert_eq!(Chassis::decode(found.payload).unwrap(), chassis());
}

#[test]
fn header_lengths() {
    for (name, current) in [
        ("Chassis", 168),
        ("ADCTrajectory", 174),
        ("LocalizationEstimate", 181),
        ("planning::ADCTrajectory", 184),
    ] {
        let mut frame = frame(&[0]);
        frame.name = name;
        // Lengths of nine items and of the header, and the values of three items.
        let legacy = current + 4 * (9 + 1 + 3);
        assert_eq!(frame.encode(Layout::Current).len(), current + 1);
        assert_eq!(frame.encode(Layout::Legacy).len(), legacy + 1);
    }
    assert_eq!(184 + 52, 236, "as computed from the older source");
}

#[test]
fn both_layouts_are_told_apart() {
    for layout in [Layout::Current, Layout::Legacy] {
        let bytes = frame(b"abc").encode(layout);
        assert_eq!(Frame::decode(&bytes), Ok((layout, frame(b"abc"))));
    }
}

#[test]
fn an_item_with_an_unknown_number_is_skipped() {
    let mut bytes = frame(b"abc").encode(Layout::Current);
    let item = unhex("09000000 3a 02000000 3a ffff 0a");
    bytes.splice(25..25, item.iter().copied());
    bytes[20] += 13;
    assert_eq!(Frame::decode(&bytes), Ok((Layout::Current, frame(b"abc"))));
}

#[test]
fn every_cut_is_rejected() {
    for layout in [Layout::Current, Layout::Legacy] {
        let bytes = frame(b"abc").encode(layout);
        for length in 0..bytes.len() {
            assert!(Frame::decode(&bytes[..length]).is_err(), "{length}");
        }
    }
}

/// Changes the worked datagram at one place.
#[track_caller]
fn check_bad(at: usize, new: &[u8], expected: BadFrame) {
    let mut bytes = unhex(CHASSIS);
    bytes[at..][..new.len()].copy_from_slice(new);
    assert_eq!(Frame::decode(&bytes), Err(expected));
}

#[test]
fn bad_headers() {
    check_bad(0, b"a", BadFrame::NoHeader);
    check_bad(19, b" ", BadFrame::NoHeader);
    check_bad(24, b" ", BadFrame::NoHeader);
    check_bad(20, &[24], BadFrame::HeaderLength(24));
    check_bad(20, &[197], BadFrame::HeaderLength(197));
    check_bad(
        20,
        &u32::MAX.to_le_bytes(),
        BadFrame::HeaderLength(u32::MAX.into()),
    );
    check_bad(20, &[167], BadFrame::Item(149));
    check_bad(20, &[169], BadFrame::Item(168));
    check_bad(29, b";", BadFrame::Item(25));
    check_bad(34, b";", BadFrame::Item(25));
    check_bad(39, b" ", BadFrame::Item(25));
    check_bad(30, &[5], BadFrame::Item(25));
    check_bad(30, &u32::MAX.to_le_bytes(), BadFrame::Item(25));
}

#[test]
fn bad_items() {
    check_bad(25, &[9], BadFrame::Missing(Item::Version));
    check_bad(59, &[0], BadFrame::Twice(Item::Version));
    check_bad(149, &[9], BadFrame::Missing(Item::Time));
    check_bad(40, &[2], BadFrame::Twice(Item::MessageId));
    // The terminator of the name, and a name of control characters.
    check_bad(57, b"s", BadFrame::Name);
    check_bad(50, &[0], BadFrame::Name);
    check_bad(50, &[0xff], BadFrame::Name);
    // A time and a message number that have each other's length.
    check_bad(149, &[2], BadFrame::Twice(Item::MessageId));
    // Name and time swapped: the name has eight bytes, as a time.
    let mut bytes = unhex(CHASSIS);
    (bytes[40], bytes[149]) = (8, 1);
    assert_eq!(Frame::decode(&bytes), Err(BadFrame::Name));
    let mut bytes = unhex(CHASSIS);
    (bytes[59], bytes[149]) = (8, 2);
    assert_eq!(
        Frame::decode(&bytes),
        Err(BadFrame::ItemLength(Item::MessageId))
    );
}

#[test]
fn bad_sizes() {
    let size = |size: u32| size.to_le_bytes();
    check_bad(84, &size(0), BadFrame::MessageSize(0));
    check_bad(84, &size(1 << 20 | 1), BadFrame::MessageSize(1 << 20 | 1));
    check_bad(84, &size(u32::MAX), BadFrame::MessageSize(u32::MAX.into()));
    check_bad(84, &size(29), BadFrame::Inconsistent);
    check_bad(99, &size(0), BadFrame::Inconsistent);
    check_bad(99, &size(2), BadFrame::Inconsistent);
    check_bad(99, &size(u32::MAX), BadFrame::Inconsistent);
    check_bad(114, &size(27), BadFrame::FrameSize(27, 28));
    check_bad(
        114,
        &size(u32::MAX),
        BadFrame::FrameSize(u32::MAX.into(), 28),
    );
    check_bad(129, &size(1), BadFrame::Inconsistent);
    check_bad(129, &size(u32::MAX), BadFrame::Inconsistent);
    check_bad(144, &size(1), BadFrame::Inconsistent);
    check_bad(144, &size(u32::MAX), BadFrame::Inconsistent);
}

#[test]
fn huge_numbers_of_the_legacy_layout() {
    let good = frame(b"abc").encode(Layout::Legacy);
    // The value of the position item, after its head.
    let at = good
        .windows(4)
        .position(|bytes| bytes == [6, 0, 0, 0])
        .unwrap()
        + 14;
    for huge in [u64::MAX, u64::MAX - 2, 1 << 63] {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&huge.to_le_bytes());
        assert_eq!(Frame::decode(&bytes), Err(BadFrame::Inconsistent));
    }
}

proptest! {
    #[test]
    fn round_trip(
        name in "[A-Za-z:.]{1,128}",
        message_id in any::<u32>(),
        time_s in any::<f64>(),
        piece in 64..1400_usize,
        frames in 1..40_usize,
        last in 1..1400_usize,
        index in 0..40_usize,
        legacy in any::<bool>(),
    ) {
        let (index, last) = (index % frames, last.min(piece));
        let size = if index + 1 == frames { last } else { piece };
        let frame = Frame {
            name: &name,
            message_id,
            message_size: piece * (frames - 1) + last,
            frames,
            position: index * piece,
            index,
            time_s,
            payload: &vec![7; size],
        };
        let layout = if legacy { Layout::Legacy } else { Layout::Current };
        let bytes = frame.encode(layout);
        prop_assert_eq!(Frame::decode(&bytes), Ok((layout, frame)));
    }

    #[test]
    fn no_input_panics(at in 0..196_usize, byte: u8, other in 0..196_usize, value: u8) {
        let mut bytes = unhex(CHASSIS);
        (bytes[at], bytes[other]) = (byte, value);
        let _ = Frame::decode(&bytes);
    }
}
