//! Tests of the session: frames in, frames and work out.

use amber_proto::dummy::DriverMsg;
use amber_proto::{FrameCodec, limits};
use bytes::BytesMut;
use proptest::prelude::*;
use prost::Message;
use tokio_util::codec::{Decoder, Encoder};

use super::*;

const DUMMY_1: (i32, i32) = (5, 1);

/// Header and message as the mediator writes them.
fn packet(device: Option<(i32, i32)>, clients: &[i32], message: &[u8]) -> Packet {
    Packet {
        header: DriverHdr {
            device_type: device.map(|device| device.0),
            device_id: device.map(|device| device.1),
            client_ids: clients.to_vec(),
        },
        message: Bytes::copy_from_slice(message),
    }
}

fn message(kind: MsgType, syn: Option<u32>) -> DriverMsg {
    let mut message = DriverMsg::of_kind(kind);
    message.set_syn(syn.map(SynNum));
    message
}

fn device((device_type, id): (i32, i32)) -> Device {
    Device::new(DeviceType(device_type), id)
}

/// A session that has received one frame.
fn after(packet: Packet) -> Session<DriverMsg> {
    let mut session = Session::default();
    session.handle_packet(Instant::now(), packet);
    session
}

fn outputs(session: &mut Session<DriverMsg>) -> Vec<Packet> {
    std::iter::from_fn(|| session.poll_output()).collect()
}

fn works(session: &mut Session<DriverMsg>) -> Vec<Work<DriverMsg>> {
    std::iter::from_fn(|| session.poll_work(Instant::now())).collect()
}

fn assert_silent(mut session: Session<DriverMsg>, what: &str) {
    assert_eq!(outputs(&mut session), [], "{what}");
    assert_eq!(works(&mut session), [], "{what}");
    assert_eq!(session.subscriptions(), 0, "{what}");
    assert!(session.poll_from_device().is_none(), "{what}");
}

#[test]
fn a_client_may_ask_whether_commands_have_outcomes() {
    // 186: the wish; 187: accepted.
    let asks = packet(None, &[5], b"\x10\x02\x18\x07\xd0\x0b\x01");
    let mut session = after(asks.clone());
    assert_eq!(
        outputs(&mut session),
        [packet(None, &[5], b"\x10\x03\x20\x07")]
    );
    session.set_reports_outcomes();
    session.handle_packet(Instant::now(), asks);
    assert_eq!(
        outputs(&mut session),
        [packet(None, &[5], b"\x10\x03\x20\x07\xda\x0b\0")]
    );
    session.handle_packet(Instant::now(), packet(None, &[5], b"\x10\x02\x18\x07"));
    assert_eq!(
        outputs(&mut session),
        [packet(None, &[5], b"\x10\x03\x20\x07")]
    );
}

#[test]
fn every_ping_is_answered_to_its_sender() {
    for (device, clients) in [
        (None, &[5][..]),
        (None, &[5, 6, 5]),
        (None, &[]), // from the mediator
        (Some(DUMMY_1), &[5]),
    ] {
        // (PING with synNum, PONG with ackNum), and both without.
        for (ping, pong) in [
            (&b"\x10\x02\x18\x07"[..], &b"\x10\x03\x20\x07"[..]),
            (b"\x10\x02\x18\0", b"\x10\x03\x20\0"),
            (b"\x10\x02", b"\x10\x03"),
            (b"\x18\x07\x10\x02\xa8\x06\x01", b"\x10\x03\x20\x07"), // unknown extension
        ] {
            let mut session = after(packet(device, clients, ping));
            assert_eq!(outputs(&mut session), [packet(device, clients, pong)]);
            assert_eq!(works(&mut session), []);
        }
    }
}

#[test]
fn a_request_is_answered_with_its_number_and_its_header() {
    for (device, clients) in [
        (None, &[5][..]),
        (None, &[5, 6]),
        (Some(DUMMY_1), &[5]),
        (Some((5, 0)), &[5]),
    ] {
        let mut session = after(packet(device, clients, b"\x10\x01\x18\x08\xa0\x03\x01"));
        let [Work::Request(request)] = &works(&mut session)[..] else {
            panic!("no request");
        };
        assert_eq!(request.message.get_status, Some(true));
        assert_eq!(request.client(), Some(ClientId(5)));
        let answer = DriverMsg {
            enable: Some(true),
            // Must be corrected:
            syn_num: Some(99),
            ack_num: Some(99),
            r#type: Some(2),
            ..DriverMsg::default()
        };
        session.answer(&request.origin, answer).unwrap();
        let expected = packet(device, clients, b"\x10\x01\x20\x08\x90\x03\x01");
        assert_eq!(outputs(&mut session), [expected]);
    }
}

