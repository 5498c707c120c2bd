//! Whole recordings, from the records of a feed to what a reader finds.

use std::io::Cursor;
use std::sync::Arc;

use amber_proto::feed::{Direction, Dropped, Gap, Record, Writer};
use amber_proto::pieces::Long;
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, MsgType, SynNum, hokuyo, roboclaw};
use amber_reflect::Schemas;
use prost::Message;

use super::*;

mod damaged;

pub(crate) use damaged::lz4;

const HOKUYO: Device = Device::new(DeviceType::HOKUYO, 0);
const ROBOCLAW: Device = Device::new(DeviceType::ROBOCLAW, 0);

fn scan(number: i32) -> Vec<u8> {
    let mut message = hokuyo::DriverMsg::data();
    message.set_ack(Some(SynNum(0)));
    message.scan = Some(hokuyo::Scan {
        angles: vec![0.5, 1.5],
        distances: vec![number, 2000],
    });
    message.encode_to_vec()
}

fn speeds_wanted() -> Vec<u8> {
    let mut message = roboclaw::DriverMsg::data();
    message.current_speed_request = Some(true);
    message.set_syn(Some(SynNum(7)));
    message.encode_to_vec()
}

/// A feed with `scans` scans.
fn feed(scans: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 1_000_000_000,
    };
    let (one, two) = ([ClientId(3)], [ClientId(3), ClientId(9)]);
    writer.start("1.2.3");
    writer.peer(ClientId(3), "127.0.0.1:4711");
    let subscribe = hokuyo::DriverMsg::of_kind(MsgType::Subscribe).encode_to_vec();
    writer.frame(Direction::ToDriver, HOKUYO, "", one, &subscribe);
    writer.frame(Direction::ToDriver, ROBOCLAW, "", one, &speeds_wanted());
    writer.frame(
        Direction::ToDriver,
        ROBOCLAW,
        "access_denied",
        one,
        &speeds_wanted(),
    );
    let lamp = Device::new(DeviceType(110), 2);
    writer.frame(Direction::FromDriver, lamp, "", one, b"not protobuf");
    writer.frame(Direction::FromDriver, HOKUYO, "", one, b"\xff broken");
    for number in 0..scans {
        writer.time_ns += 1000;
        writer.frame(Direction::FromDriver, HOKUYO, "", two, &scan(number));
    }
    writer.dropped(&Dropped {
        device: None,
        reason: "unknown_device",
        count: 4,
    });
    writer.gap(&Gap {
        first_ns: 5,
        last_ns: 6,
        messages: 2,
        bytes: 20,
    });
    writer.peer_gone(ClientId(3));
    writer.finish();
    bytes
}

fn record(feed: &[u8], finish: bool) -> (Vec<u8>, Totals) {
    let schemas = Arc::new(Schemas::built_in());
    let mut file = Cursor::new(Vec::new());
    let mut recording = Recording::new(&mut file, schemas).unwrap();
    let mut rest = feed;
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
    }
    let totals = match finish {
        true => recording.finish(None).unwrap().0,
        false => {
            recording.flush().unwrap();
            let totals = recording.totals();
            // As if it was killed: nothing more is written.
            std::mem::forget(recording);
            totals
        }
    };
    (file.into_inner(), totals)
}

/// Topic, clients, reason and message of each frame.
fn frames(file: &[u8]) -> Vec<(String, Framing, Vec<u8>)> {
    let (mut messages, mut all) = (Messages::new(Cursor::new(file)).unwrap(), Vec::new());
    while messages
        .next(|channels, entry| {
            if let Entry::Message { channel, data, .. } = entry {
                let stored = &channels[&channel];
                let frame = stored.message(data);
                all.extend(
                    frame.map(|(framing, message)| {
                        (stored.topic.clone(), framing, message.to_vec())
                    }),
                );
            }
        })
        .unwrap()
    {}
    all
}

/// Pieces of this length of a long scan, with the number of their message.
fn pieces(number: u32, piece_bytes: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut message = hokuyo::DriverMsg::data();
    message.set_ack(Some(SynNum(0)));
    message.scan = Some(hokuyo::Scan {
        angles: vec![1.5; 10_000],
        distances: vec![number as i32; 10_000],
    });
    let bytes = message.encode_to_vec();
    let long = Long {
        number,
        stream: Some(41),
        syn: None,
        bytes: bytes.clone().into(),
    };
    let pieces = (0..long.count(piece_bytes)).map(|index| long.piece(piece_bytes, index));
    (bytes, pieces.map(|it| it.unwrap().to_vec()).collect())
}

