//! Messages of Amber's devices as TEXT and BINARY frames.

use amber_proto::{Device, DeviceType};
use amber_robot::robot::{User, UserOrder};
use bytes::Bytes;
use prost::Message;

use super::*;
use crate::galileo::codec::{decode_chunk, encode_chunk};
use crate::galileo::records::{self, Joiner};
use crate::testing::robot;

#[test]
fn messages_of_a_device_travel_as_text() {
    let mut world = World::new();
    let id = world.session("hokuyo/0");
    world.outputs.clear();
    world.text(id, r#"{"synNum":7,"get_single_scan":true}"#);
    let [Output::Order(User(1), UserOrder::Message(device, message))] = &world.outputs[..] else {
        panic!("{:?}", world.outputs);
    };
    assert_eq!(*device, robot().scanner);
    let asked = amber_proto::hokuyo::DriverMsg::decode(message.clone()).unwrap();
    assert_eq!(
        (asked.syn_num, asked.get_single_scan),
        (Some(7), Some(true))
    );
    let mut answer = amber_proto::hokuyo::DriverMsg {
        r#type: Some(1),
        ack_num: Some(7),
        timestamp: Some(5),
        ..Default::default()
    };
    let event = |answer: &amber_proto::hokuyo::DriverMsg| {
        Event::Message(User(1), robot().scanner, answer.encode_to_vec().into())
    };
    let sent = world.event(event(&answer));
    assert_eq!(json(&sent[0])["ackNum"], 7);
    answer.scan = Some(amber_proto::hokuyo::Scan {
        angles: vec![1.0; 682],
        distances: vec![1000; 682],
    });
    assert!(world.event(event(&answer)).is_empty());
    assert_eq!(world.count("message too long for TEXT; use BINARY"), 1);
    world.text(id, r#"{"get_singel_scan":true}"#);
    assert_eq!(world.count("invalid message"), 1);
}

#[test]
fn messages_of_a_device_travel_as_binary_records() {
    let mut world = World::new();
    let id = world.session("amber/4/0");
    world.outputs.clear();
    let message = [7; 1_000];
    for (index, data) in (0..).zip(records::split(&message)) {
        let body = encode_chunk(Some(index), &data);
        world.frame(CLIENT, id, Op::Binary(&body));
    }
    let order = UserOrder::Message(robot().scanner, Bytes::copy_from_slice(&message));
    assert_eq!(world.outputs, [Output::Order(User(1), order)]);
    let event = Event::Message(User(1), robot().scanner, Bytes::copy_from_slice(&message));
    let sent = world.event(event);
    let mut joiner = Joiner::default();
    let mut joined = Vec::new();
    for (index, frame) in (0..).zip(&sent) {
        let Op::Binary(body) = op(frame) else {
            panic!("{frame:?}");
        };
        let (its, data) = decode_chunk(body).unwrap();
        assert_eq!(its, index);
        // The C# client pads to 2042 bytes.
        joined.extend(joiner.take(&[data, &[0; 1500]].concat()).unwrap());
    }
    assert_eq!(joined, [message]);
}

#[test]
fn a_gap_in_binary_frames_is_counted_and_loses_only_its_message() {
    let mut world = World::new();
    let id = world.session("amber/5/0");
    world.outputs.clear();
    let frames: Vec<_> = records::split(&[7; 600])
        .chain(records::split(b"\x10\x01"))
        .collect();
    // Indices may start anywhere; the second frame is lost.
    for (index, data) in [(9, &frames[0]), (11, &frames[2])] {
        world.frame(CLIENT, id, Op::Binary(&encode_chunk(Some(index), data)));
    }
    assert_eq!(world.count("BINARY frames lost"), 1);
    assert_eq!(world.outputs.len(), 1);
    world.frame(CLIENT, id, Op::Binary(&[0, 0, 0]));
    assert_eq!(world.count("too short"), 1);
}

#[test]
fn lost_binary_frames_are_counted_one_by_one() {
    let mut world = World::new();
    let id = world.session("amber/5/0");
    let mut frame = |index| {
        world.frame(CLIENT, id, Op::Binary(&encode_chunk(Some(index), b"\0\0")));
        let reasons = ["BINARY frames lost", "BINARY frame out of order"];
        reasons.map(|reason| world.count(reason))
    };
    assert_eq!(frame(u32::MAX - 1), [0, 0]);
    // Indices wrap.
    assert_eq!(frame(u32::MAX), [0, 0]);
    assert_eq!(frame(4), [4, 0]);
    assert_eq!(frame(1_000), [999, 0]);
    assert_eq!(frame(999), [999, 1]);
    assert_eq!(frame(1_000), [999, 1]);
}

#[test]
fn a_path_can_be_without_index() {
    let mut world = World::with(|config| config.without_index = vec!["dummy/0".into()]);
    let id = world.session("dummy/0");
    let device = Device::new(DeviceType::DUMMY, 0);
    world.frame(
        CLIENT,
        id,
        Op::Binary(&encode_chunk(Some(0), b"\x00\x02\x10\x02")),
    );
    let sent = world.event(Event::Message(
        User(1),
        device,
        Bytes::from_static(b"\x10\x03"),
    ));
    assert_eq!(op(&sent[0]), Op::Binary(b"\x00\x02\x10\x03"));
}
