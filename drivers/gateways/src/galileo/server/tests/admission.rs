//! Admission, end and permissions of sessions.

use amber_proto::{Device, DeviceType};
use amber_robot::robot::{Measurement, User};
use amber_values::Scan;
use bytes::Bytes;

use super::*;
use crate::galileo::codec::{SessionId, decode_reply, encode_chunk};
use crate::galileo::token::Token;
use crate::testing::robot;

#[test]
fn a_known_path_is_accepted_and_another_rejected() {
    let mut world = World::new();
    assert!(world.connect(CLIENT, "cmd_vel").is_some());
    assert_eq!(world.connect("192.168.0.9:5001", "spoon"), None);
    assert_eq!(world.count("unknown path"), 1);
    let replies = world.receive("192.168.0.9:5002", b"\x01http://x/cmd_vel\0");
    assert_eq!(decode_reply(&replies[0]), Some(None));
    assert_eq!(world.server.sessions.len(), 1);
}

#[test]
fn the_token_is_compared_unless_there_is_none() {
    let mut open = World::new();
    let undefined = Frame::Connect(b"udp://r:1/cmd_vel?token=undefined").encode();
    assert!(
        decode_reply(&open.receive(CLIENT, &undefined)[0])
            .unwrap()
            .is_some()
    );
    let mut closed = World::with(|config| config.door.token = Some(Token::new("28b1c5")));
    assert_eq!(
        decode_reply(&closed.receive(CLIENT, &undefined)[0]),
        Some(None)
    );
    let none = Frame::Connect(b"udp://r:1/cmd_vel").encode();
    assert_eq!(decode_reply(&closed.receive(CLIENT, &none)[0]), Some(None));
    assert_eq!(closed.count("wrong token"), 2);
    assert!(closed.connect(CLIENT, "cmd_vel").is_some());
}

#[test]
fn after_five_wrong_tokens_an_address_is_ignored_for_a_minute() {
    let mut world = World::with(|config| config.door.token = Some(Token::new("right")));
    for port in 0..5 {
        assert_eq!(
            world.connect(&format!("192.168.0.9:{}", 6000 + port), "scan"),
            None
        );
    }
    assert!(world.receive("192.168.0.9:7000", &url("scan")).is_empty());
    let right = Frame::Connect(b"udp://r:1/scan?token=right").encode();
    assert!(world.receive("192.168.0.9:7000", &right).is_empty());
    assert_eq!(world.count("too many wrong tokens"), 2);
    // Others are not affected.
    assert_eq!(world.receive("192.168.0.10:7000", &right).len(), 1);
    world.wait(60_000, CLIENT);
    assert_eq!(world.receive("192.168.0.9:7000", &right).len(), 1);
}

#[test]
fn a_copy_of_a_connect_is_ignored_and_a_new_one_replaces_the_session() {
    let mut world = World::new();
    let first = world.session("cmd_vel");
    assert!(world.receive(CLIENT, &url("cmd_vel")).is_empty());
    // Another path, or later, or after a frame: a new session.
    let second = world.session("scan");
    assert_ne!(first, second);
    world.frame(CLIENT, second, Op::Ping);
    let third = world.session("scan");
    assert_ne!(second, third);
    world.wait(1_000, CLIENT);
    let fourth = world.session("scan");
    assert_ne!(third, fourth);
    assert_eq!(world.server.sessions.len(), 1);
    assert_eq!(closes(&world.frame(CLIENT, third, Op::Ping)), 1);
}

#[test]
fn nothing_but_the_reply_is_sent_for_200_ms_or_until_the_first_frame() {
    let mut world = World::new();
    world.session("cmd_vel");
    assert_eq!(pings(&world.wait(450, CLIENT)), [200, 300, 400]);
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.wait(50, CLIENT);
    assert_eq!(world.frame(CLIENT, id, Op::Pong), Vec::<Vec<u8>>::new());
    assert_eq!(pings(&world.wait(200, CLIENT)), [50, 150]);
}