#[test]
fn a_message_in_pieces_is_recorded_once() {
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 1_000_000_000,
    };
    writer.start("1.2.3");
    let mut say = |client: &[i32], message: &[u8]| {
        writer.time_ns += 1000;
        let clients: Vec<_> = client.iter().map(|id| ClientId(*id)).collect();
        writer.frame(Direction::FromDriver, HOKUYO, "", clients, message);
    };
    // The first one goes in two lengths, and a piece is sent again.
    let (first, short) = pieces(1, 1_180);
    let (_, long) = pieces(1, 32_000);
    say(&[3, 4], &short[0]);
    for piece in &long {
        say(&[5], piece);
    }
    for piece in &short[1..] {
        say(&[3, 4], piece);
    }
    say(&[4], &short[7]);
    // Of the second one, a piece is missing.
    let (_, second) = pieces(2, 1_180);
    for piece in &second[1..] {
        say(&[3], piece);
    }
    let (third, pieces) = pieces(3, 1_180);
    for piece in &pieces {
        say(&[3], piece);
    }
    let call = b"\x10\x01\x3a\x06\x08\x02\x12\x02\x00\x03";
    writer.frame(Direction::ToDriver, HOKUYO, "", [ClientId(3)], call);
    writer.finish();

    let (file, totals) = record(&bytes, true);
    let frames = frames(&file);
    let to = |clients: &[i32]| Framing {
        clients: clients.to_vec(),
        dropped: None,
    };
    let topic = || "/hokuyo/0/scan".to_owned();
    let expected = [
        (topic(), to(&[3, 4, 5]), first.clone()),
        (topic(), to(&[3]), third.clone()),
    ];
    assert!(frames == expected, "{} frames", frames.len());
    let length = (first.len() + third.len()) as u64;
    assert_eq!((totals.messages, totals.bytes), (2, length));
    let end = (file.windows(10)).any(|bytes| bytes == b"incomplete");
    assert!(end, "the end names the number of incomplete messages");
}

#[test]
fn a_recording_has_every_frame_unchanged_in_order() {
    let (file, totals) = record(&feed(3), true);
    let frames = frames(&file);
    let to = |clients: &[i32], dropped: Option<&str>| Framing {
        clients: clients.to_vec(),
        dropped: dropped.map(str::to_owned),
    };
    let subscribe = hokuyo::DriverMsg::of_kind(MsgType::Subscribe).encode_to_vec();
    let expected = [
        ("/hokuyo/0/requests/subscribe", to(&[3], None), subscribe),
        (
            "/roboclaw/0/requests/currentSpeedRequest",
            to(&[3], None),
            speeds_wanted(),
        ),
        (
            "/roboclaw/0/dropped/requests/currentSpeedRequest",
            to(&[3], Some("access_denied")),
            speeds_wanted(),
        ),
        ("/110/2/message", to(&[3], None), b"not protobuf".to_vec()),
        ("/hokuyo/0/message", to(&[3], None), b"\xff broken".to_vec()),
        ("/hokuyo/0/scan", to(&[3, 9], None), scan(0)),
        ("/hokuyo/0/scan", to(&[3, 9], None), scan(1)),
        ("/hokuyo/0/scan", to(&[3, 9], None), scan(2)),
    ];
    assert_eq!(frames.len(), expected.len());
    for (frame, (topic, framing, message)) in frames.into_iter().zip(expected) {
        assert_eq!(frame, (topic.to_owned(), framing, message));
    }
    assert_eq!((totals.messages, totals.missing, totals.gaps), (8, 2, 1));
    assert_eq!((totals.missing_bytes, totals.dropped), (20, 4));
}

#[test]
fn the_content_is_summed_up() {
    let (file, _) = record(&feed(3), true);
    let info = Info::read(Cursor::new(&file[..])).unwrap();
    assert!(info.finished && info.damage.is_empty());
    // There is a gap.
    assert!(!info.is_complete());
    assert_eq!(info.metadata["amber.start"]["mediator_version"], "1.2.3");
    assert_eq!(info.metadata["amber.end"]["missing_messages"], "2");
    let scan = info.channels.iter().find(|it| it.topic == "/hokuyo/0/scan");
    let scan = scan.unwrap();
    assert_eq!((scan.messages, &*scan.schema), (3, "amber.recorded.Hokuyo"));
    assert_eq!(scan.last_ns.unwrap() - scan.first_ns.unwrap(), 2000);
    let gap = GapInfo {
        first_ns: 5,
        last_ns: 6,
        messages: 2,
        bytes: 20,
    };
    assert_eq!(info.gaps, [gap]);
}