#[test]
fn a_request_without_number_is_carried_out_but_not_answered() {
    let mut session = after(packet(None, &[5], b"\x10\x01\xa0\x03\x01"));
    let [Work::Request(request)] = &works(&mut session)[..] else {
        panic!("no request");
    };
    session
        .answer(&request.origin, DriverMsg::default())
        .unwrap();
    assert_eq!(outputs(&mut session), []);
}

#[test]
fn invalid_messages_are_ignored() {
    let unknown_type = [0x10, 99];
    for (what, packet) in [
        ("empty message", packet(None, &[5], b"")),
        ("no type", packet(None, &[5], b"\x18\x07")),
        ("unknown type", packet(None, &[5], &unknown_type)),
        ("text", packet(None, &[5], b"ECHO\0\xff\x80 opaque")),
        ("cut off", packet(None, &[5], b"\x10\x01\x9a\x03\x05ab")),
        (
            "extension of another kind",
            packet(None, &[5], b"\x10\x01\x92\x03\0"),
        ),
        (
            "request without a client",
            packet(None, &[], b"\x10\x01\x18\x08"),
        ),
        (
            "subscription without a client",
            packet(None, &[], b"\x10\x06"),
        ),
        ("death without a client", packet(None, &[], b"\x10\x04")),
        ("PONG", packet(None, &[], b"\x10\x03\x20\x01")),
        ("DRIVER_DIED", packet(None, &[5], b"\x10\x05")),
    ] {
        assert_silent(after(packet), what);
    }
}

#[test]
fn unknown_extensions_do_not_hide_the_known_ones() {
    let mut session = after(packet(
        None,
        &[5],
        b"\x10\x01\xa2\x01\x02\x08\x01\x90\x03\x01",
    ));
    let [Work::Request(request)] = &works(&mut session)[..] else {
        panic!("no request");
    };
    assert_eq!(request.message.enable, Some(true));
}

#[test]
fn subscribers_get_publications_until_they_leave() {
    let mut session = Session::default();
    let now = Instant::now();
    let tell = |session: &mut Session<DriverMsg>, clients: &[i32], kind| {
        let message = message(kind, None).encode_to_vec();
        session.handle_packet(now, packet(None, clients, &message));
        let data = DriverMsg {
            enable: Some(false),
            syn_num: Some(3),
            ..DriverMsg::default()
        };
        session.publish(None, data).unwrap();
        let published = outputs(session);
        for packet in &published {
            assert_eq!(&packet.message[..], b"\x10\x01\x20\0\x90\x03\0");
            assert_eq!(packet.header.device_type, None);
        }
        published
            .into_iter()
            .flat_map(|packet| packet.header.client_ids)
            .collect::<Vec<_>>()
    };
    assert_eq!(tell(&mut session, &[7, 5, 7], MsgType::Subscribe), [5, 7]);
    assert_eq!(tell(&mut session, &[5, 6], MsgType::Subscribe), [5, 6, 7]);
    assert_eq!(tell(&mut session, &[6, 8], MsgType::Unsubscribe), [5, 7]);
    assert_eq!(tell(&mut session, &[9, 5], MsgType::ClientDied), [7]);
    assert_eq!(tell(&mut session, &[7], MsgType::Unsubscribe), [0; 0]);
    assert_eq!(session.next_due(), None);
    assert_eq!(
        works(&mut session),
        [
            Work::Subscribed(ClientId(7)),
            Work::Subscribed(ClientId(5)),
            Work::Subscribed(ClientId(6)),
            Work::ClientDied(ClientId(9)),
            Work::ClientDied(ClientId(5)),
        ]
    );
}

#[test]
fn several_devices_are_kept_apart() {
    let mut session = Session::default();
    let now = Instant::now();
    for (device, clients) in [((5, 0), &[7][..]), (DUMMY_1, &[7, 8])] {
        session.handle_packet(now, packet(Some(device), clients, b"\x10\x06"));
    }
    session
        .publish(Some(device(DUMMY_1)), DriverMsg::default())
        .unwrap();
    let data = b"\x10\x01\x20\0";
    assert_eq!(
        outputs(&mut session),
        [packet(Some(DUMMY_1), &[7, 8], data)]
    );
    session.publish_everywhere(DriverMsg::default()).unwrap();
    assert_eq!(
        outputs(&mut session),
        [
            packet(Some((5, 0)), &[7], data),
            packet(Some(DUMMY_1), &[7, 8], data)
        ]
    );
    let origin = Origin {
        clients: vec![ClientId(9)],
        device: Some(device(DUMMY_1)),
        syn: Some(SynNum(3)),
        ..Origin::default()
    };
    session.publish_to(&origin, DriverMsg::default()).unwrap();
    assert_eq!(outputs(&mut session), [packet(Some(DUMMY_1), &[9], data)]);
    // A dead client is dead for all devices, whichever the header names.
    session.handle_packet(now, packet(Some((5, 0)), &[7], b"\x10\x04"));
    session.publish_everywhere(DriverMsg::default()).unwrap();
    assert_eq!(outputs(&mut session), [packet(Some(DUMMY_1), &[8], data)]);
}