#[test]
fn an_address_outside_the_local_networks_gets_only_the_reply_until_it_has_proved_itself() {
    let mut world = World::new();
    let id = world.connect(FAR, "scan").unwrap();
    let scan = Scan::new(&[-1.0, 1.0], &[1000, 1000], None).unwrap();
    world.wait(500, FAR);
    world.event(Event::Measured(
        robot().scanner,
        Measurement::Scan(scan.clone()),
    ));
    assert!(world.sent_to(FAR).is_empty());
    assert_eq!(world.frame(FAR, id, Op::Ping).len(), 1);
    world.event(Event::Measured(robot().scanner, Measurement::Scan(scan)));
    assert_eq!(world.sent_to(FAR).len(), 1);
    assert_eq!(pings(&world.wait(250, FAR)).len(), 3);
    // Unproven sessions end after a second.
    world.connect("8.8.8.8:5001", "scan").unwrap();
    world.wait(999, FAR);
    assert_eq!(world.server.sessions.len(), 2);
    world.wait(1, FAR);
    assert_eq!(world.server.sessions.len(), 1);
}

#[test]
fn pings_are_answered_and_a_silent_client_is_dropped_after_ten_seconds() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    let answers = world.frame(CLIENT, id, Op::Ping);
    assert_eq!(answers, [Frame::Session { id, op: Op::Pong }.encode()]);
    world.wait(9_999, CLIENT);
    assert_eq!(world.server.sessions.len(), 1);
    world.wait(1, CLIENT);
    assert_eq!(world.server.sessions.len(), 0);
    assert_eq!(world.outputs.last(), Some(&Output::Close(User(1))));
}

#[test]
fn only_listed_devices_may_be_used() {
    let mut world = World::with(|config| config.devices = Some(vec![robot().scanner]));
    assert_eq!(world.connect(CLIENT, "roboclaw/0"), None);
    assert_eq!(world.count("device not allowed"), 1);
    assert!(world.connect(CLIENT, "hokuyo/0").is_some());
    assert!(world.connect("192.168.0.9:1", "cmd_vel").is_some());
}

#[test]
fn there_are_at_most_128_sessions_and_16_of_one_address() {
    let mut world = World::new();
    let accepted = |world: &mut World, from: &str| world.connect(from, "scan").is_some();
    for port in 0..16 {
        assert!(accepted(
            &mut world,
            &format!("192.168.0.1:{}", 1000 + port)
        ));
    }
    assert!(!accepted(&mut world, "192.168.0.1:2000"));
    // Its own place is free for a client that connects again.
    assert!(world.connect("192.168.0.1:1000", "odom").is_some());
    for host in 2..9 {
        for port in 0..16 {
            assert!(accepted(
                &mut world,
                &format!("192.168.0.{host}:{}", 1000 + port)
            ));
        }
    }
    assert_eq!(world.server.sessions.len(), 128);
    assert!(!accepted(&mut world, "192.168.0.99:1000"));
    assert_eq!(world.count("too many sessions"), 1);
    assert_eq!(world.count("too many sessions of one address"), 1);
}

#[test]
fn sessions_of_a_vanished_program_give_their_places_to_a_new_one() {
    let mut world = World::new();
    let at = |port: u16| format!("192.168.0.1:{port}");
    let ids: Vec<_> = (0..16)
        .map(|port| world.connect(&at(port + 1), "scan").unwrap())
        .collect();
    world.connect("192.168.0.2:1", "scan").unwrap();
    // The first eight belong to a program that goes on, the others to one that has crashed.
    world.wait(1_000, CLIENT);
    for (port, id) in (1..9).zip(&ids) {
        world.frame(&at(port), *id, Op::Ping);
    }
    for port in 101..109 {
        assert!(world.connect(&at(port), "scan").is_some(), "{port}");
    }
    assert!(world.connect(&at(109), "scan").is_none());
    // Who has only been slow learns at once that the session has ended.
    assert_eq!(closes(&world.sent_to(&at(9))), 1);
    for (port, id) in (1..9).zip(&ids) {
        assert_eq!(world.frame(&at(port), *id, Op::Ping).len(), 1);
    }
    assert!(world.server.knows(address("192.168.0.2:1")));
}

