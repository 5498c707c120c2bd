//! Recordings that are written here and played.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amber_proto::feed::{Direction, Gap, Record, Writer};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, MsgType, SynNum};
use amber_proto::{hokuyo, ninedof};
use amber_reflect::Schemas;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

use super::*;
use crate::{GapInfo, Recording};

const HOKUYO: Device = Device::new(DeviceType::HOKUYO, 0);
const NINEDOF: Device = Device::new(DeviceType::NINEDOF, 0);
/// The start of the recordings.
const START: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

type Bytes = Arc<Vec<u8>>;

/// Makes a recording: `write` gets the feed.
fn recording(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    recording_with(Schemas::built_in(), write)
}

/// The same with the descriptions of a user's devices.
fn recording_with(schemas: Schemas, write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: START,
    };
    writer.start("1.2.3");
    write(&mut writer);
    writer.finish();
    let mut recording = Recording::new(Cursor::new(Vec::new()), Arc::new(schemas));
    let recording_of = recording.as_mut().unwrap();
    let mut rest = &bytes[..];
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording_of.add(&record).unwrap();
        rest = &rest[length..];
    }
    Arc::new(recording.unwrap().finish(None).unwrap().1.into_inner())
}

fn scan(number: i32, ack: u32) -> Vec<u8> {
    let mut message = hokuyo::DriverMsg::data();
    message.set_ack(Some(SynNum(ack)));
    message.scan = Some(hokuyo::Scan {
        angles: vec![0.5],
        distances: vec![number],
    });
    message.encode_to_vec()
}

/// A scan each 100 ms, with its number.
fn scans(count: i32) -> Bytes {
    recording(|writer| {
        for number in 0..count {
            writer.time_ns = START + number as u64 * 100 * MS;
            let clients = [ClientId(3), ClientId(9)];
            writer.frame(Direction::FromDriver, HOKUYO, "", clients, &scan(number, 0));
        }
    })
}

fn open(file: &Bytes) -> Arc<Recorded> {
    Arc::new(Recorded::open(Cursor::new(&file[..])).unwrap())
}

fn player(file: &Bytes, repeats: bool) -> Player<Cursor<&[u8]>> {
    let recorded = open(file);
    let devices = recorded.devices();
    Player::new(recorded, vec![Cursor::new(&file[..])], &devices, repeats).unwrap()
}

fn number(message: &[u8]) -> i32 {
    let scan = hokuyo::DriverMsg::decode(message).unwrap().scan.unwrap();
    scan.distances[0]
}

/// What happens until `end`, with the milliseconds at which it happens: scans by their number.
fn play(
    player: &mut Player<Cursor<&[u8]>>,
    start: Instant,
    end_ms: u64,
) -> Vec<(u64, Result<i32, Played>)> {
    let mut all = Vec::new();
    while let Some(now) = player.due(start)
        && now <= start + Duration::from_millis(end_ms)
    {
        while let Some((_, played)) = player.poll(now).unwrap() {
            let at_ms = now.duration_since(start).as_millis() as u64;
            let played = match played {
                Played::Published { message, .. } => Ok(number(&message)),
                other => Err(other),
            };
            all.push((at_ms, played));
        }
    }
    all
}

#[test]
fn messages_come_in_order_at_the_recorded_pace() {
    let file = scans(5);
    let start = Instant::now();
    for (rate, expected) in [
        (1.0, [0, 100, 200, 300, 400]),
        (4.0, [0, 25, 50, 75, 100]),
        (0.5, [0, 200, 400, 600, 800]),
    ] {
        let mut player = player(&file, false);
        assert_eq!(player.due(start), None);
        player.set_rate(start, rate);
        player.resume(start).unwrap();
        let mut expected: Vec<_> = (expected.into_iter().zip(0..))
            .map(|(at_ms, number)| (at_ms, Ok(number)))
            .collect();
        expected.push((expected[4].0, Err(Played::End)));
        assert_eq!(play(&mut player, start, 5000), expected, "{rate}");
        assert!(player.clock().is_paused());
        // It begins again.
        player.resume(start).unwrap();
        assert_eq!(play(&mut player, start, 0), [(0, Ok(0))]);
    }
}