#[test]
fn a_task_that_has_not_heard_of_the_death_of_a_client_publishes_nothing_to_it() {
    let request = b"\x10\x01\x18\x07";
    let mut session = after(packet(Some(DUMMY_1), &[7, 8], request));
    let [Work::Request(Request { origin, .. })] = &works(&mut session)[..] else {
        panic!("no request");
    };
    session.handle_packet(Instant::now(), packet(Some(DUMMY_1), &[7], b"\x10\x04"));
    session.publish_to(origin, DriverMsg::default()).unwrap();
    let data = b"\x10\x01\x20\0";
    assert_eq!(outputs(&mut session), [packet(Some(DUMMY_1), &[8], data)]);
    session.handle_packet(Instant::now(), packet(Some(DUMMY_1), &[8], b"\x10\x04"));
    session.publish_to(origin, DriverMsg::default()).unwrap();
    assert_eq!(outputs(&mut session), []);
    // The same id, given to a new client.
    session.handle_packet(Instant::now(), packet(Some(DUMMY_1), &[7], request));
    session.publish_to(origin, DriverMsg::default()).unwrap();
    assert_eq!(outputs(&mut session), [packet(Some(DUMMY_1), &[7], data)]);
    // Only a few are remembered.
    for client in 0..1_000 {
        session.handle_packet(
            Instant::now(),
            packet(Some(DUMMY_1), &[client], b"\x10\x04"),
        );
    }
    assert_eq!(session.gone.len(), MAX_GONE);
}

#[test]
fn the_outcome_of_a_request_goes_only_to_clients_that_ask_for_it() {
    // DATA with synNum 7; 186 is want_outcome.
    let plain = &b"\x10\x01\x18\x07\x90\x03\x01"[..];
    let wanting = [plain, b"\xd0\x0b\x01"].concat();
    let without_number = b"\x10\x01\x90\x03\x01\xd0\x0b\x01".to_vec();
    for (request, accepted, refused) in [
        (plain.to_vec(), None, None),
        (without_number, None, None),
        (
            wanting,
            Some(&b"\x10\x01\x20\x07\xda\x0b\0"[..]),
            Some(&b"\x10\x01\x20\x07\xda\x0b\x04\x0a\x02no"[..]),
        ),
    ] {
        for (outcome, reply) in [
            (Outcome::accepted(), accepted),
            (Outcome::refusal("no"), refused),
        ] {
            let mut session: Session<DriverMsg> = Session::default();
            let request = packet(Some(DUMMY_1), &[9], &request);
            session.handle_packet(Instant::now(), request);
            let Some(Work::Request(request)) = session.poll_work(Instant::now()) else {
                panic!("no request");
            };
            session.outcome(&request.origin, outcome);
            let reply = reply.map(|reply| packet(Some(DUMMY_1), &[9], reply));
            assert_eq!(session.poll_output(), reply);
        }
    }
}

#[test]
fn messages_of_other_devices_are_not_requests() {
    for (device, message) in [
        (DUMMY_1, &b"\x10\x01\x20\x07\x90\x03\x01"[..]), // an answer
        (DUMMY_1, b"\x10\x05"),                          // its driver died
        ((0, 0), b"\x10\x02\x18\x07"),                   // the mediator, to its client
        ((77, 3), b"not a DriverMsg"),
    ] {
        let packet = packet(Some(device), &[], message);
        let mut session = after(packet.clone());
        assert_eq!(session.poll_from_device(), Some(packet));
        assert_silent(session, "nothing else");
    }
}

#[test]
fn many_subscribers_are_served_by_several_frames() {
    let mut session = Session::default();
    let ids: Vec<i32> = (1..=3_000).chain([i32::MAX]).collect();
    session.handle_packet(Instant::now(), packet(Some(DUMMY_1), &ids, b"\x10\x06"));
    session
        .publish(Some(device(DUMMY_1)), DriverMsg::default())
        .unwrap();
    let outputs = outputs(&mut session);
    for packet in &outputs {
        let length = packet.header.encoded_len();
        assert!(length < limits::SURE_HEADER, "{length}");
        assert_eq!(
            (packet.header.device_type, packet.header.device_id),
            (Some(5), Some(1))
        );
    }
    assert_eq!(outputs.len(), 3);
    let served: Vec<i32> = outputs
        .into_iter()
        .flat_map(|p| p.header.client_ids)
        .collect();
    assert_eq!(served, ids);
}