#[test]
fn values_are_exported_by_the_schemas_in_the_file() {
    let (file, _) = record(&feed(1), true);
    let (mut messages, mut table, mut lines) = (
        Messages::new(Cursor::new(&file[..])).unwrap(),
        Table::new(),
        vec![],
    );
    while messages
        .next(|channels, entry| {
            if let Entry::Message {
                channel,
                header,
                data,
                ..
            } = entry
            {
                let stored = &channels[&channel];
                let value = table.value(channel, stored, data, Form::Whole).unwrap();
                lines.push(json_line(header.log_time, &stored.topic, &value));
            }
        })
        .unwrap()
    {}
    let scan = lines
        .iter()
        .find(|line| line.contains("/hokuyo/0/scan"))
        .unwrap();
    let scan: serde_json::Value = serde_json::from_str(scan).unwrap();
    assert_eq!(scan["time_ns"], 1_000_001_000);
    assert_eq!(scan["message"]["scan"]["distances"][1], 2000);
    assert_eq!(scan["message"]["frame"]["clients"][1], 9);
    let gap = lines
        .iter()
        .find(|line| line.contains("/amber/gaps"))
        .unwrap();
    assert!(gap.contains(r#""messages":2"#), "{gap}");
    let peer = lines
        .iter()
        .find(|line| line.contains("/amber/peers"))
        .unwrap();
    assert!(peer.contains("127.0.0.1:4711"), "{peer}");
}

#[test]
fn recovery_keeps_what_other_recorders_write() {
    let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
    let schema = writer
        .add_schema("Lamp", "jsonschema", br#"{"type": "object"}"#)
        .unwrap();
    let about = [("room".to_owned(), "hall".to_owned())].into();
    let channels = [(schema, "/lamp", "json"), (0, "/raw", "")].map(|(schema, topic, encoding)| {
        writer.add_channel(schema, topic, encoding, &about).unwrap()
    });
    for (number, channel_id) in (0..).zip([channels[0], channels[1], channels[0]]) {
        let header = mcap::records::MessageHeader {
            channel_id,
            sequence: 40 - number,
            log_time: 2000 + u64::from(number),
            publish_time: 1000 + u64::from(number),
        };
        writer.write_to_known_channel(&header, b"{}").unwrap();
    }
    writer.finish().unwrap();
    let file = writer.into_inner().into_inner();
    let (recovered, copy) = recover(Cursor::new(&file[..]), Vec::new(), Unverified::Leave).unwrap();
    assert_eq!((recovered.messages, recovered.was_finished), (3, true));
    let [copied, original] = [&copy, &file].map(|file| {
        let messages = mcap::MessageStream::new(file).unwrap();
        messages.map(Result::unwrap).collect::<Vec<_>>()
    });
    assert_eq!(copied, original);
}

#[test]
fn a_recording_of_a_killed_recorder_is_recovered() {
    let (finished, _) = record(&feed(3), true);
    let (killed, totals) = record(&feed(3), false);
    let info = Info::read(Cursor::new(&killed[..])).unwrap();
    assert!(!info.finished && info.channels.len() > 5, "{info:?}");
    let (recovered, file) = recover(
        Cursor::new(&killed[..]),
        Cursor::new(Vec::new()),
        Unverified::Leave,
    )
    .unwrap();
    let file = file.into_inner();
    assert!(!recovered.was_finished);
    assert!(recovered.messages > totals.messages);
    assert_eq!(frames(&file), frames(&finished));
    let info = Info::read(Cursor::new(&file[..])).unwrap();
    assert!(info.finished && !info.is_complete());
    assert_eq!(info.metadata["amber.end"]["complete"], "no");
    // Nothing to repair.
    let (again, _) = recover(
        Cursor::new(&file[..]),
        Cursor::new(Vec::new()),
        Unverified::Leave,
    )
    .unwrap();
    assert!(again.was_finished);
}

#[test]
fn the_next_file_knows_the_peers_of_the_one_before() {
    let bytes = feed(3);
    let schemas = Arc::new(Schemas::built_in());
    let (mut first, mut second) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
    let mut recording = Recording::new(&mut first, schemas).unwrap();
    let (mut rest, mut scans, mut next) = (&bytes[..], 0, Some(&mut second));
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
        let is_scan = matches!(&record.what, amber_proto::feed::What::Frame(frame)
            if frame.message == scan(scans));
        scans += i32::from(is_scan);
        if let (2, Some(file)) = (scans, next.take_if(|_| scans == 2)) {
            let (totals, _, other) = recording.go_on("second.mcap", file).unwrap();
            assert_eq!((totals.messages, totals.missing), (7, 0));
            recording = other;
        }
    }
    recording.finish(None).unwrap();
    let (first, second) = (first.into_inner(), second.into_inner());
    let info = Info::read(Cursor::new(&first[..])).unwrap();
    assert!(info.is_complete());
    assert_eq!(info.metadata["amber.end"]["next_file"], "second.mcap");
    let info = Info::read(Cursor::new(&second[..])).unwrap();
    assert_eq!(info.metadata["amber.start"]["mediator_version"], "1.2.3");
    let peers = info.channels.iter().find(|it| it.topic == "/amber/peers");
    // It is here, and then it leaves.
    assert_eq!(peers.unwrap().messages, 2);
    let all = [frames(&first), frames(&second)].concat();
    assert_eq!(all, frames(&record(&bytes, true).0));
}

#[cfg(feature = "zstd")]
#[test]
fn a_compressed_recording_has_the_same_frames_in_less_space() {
    let bytes = feed(2000);
    let mut file = Cursor::new(Vec::new());
    let schemas = Arc::new(Schemas::built_in());
    let mut recording = Recording::compressed(&mut file, schemas).unwrap();
    let mut rest = &bytes[..];
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
    }
    recording.finish(None).unwrap();
    let (file, (plain, _)) = (file.into_inner(), record(&bytes, true));
    assert_eq!(frames(&file), frames(&plain));
    assert!(
        file.len() < plain.len() / 2,
        "{} {}",
        file.len(),
        plain.len()
    );
    assert!(Info::read(Cursor::new(&file[..])).unwrap().finished);
}

#[test]
fn what_is_no_recording_is_an_error() {
    for bytes in [&b""[..], b"hello", &[0; 5000]] {
        assert!(Info::read(Cursor::new(bytes)).is_err(), "{bytes:?}");
    }
}

#[test]
fn invented_devices_do_not_use_up_the_channels() {
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 0,
    };
    let count = 70_000;
    for id in 0..count {
        let device = Device::new(DeviceType(5), id);
        writer.frame(
            Direction::ToDriver,
            device,
            "unknown_device",
            [],
            b"\x10\x01",
        );
    }
    let (file, totals) = record(&bytes, true);
    assert_eq!(totals.messages, count as u64);
    let info = Info::read(Cursor::new(&file[..])).unwrap();
    assert!(
        info.channels.len() <= limits::CHANNELS + 1,
        "{}",
        info.channels.len()
    );
    let stored: u64 = info.channels.iter().map(|channel| channel.messages).sum();
    assert_eq!(stored, count as u64);
}