#[test]
fn a_repeated_recording_has_no_end() {
    let (file, start) = (scans(3), Instant::now());
    let mut player = player(&file, true);
    player.resume(start).unwrap();
    let expected = [
        (0, Ok(0)),
        (100, Ok(1)),
        (200, Ok(2)),
        (200, Err(Played::Again)),
        (200, Ok(0)),
        (300, Ok(1)),
        (400, Ok(2)),
        (400, Err(Played::Again)),
        (400, Ok(0)),
    ];
    assert_eq!(play(&mut player, start, 450), expected);
}

#[test]
fn a_jump_continues_at_the_new_position() {
    let (file, start) = (scans(100), Instant::now());
    let mut player = player(&file, false);
    player.resume(start).unwrap();
    assert_eq!(play(&mut player, start, 250).len(), 3);
    let now = start + Duration::from_millis(250);
    player.jump_by(now, 5000).unwrap();
    assert_eq!(play(&mut player, start, 350), [(300, Ok(53))]);
    let now = start + Duration::from_millis(350);
    player.jump_by(now, -100_000).unwrap();
    assert_eq!(play(&mut player, start, 460), [(350, Ok(0)), (450, Ok(1))]);
    // To a message: it is the next.
    player.jump(now, START + 7000 * MS).unwrap();
    player.pause(now);
    player.step(now);
    let (time_ns, _) = player.poll(now).unwrap().unwrap();
    assert_eq!(time_ns, START + 7000 * MS);
}

#[test]
fn a_step_is_one_message() {
    let (file, start) = (scans(3), Instant::now());
    let mut player = player(&file, false);
    for expected in 0..3 {
        assert_eq!(player.due(start), None);
        player.step(start);
        let mut played = play(&mut player, start, 0);
        if expected == 2 {
            assert_eq!(played.pop(), Some((0, Err(Played::End))));
        }
        assert_eq!(played, [(0, Ok(expected))]);
        let position_ns = player.clock().position_ns(start);
        assert_eq!(position_ns, START + expected as u64 * 100 * MS);
    }
    player.step(start);
    assert_eq!(player.due(start), None);
}

#[test]
fn answers_and_other_devices_are_not_published() {
    let gap = Gap {
        first_ns: 5,
        last_ns: 6,
        messages: 2,
        bytes: 20,
    };
    let file = recording(|writer| {
        let client = [ClientId(3)];
        writer.frame(Direction::FromDriver, HOKUYO, "", client, &scan(1, 77));
        writer.frame(Direction::FromDriver, HOKUYO, "", client, b"not a message");
        let pong = hokuyo::DriverMsg::of_kind(MsgType::Pong).encode_to_vec();
        writer.frame(Direction::FromDriver, HOKUYO, "", client, &pong);
        writer.gap(&gap);
        writer.event(b"an event");
        let other = Device::new(DeviceType::HOKUYO, 1);
        writer.frame(Direction::FromDriver, other, "", client, &scan(2, 0));
        let invented = Device::new(DeviceType(99), 0);
        let (way, reason) = (Direction::ToDriver, "unknown_device");
        writer.frame(way, invented, reason, client, b"\x10\x01");
        writer.frame(Direction::FromDriver, HOKUYO, "", client, &scan(3, 0));
    });
    let recorded = open(&file);
    let devices: Vec<_> = recorded.devices().into_iter().collect();
    assert_eq!(devices, [HOKUYO, Device::new(DeviceType::HOKUYO, 1)]);
    let one = BTreeSet::from([HOKUYO]);
    let mut player = Player::new(recorded, vec![Cursor::new(&file[..])], &one, false).unwrap();
    let start = Instant::now();
    player.resume(start).unwrap();
    let gap = GapInfo {
        first_ns: 5,
        last_ns: 6,
        messages: 2,
        bytes: 20,
    };
    let expected = [
        (0, Err(Played::Gap(gap))),
        (0, Err(Played::Event(b"an event".to_vec()))),
        (0, Ok(3)),
        (100, Err(Played::End)),
    ];
    assert_eq!(play(&mut player, start, 100), expected);
}

fn data_wanted(gyro: bool, syn: u32) -> Vec<u8> {
    let mut message = ninedof::DriverMsg::data();
    message.set_syn(Some(SynNum(syn)));
    message.data_request = Some(ninedof::DataRequest {
        gyro: Some(gyro),
        ..ninedof::DataRequest::default()
    });
    message.encode_to_vec()
}