#[test]
fn a_message_may_have_32767_bytes_and_not_one_more() {
    let mut session = Session::default();
    let origin = Origin {
        clients: vec![ClientId(5)],
        syn: Some(SynNum(1)),
        ..Origin::default()
    };
    // Type and ackNum take 4 bytes, tag and length of the text 5.
    let text = |length: usize| DriverMsg {
        message: Some("x".repeat(length - 9)),
        ..DriverMsg::default()
    };
    session.answer(&origin, text(MAX_PART)).unwrap();
    let packet = session.poll_output().unwrap();
    assert_eq!(packet.message.len(), MAX_PART);
    packet.encode().unwrap();
    let longer = session.answer(&origin, text(MAX_PART + 1));
    assert_eq!(longer, Err(MessageTooLong(MAX_PART + 1)));
    assert_eq!(session.poll_output(), None);
}

#[test]
fn a_flood_of_requests_is_bounded() {
    let mut session = Session::default();
    for syn in 0..3_000 {
        let message = message(MsgType::Data, Some(syn)).encode_to_vec();
        session.handle_packet(Instant::now(), packet(None, &[5], &message));
    }
    session.handle_packet(Instant::now(), packet(None, &[5], b"\x10\x02\x18\x07"));
    assert_eq!(outputs(&mut session).len(), 1);
    let works = works(&mut session);
    assert_eq!(works.len(), crate::queue::MAX_REQUESTS);
    assert!(matches!(&works[..], [.., Work::Request(r)] if r.message.syn_num == Some(2_999)));
}

#[test]
fn each_problem_is_logged_once() {
    let mut complaints = Complaints::default();
    for _ in 0..3 {
        complaints.about(Complaint::NoDriverMsg);
        complaints.about(Complaint::UnknownType);
    }
    assert_eq!(
        complaints.made,
        [Complaint::NoDriverMsg, Complaint::UnknownType]
    );
}

/// Valid and invalid frames.
fn packets() -> impl Strategy<Value = Packet> {
    let message = prop_oneof![
        (0i32..9, any::<Option<u32>>(), any::<Option<bool>>()).prop_map(|(kind, syn, status)| {
            let message = DriverMsg {
                r#type: Some(kind),
                syn_num: syn,
                get_status: status,
                ..DriverMsg::default()
            };
            message.encode_to_vec()
        }),
        any::<Vec<u8>>(),
    ];
    let number = || proptest::option::of(-1i32..3);
    let clients = proptest::collection::vec(-2i32..6, 0..4);
    (number(), number(), clients, message).prop_map(|(device_type, device_id, ids, message)| {
        Packet {
            header: DriverHdr {
                device_type,
                device_id,
                client_ids: ids,
            },
            message: message.into(),
        }
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let mut buffer = BytesMut::from(&bytes[..]);
        let mut session = Session::<DriverMsg>::default();
        while let Ok(Some(packet)) = FrameCodec.decode(&mut buffer) {
            session.handle_packet(Instant::now(), packet);
        }
    }

    #[test]
    fn dead_clients_never_get_messages(packets in proptest::collection::vec(packets(), 0..40)) {
        let mut session = Session::<DriverMsg>::default();
        let now = Instant::now();
        for packet in packets {
            session.handle_packet(now, packet);
            while let Some(output) = session.poll_output() {
                output.encode().unwrap();
            }
            if let Some(Work::Request(request)) = session.poll_work(Instant::now()) {
                prop_assert!(request.client().is_some());
                session.answer(&request.origin, DriverMsg::default()).unwrap();
            }
        }
        let everybody: Vec<i32> = (-2..6).collect();
        session.handle_packet(now, packet(None, &everybody, b"\x10\x04"));
        while session.poll_output().is_some() {}
        session.publish_everywhere(DriverMsg::default()).unwrap();
        prop_assert_eq!(session.poll_output(), None);
        prop_assert_eq!(session.next_due(), None);
    }

    #[test]
    fn frames_split_anywhere_give_the_same_result(
        packets in proptest::collection::vec(packets(), 0..10),
        cut: prop::sample::Index,
    ) {
        let mut wire = BytesMut::new();
        for packet in packets {
            FrameCodec.encode(packet, &mut wire).unwrap();
        }
        let now = Instant::now();
        let run = |pieces: &[&[u8]]| {
            let (mut session, mut buffer) = (Session::<DriverMsg>::default(), BytesMut::new());
            for piece in pieces {
                buffer.extend_from_slice(piece);
                while let Some(packet) = FrameCodec.decode(&mut buffer).unwrap() {
                    session.handle_packet(now, packet);
                }
            }
            (outputs(&mut session), works(&mut session), session.subscriptions())
        };
        let (head, tail) = wire.split_at(cut.index(wire.len() + 1));
        prop_assert_eq!(run(&[head, tail]), run(&[&wire]));
    }
}