#[test]
fn an_unknown_session_is_closed_at_most_ten_times_per_second() {
    let mut world = World::new();
    let id = SessionId([9, 9, 9, 9]);
    let mut closed = 0;
    for _ in 0..50 {
        let sent = world.frame(CLIENT, id, Op::Ping);
        assert!(sent.iter().all(|bytes| bytes.len() <= 6));
        closed += closes(&sent);
    }
    assert_eq!(closed, 10);
    // A CLOSE is not answered, so two ends cannot keep each other busy.
    world.wait(5_000, CLIENT);
    assert!(world.frame(CLIENT, id, Op::Close).is_empty());
}

#[test]
fn an_address_that_guesses_sessions_is_ignored_for_ten_seconds() {
    let mut world = World::new();
    let session = world.session("cmd_vel");
    let guesser = "192.168.0.9:6000";
    for guess in 0..200_u32 {
        world.frame(guesser, SessionId(guess.to_le_bytes()), Op::Ping);
    }
    assert_eq!(world.count("too many unknown sessions"), 99);
    // A session of the same address goes on.
    assert_eq!(world.frame(CLIENT, session, Op::Ping).len(), 1);
    world.wait(9_999, CLIENT);
    assert!(world.frame(guesser, SessionId([9; 4]), Op::Ping).is_empty());
    world.wait(1, CLIENT);
    assert_eq!(
        closes(&world.frame(guesser, SessionId([9; 4]), Op::Ping)),
        1
    );
}

#[test]
fn the_right_id_from_another_address_is_not_the_session() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.driven();
    let go = Op::Text(br#"{"linear":{"x":0.1}}"#);
    assert_eq!(closes(&world.frame("192.168.0.9:5001", id, go)), 1);
    assert_eq!(world.driven(), []);
    assert_eq!(world.count("unknown session"), 1);
}

#[test]
fn a_session_gets_at_most_200_datagrams_and_a_megabit_per_second() {
    let mut world = World::new();
    let id = world.session("amber/5/0");
    world.frame(CLIENT, id, Op::Binary(&encode_chunk(Some(0), &[])));
    let event = |bytes: &[u8]| {
        let device = Device::new(DeviceType::DUMMY, 0);
        Event::Message(User(1), device, Bytes::copy_from_slice(bytes))
    };
    let small: usize = (0..300)
        .map(|_| world.event(event(b"\x10\x03")).len())
        .sum();
    assert_eq!(small, 200);
    assert_eq!(world.count("session gets too much"), 100);
    world.wait(5_000, CLIENT);
    let sent = world.event(event(&[7; 200_000]));
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(
        sent.len() <= 200 && bytes <= 125_000,
        "{} {bytes}",
        sent.len()
    );
}

#[test]
fn other_datagrams_are_counted_and_not_answered() {
    let mut world = World::new();
    let id = world.session("scan");
    for bytes in [&b""[..], b"\x02\x01", b"\x07hello", b"\x02\0\0\0\x01\x0f"] {
        assert!(world.receive(CLIENT, bytes).is_empty());
    }
    assert!(world.frame(CLIENT, id, Op::Continuation).is_empty());
    assert!(world.frame(CLIENT, id, Op::Text(b"{}")).is_empty());
    let reasons = [
        "too short",
        "unknown frame type",
        "unknown operation",
        "continuation",
    ];
    assert_eq!(reasons.map(|reason| world.count(reason)), [2, 1, 1, 1]);
    assert_eq!(world.count("this path takes no messages"), 1);
}