fn measured(value: i32, ack: u32) -> Vec<u8> {
    let mut message = ninedof::DriverMsg::data();
    message.set_ack(Some(SynNum(ack)));
    let axis = ninedof::AxisData {
        x_axis: value,
        ..ninedof::AxisData::default()
    };
    message.sensor_data = Some(ninedof::SensorData {
        gyro: Some(axis),
        ..ninedof::SensorData::default()
    });
    message.encode_to_vec()
}

/// Two clients ask once a second, for 20 s, and use the same numbers. The device answers 10 ms
/// later: with the second, or 100 more for the client 4. It never answers in second 7.
fn questions() -> Bytes {
    recording(|writer| {
        for second in 0..20 {
            let time_ns = START + second * 1000 * MS;
            for (client, gyro, offset) in [(3, true, 0), (4, false, 100)] {
                writer.time_ns = time_ns;
                let (client, syn) = ([ClientId(client)], 1 + (second % 2) as u32);
                let asked = data_wanted(gyro, syn);
                writer.frame(Direction::ToDriver, NINEDOF, "", client, &asked);
                writer.time_ns += 10 * MS;
                let answer = measured(second as i32 + offset, syn);
                if second != 7 {
                    writer.frame(Direction::FromDriver, NINEDOF, "", client, &answer);
                }
            }
            // Chunks of a megabyte end here.
            writer.time_ns += MS;
            let ballast = vec![0x55; 60_000];
            for _ in 0..10 {
                writer.frame(Direction::FromDriver, HOKUYO, "", [ClientId(3)], &ballast);
            }
        }
        // The mediator did not pass this on.
        let (client, other) = ([ClientId(3)], hokuyo_wanted());
        writer.frame(Direction::ToDriver, HOKUYO, "access_denied", client, &other);
        writer.frame(Direction::FromDriver, HOKUYO, "", client, &scan(5, 9));
    })
}

fn hokuyo_wanted() -> Vec<u8> {
    let mut message = hokuyo::DriverMsg::data();
    message.set_syn(Some(SynNum(9)));
    message.get_single_scan = Some(true);
    message.encode_to_vec()
}

#[test]
fn a_request_gets_the_recorded_answer_nearest_in_time() {
    let file = questions();
    let recorded = open(&file);
    let mut answers = Answers::new(recorded.clone(), vec![Cursor::new(&file[..])]);
    let mut ask = |device, request: Vec<u8>, at_ms: u64| {
        let key = key(&request).unwrap();
        let answer = answers.to(device, &key, START + at_ms * MS).unwrap()?;
        let answer = ninedof::DriverMsg::decode(&answer[..]).unwrap();
        Some(answer.sensor_data?.gyro?.x_axis)
    };
    for (gyro, at_ms, expected) in [
        (true, 0, 0),
        (true, 12_300, 12),
        (true, 12_700, 13),
        (false, 12_300, 112),
        (true, 1_000_000, 19),
        (false, 3_400, 103),
        // There was no answer in second 7.
        (true, 6_900, 6),
        (true, 7_100, 8),
    ] {
        let found = ask(NINEDOF, data_wanted(gyro, 500), at_ms);
        assert_eq!(found, Some(expected), "{gyro} {at_ms}");
    }
    let mut never = ninedof::DriverMsg::data();
    never.data_request = Some(ninedof::DataRequest::default());
    for _ in 0..2 {
        assert_eq!(ask(NINEDOF, never.encode_to_vec(), 5000), None);
    }
    assert_eq!(ask(HOKUYO, hokuyo_wanted(), 20_000), None);
}

#[test]
fn values_of_the_same_kind_are_found_near_a_time() {
    let file = scans(100);
    let mut answers = Answers::new(open(&file), vec![Cursor::new(&file[..])]);
    let scan_field = 41;
    let mut said = |name: &str, fields: &[u32], at_ms: u64| {
        let found = answers.said(HOKUYO, name, fields, START + at_ms * MS);
        found.unwrap().map(|message| number(&message))
    };
    assert_eq!(said("scan", &[scan_field], 0), Some(0));
    assert_eq!(said("scan", &[scan_field], 4260), Some(43));
    assert_eq!(said("scan", &[scan_field], 99_999), Some(99));
    assert_eq!(said("scan", &[scan_field, 99], 4260), None);
    assert_eq!(said("timestamp", &[scan_field], 4260), None);
}