/// Says how many messages it got.
struct Counting(u32);

impl Companion for Counting {
    fn reads(&self, device: Device) -> bool {
        device == HOKUYO
    }

    fn message(&mut self, _: u64, _: Device, message: &[u8]) -> Vec<Beside> {
        assert!(message.starts_with(&scan(0)[..2]) || message == b"\xff broken");
        self.0 += 1;
        self.begin()
    }

    fn event(&mut self, _: u64, _: &[u8]) -> Vec<Beside> {
        self.begin()
    }

    fn begin(&mut self) -> Vec<Beside> {
        vec![Beside {
            topic: "/beside".to_owned(),
            schema: "other.Number",
            descriptors: b"",
            data: self.0.to_le_bytes().to_vec(),
        }]
    }
}

/// Topic, time and bytes of the messages that are no frames.
fn beside(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let (mut messages, mut all) = (Messages::new(Cursor::new(file)).unwrap(), Vec::new());
    while messages
        .next(|channels, entry| {
            if let Entry::Message {
                channel,
                header,
                data,
                ..
            } = entry
                && channels[&channel].topic == "/beside"
            {
                assert_eq!(channels[&channel].schema, "other.Number");
                assert!(channels[&channel].message(data).is_none(), "it is no frame");
                all.push((header.log_time, data.to_vec()));
            }
        })
        .unwrap()
    {}
    all
}

