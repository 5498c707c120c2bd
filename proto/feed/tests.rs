use super::*;

fn hokuyo() -> Device {
    Device::new(DeviceType(4), 0)
}

fn all_kinds(bytes: &mut Vec<u8>) {
    let mut writer = Writer { bytes, time_ns: 7 };
    writer.start("0.1.0");
    writer.peer(ClientId(3), "127.0.0.1:4711");
    let two = [ClientId(3), ClientId(9)];
    writer.frame(Direction::FromDriver, hokuyo(), "", two, b"scan");
    let one = [ClientId(3)];
    writer.frame(Direction::ToDriver, hokuyo(), "access_denied", one, b"");
    writer.event(b"event");
    writer.dropped(&Dropped {
        device: Some(hokuyo()),
        reason: "driver_queue_full",
        count: 5,
    });
    writer.gap(&Gap {
        first_ns: 1,
        last_ns: 2,
        messages: 3,
        bytes: 4,
    });
    writer.peer_gone(ClientId(3));
    writer.time_ns = 8;
    writer.finish();
}

fn parse_all(mut bytes: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while let Some((record, length)) = Record::parse(bytes).unwrap() {
        records.push(record);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty());
    records
}

#[test]
fn records_are_read_as_they_were_written() {
    let mut bytes = Vec::new();
    all_kinds(&mut bytes);
    let records = parse_all(&bytes);
    let whats: Vec<_> = records.iter().map(|record| record.what.clone()).collect();
    assert_eq!(whats[0], What::Start("0.1.0"));
    assert_eq!(whats[1], What::Peer(ClientId(3), "127.0.0.1:4711"));
    let [What::Frame(scan), What::Frame(denied)] = &whats[2..4] else {
        panic!("{whats:?}");
    };
    let facts = (scan.direction, scan.device, scan.dropped, scan.message);
    assert_eq!(facts, (Direction::FromDriver, hokuyo(), "", &b"scan"[..]));
    assert!(scan.clients().eq([ClientId(3), ClientId(9)]));
    assert_eq!(denied.dropped, "access_denied");
    assert_eq!(denied.direction, Direction::ToDriver);
    assert_eq!(whats[4], What::Event(b"event"));
    let What::Dropped(dropped) = &whats[5] else {
        panic!("{whats:?}");
    };
    assert_eq!((dropped.reason, dropped.count), ("driver_queue_full", 5));
    assert_eq!(dropped.device, Some(hokuyo()));
    let What::Gap(gap) = &whats[6] else {
        panic!("{whats:?}");
    };
    assert_eq!((gap.messages, gap.bytes), (3, 4));
    assert_eq!(whats[7..], [What::PeerGone(ClientId(3)), What::End]);
    assert_eq!((records[0].time_ns, records[8].time_ns), (7, 8));
}

#[test]
fn an_incomplete_record_is_awaited_and_an_impossible_one_is_an_error() {
    let mut bytes = Vec::new();
    all_kinds(&mut bytes);
    let (_, first) = Record::parse(&bytes).unwrap().unwrap();
    for end in 0..first {
        assert_eq!(Record::parse(&bytes[..end]), Ok(None), "{end}");
    }
    let too_long = (MAX_FEED_RECORD as u32 + 1).to_le_bytes();
    assert_eq!(
        Record::parse(&too_long),
        Err(FeedError::Length(MAX_FEED_RECORD + 1))
    );
    assert_eq!(Record::parse(&[8, 0, 0, 0]), Err(FeedError::Length(8)));
    // A frame that claims more clients than it has bytes.
    let mut frame = Vec::new();
    let mut writer = Writer {
        bytes: &mut frame,
        time_ns: 0,
    };
    writer.frame(Direction::ToDriver, hokuyo(), "", [], b"");
    let count_at = frame.len() - 2;
    frame[count_at] = 1;
    assert_eq!(Record::parse(&frame), Err(FeedError::Record(3)));
}

#[test]
fn the_largest_frame_is_a_valid_record() {
    let (mut bytes, message) = (Vec::new(), vec![0; u16::MAX.into()]);
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 0,
    };
    let many = (0..70_000).map(ClientId);
    writer.frame(Direction::FromDriver, hokuyo(), "x", many, &message);
    let (record, length) = Record::parse(&bytes).unwrap().unwrap();
    assert_eq!(length, bytes.len());
    let What::Frame(frame) = record.what else {
        panic!("{record:?}");
    };
    assert_eq!(frame.clients().len(), usize::from(u16::MAX));
    assert_eq!(frame.message.len(), message.len());
}

#[test]
fn a_kind_of_a_later_version_is_skipped() {
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 1,
    };
    writer.record(200, &[b"news"]);
    writer.finish();
    let records = parse_all(&bytes);
    assert_eq!(records[0].what, What::Unknown(200));
    assert_eq!(records[1].what, What::End);
}