#[test]
fn only_a_part_of_a_long_recording_is_in_memory() {
    let file = questions();
    let recorded = open(&file);
    let mut answers = Answers::new(recorded, vec![Cursor::new(&file[..])]);
    let request = key(&data_wanted(true, 1)).unwrap();
    for second in 0..20 {
        let found = answers.to(NINEDOF, &request, START + second * 1000 * MS);
        assert!(found.unwrap().is_some());
    }
    assert!(answers.cached_bytes() <= limits::CACHED_BYTES);
    assert!(file.len() > 11_000_000);
}

#[test]
fn a_recording_without_an_index_is_not_played() {
    let file = scans(3);
    for end in [file.len() - 1, file.len() / 2, 8] {
        let opened = Recorded::open(Cursor::new(&file[..end]));
        assert!(matches!(opened, Err(PlayError::Unfinished)), "{end}");
    }
    for bytes in [&b""[..], b"hello", &[0; 500]] {
        let opened = Recorded::open(Cursor::new(bytes));
        assert!(matches!(opened, Err(PlayError::File(_))), "{bytes:?}");
    }
}

#[test]
fn a_damaged_part_is_reported_once_and_left_out() {
    let whole = scans(60_000);
    let mut file = (*whole).clone();
    let middle = file.len() / 2;
    file[middle] ^= 1;
    let start = Instant::now();
    let played = |file: Bytes| {
        let mut player = player(&file, false);
        player.resume(start).unwrap();
        let mut all = Vec::new();
        while let Some(now) = player.due(start) {
            while let Some((time_ns, played)) = player.poll(now).unwrap() {
                all.push((time_ns, played));
            }
        }
        all
    };
    let (all, rest) = (played(whole), played(Arc::new(file)));
    let is_damaged = |it: &&(u64, Played)| matches!(it.1, Played::Damaged(..));
    let damaged: Vec<_> = rest.iter().filter(is_damaged).collect();
    let [(time_ns, Played::Damaged(what, gap))] = damaged[..] else {
        panic!("{damaged:?}");
    };
    assert!(
        what.contains("checksum") && gap.first_ns == *time_ns,
        "{what}"
    );
    // All but messages of this chunk.
    let is_near = |time_ns: u64| (gap.first_ns..=gap.last_ns).contains(&time_ns);
    let far = |all: &[(u64, Played)]| -> Vec<(u64, Played)> {
        let far = all.iter().filter(|it| !is_near(it.0) && !is_damaged(it));
        far.cloned().collect()
    };
    assert!(far(&all).len() > 10 && far(&rest) == far(&all));
    assert!(rest.len() < all.len());
}

#[test]
fn a_recording_with_lz4_is_played() {
    let file = scans(5);
    let packed = Arc::new(crate::tests::lz4(&file));
    assert!(packed.windows(3).any(|it| it == b"lz4"));
    let start = Instant::now();
    let mut player = player(&packed, false);
    player.resume(start).unwrap();
    let expected = [0, 100, 200, 300, 400].into_iter().zip((0..5).map(Ok));
    let mut expected: Vec<_> = expected.collect();
    expected.push((400, Err(Played::End)));
    assert_eq!(play(&mut player, start, 5000), expected);
}

#[test]
fn the_description_of_a_device_is_in_the_recording() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../drivers/examples/thermometer.proto"
    );
    let schemas = Schemas::with(&[file.into()]).unwrap();
    let device_type = schemas.described_type().unwrap();
    let file = recording_with(schemas, |writer| {
        let client = [ClientId(3)];
        let thermometer = Device::new(device_type, 0);
        writer.frame(Direction::FromDriver, thermometer, "", client, b"\x10\x01");
        writer.frame(Direction::FromDriver, HOKUYO, "", client, &scan(1, 0));
    });
    let recorded = open(&file);
    let set = recorded.description(device_type).unwrap();
    let files = FileDescriptorSet::decode(&set[..]).unwrap().file;
    let files: Vec<_> = files.iter().map(FileDescriptorProto::name).collect();
    assert_eq!(files, ["thermometer.proto"]);
    let found = Schemas::from_descriptors(&set).unwrap();
    let interface = found.interface(device_type).unwrap();
    assert_eq!(interface.name, "thermometer");
    assert!(!interface.methods.is_empty());
    assert_eq!(recorded.description(DeviceType::HOKUYO), None);
}