#[test]
fn a_companion_gets_what_it_reads_at_a_limited_rate_and_goes_on_in_the_next_file() {
    let schemas = Arc::new(Schemas::built_in());
    let mut recording = Recording::new(Cursor::new(Vec::new()), schemas).unwrap();
    recording.accompany(Box::new(Counting(0))).unwrap();
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 0,
    };
    writer.start("1.2.3");
    // A second of 1000 scans per second, and what it does not read.
    for number in 0..1000 {
        writer.time_ns += 1_000_000;
        writer.frame(
            Direction::FromDriver,
            HOKUYO,
            "",
            [ClientId(3)],
            &scan(number),
        );
        writer.frame(
            Direction::FromDriver,
            HOKUYO,
            "full",
            [ClientId(3)],
            &scan(number),
        );
        writer.frame(
            Direction::ToDriver,
            HOKUYO,
            "",
            [ClientId(3)],
            &scan(number),
        );
        let other = Device::new(DeviceType::HOKUYO, 1);
        writer.frame(
            Direction::FromDriver,
            other,
            "",
            [ClientId(3)],
            &scan(number),
        );
    }
    let mut rest = &bytes[..];
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
    }
    let (totals, first, next) = recording
        .go_on("next.mcap", Cursor::new(Vec::new()))
        .unwrap();
    assert_eq!(totals.messages, 4000, "those of the companion do not count");
    let first = beside(first.get_ref());
    assert_eq!(first[0], (0, 0_u32.to_le_bytes().to_vec()));
    assert_eq!(first.len(), 1 + 50);
    assert_eq!(
        first.last(),
        Some(&(981_000_000, 50_u32.to_le_bytes().to_vec()))
    );
    let (_, next) = next.finish(None).unwrap();
    let next = beside(next.get_ref());
    assert_eq!(next, [(1_000_000_000, 50_u32.to_le_bytes().to_vec())]);
}

/// Carries the distances of scans as they are encoded.
struct Carrying;

impl Companion for Carrying {
    fn reads(&self, device: Device) -> bool {
        device == HOKUYO
    }

    fn carries(&self, device: Device) -> bool {
        device == HOKUYO
    }

    fn carrier(&mut self, _: u64, _: Device, message: &[u8]) -> Option<Carrier> {
        let end = message.len();
        message.starts_with(&scan(0)[..2]).then(|| Carrier {
            topic: "/other/hokuyo/0/scan".to_owned(),
            schema: "other.Scan",
            descriptors: b"",
            head: b"\x0a\x02hi".to_vec(),
            field: 2,
            part: end - 5..end - 1,
        })
    }

    fn message(&mut self, _: u64, _: Device, _: &[u8]) -> Vec<Beside> {
        self.begin()
    }

    fn event(&mut self, _: u64, _: &[u8]) -> Vec<Beside> {
        Vec::new()
    }

    fn begin(&mut self) -> Vec<Beside> {
        Counting(7).begin()
    }
}

#[test]
fn a_carried_message_is_in_the_file_once_and_is_read_and_played_as_it_was() {
    let plain = frames(&record(&feed(100), true).0);
    let mut file = Cursor::new(Vec::new());
    let schemas = Arc::new(Schemas::built_in());
    let mut recording = Recording::new(&mut file, schemas).unwrap();
    recording.accompany(Box::new(Carrying)).unwrap();
    let feed = feed(100);
    let mut rest = &feed[..];
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
    }
    recording.finish(None).unwrap();
    let file = file.into_inner();
    let mut carried = frames(&file);
    let is_carried = |topic: &str| topic == "/other/hokuyo/0/scan";
    assert_eq!(carried.iter().filter(|it| is_carried(&it.0)).count(), 100);
    for (topic, ..) in &mut carried {
        if is_carried(topic) {
            *topic = "/hokuyo/0/scan".to_owned();
        }
    }
    assert_eq!(carried, plain);
    // The beginning, a message that is not carried, and 100 scans in a tenth of a millisecond.
    assert_eq!(beside(&file).len(), 3);
    let info = Info::read(Cursor::new(&file[..])).unwrap();
    assert_eq!(info.messages, plain.len() as u64);

    let recorded = Arc::new(play::Recorded::open(Cursor::new(&file[..])).unwrap());
    let files = vec![Cursor::new(&file[..])];
    let mut answers = play::Answers::new(recorded, files);
    let said = answers.said(HOKUYO, "scan", &[41], u64::MAX / 2).unwrap();
    assert_eq!(said.unwrap(), scan(99));
}