/// Writes numbered scans, one each 100 ms, into files of one recording: `counts` per file.
fn series(counts: &[i32]) -> Vec<Bytes> {
    let schemas = Arc::new(Schemas::built_in());
    let mut recording = Recording::new(Cursor::new(Vec::new()), schemas).unwrap();
    let (mut files, mut number) = (Vec::new(), 0);
    for (file, count) in counts.iter().enumerate() {
        let mut bytes = Vec::new();
        let mut writer = Writer {
            bytes: &mut bytes,
            time_ns: START + number as u64 * 100 * MS,
        };
        if file == 0 {
            writer.start("1.2.3");
            writer.peer(ClientId(3), "127.0.0.1:5000");
        } else {
            // The channels of this file have other numbers than those of the one before.
            let asked = [ClientId(3)];
            writer.frame(
                Direction::ToDriver,
                NINEDOF,
                "",
                asked,
                &data_wanted(true, number as u32),
            );
        }
        for _ in 0..*count {
            writer.time_ns = START + number as u64 * 100 * MS;
            writer.frame(
                Direction::FromDriver,
                HOKUYO,
                "",
                [ClientId(3)],
                &scan(number, 0),
            );
            number += 1;
        }
        let mut rest = &bytes[..];
        while let Some((record, length)) = Record::parse(rest).unwrap() {
            recording.add(&record).unwrap();
            rest = &rest[length..];
        }
        let next = recording.go_on("next", Cursor::new(Vec::new())).unwrap();
        files.push(Arc::new(next.1.into_inner()));
        recording = next.2;
    }
    files
}

#[test]
fn files_of_one_recording_are_played_as_one() {
    let files = series(&[3, 2, 4]);
    let parts = files
        .iter()
        .map(|file| Recorded::open(Cursor::new(&file[..])));
    let recorded = Recorded::join(parts.map(Result::unwrap)).map_err(|(_, error)| error);
    let recorded = Arc::new(recorded.unwrap());
    assert_eq!(recorded.span().length(), Duration::from_millis(800));
    assert_eq!(recorded.devices(), BTreeSet::from([HOKUYO, NINEDOF]));
    let all = || files.iter().map(|file| Cursor::new(&file[..])).collect();
    let devices = recorded.devices();
    let mut player = Player::new(recorded.clone(), all(), &devices, false).unwrap();
    let start = Instant::now();
    player.resume(start).unwrap();
    let scans = |played: Vec<(u64, Result<i32, Played>)>| {
        let scans = played
            .into_iter()
            .filter_map(|(at, it)| Some((at, it.ok()?)));
        scans.collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..9).map(|number| (number as u64 * 100, number)).collect();
    assert_eq!(scans(play(&mut player, start, 2000)), expected);
    // Into the third file, and back into the first.
    for (to_ms, first) in [(600, 6), (100, 1)] {
        player.jump(start, START + to_ms * MS).unwrap();
        player.resume(start).unwrap();
        assert_eq!(scans(play(&mut player, start, 0)), [(0, first)]);
        player.pause(start);
    }
    let mut answers = Answers::new(recorded, all());
    for (at_ms, expected) in [(0, 0), (310, 3), (5000, 8)] {
        let found = answers.said(HOKUYO, "scan", &[41], START + at_ms * MS);
        let found = found.unwrap().map(|message| number(&message));
        assert_eq!(found, Some(expected), "{at_ms}");
    }
}

#[test]
fn recordings_that_do_not_follow_each_other_are_not_joined() {
    let opened = |file: &Bytes| Recorded::open(Cursor::new(&file[..])).unwrap();
    let files = series(&[3, 2, 4]);
    for wrong in [[1, 0], [0, 0]] {
        let joined = Recorded::join(wrong.map(|number| opened(&files[number])));
        assert!(matches!(joined, Err((1, PlayError::Overlap))), "{wrong:?}");
    }
    let much_later = recording(|writer| {
        writer.time_ns = START + 3600 * 1000 * MS;
        writer.frame(
            Direction::FromDriver,
            HOKUYO,
            "",
            [ClientId(3)],
            &scan(1, 0),
        );
    });
    let joined = Recorded::join([opened(&files[0]), opened(&much_later)]);
    assert!(matches!(joined, Err((1, PlayError::Apart(_)))));
}
