//! Long messages of a driver and to it.

use std::time::Duration;

use amber_proto::limits::{MAX_PART, PIECE_BYTES};
use amber_proto::pieces::{Upload, Verdict};
use amber_proto::{DriverHdr, Joins, MissingPieces, SynNum, camera, dummy};

use super::*;
use crate::queue::Work;

const OLD: i32 = 4;
const NEW: i32 = 5;
const LOCAL: i32 = 6;

fn packet(client: i32, message: &DriverMsg) -> Packet {
    Packet {
        header: DriverHdr {
            client_ids: vec![client],
            ..DriverHdr::default()
        },
        message: message.encode_to_vec().into(),
    }
}

fn subscribe(client: i32, joins: Option<Joins>) -> Packet {
    let message = DriverMsg {
        r#type: MsgType::Subscribe.into(),
        joins,
        ..DriverMsg::default()
    };
    packet(client, &message)
}

fn text(length: usize) -> dummy::DriverMsg {
    dummy::DriverMsg {
        message: Some("x".repeat(length)),
        ..dummy::DriverMsg::data()
    }
}

/// The receivers and the messages of everything that is sent now.
fn sent<M: DeviceMessage>(session: &mut Session<M>) -> Vec<(Vec<i32>, DriverMsg)> {
    let packets = std::iter::from_fn(|| session.poll_output());
    packets
        .map(|packet| {
            assert!(packet.message.len() <= MAX_PART);
            let message = DriverMsg::decode(packet.message).unwrap();
            (packet.header.client_ids, message)
        })
        .collect()
}

#[test]
fn published_pieces_go_only_to_clients_that_join_them() {
    let now = Instant::now();
    let mut session = Session::default().with_last_number(41);
    let local = Joins {
        longest: None,
        piece_bytes: Some(32_000),
    };
    let small = Joins {
        longest: Some(50_000),
        piece_bytes: None,
    };
    session.handle_packet(now, subscribe(OLD, None));
    session.handle_packet(now, subscribe(NEW, Some(Joins::default())));
    session.handle_packet(now, subscribe(LOCAL, Some(local)));
    session.handle_packet(now, subscribe(7, Some(small)));
    session.publish(None, text(60_000)).unwrap();
    assert!(session.has_new_long());
    let mut pieces: Vec<(Vec<i32>, DriverMsg)> = Vec::new();
    let mut now = now;
    session.send_pieces(now);
    for _ in 0..10 {
        pieces.extend(sent(&mut session));
        now = session.next_piece_timeout().unwrap_or(now);
        session.send_pieces(now);
    }
    assert!(!session.has_new_long());
    for (client, piece_bytes) in [(NEW, PIECE_BYTES), (LOCAL, 32_000)] {
        let own = pieces.iter().filter(|(clients, _)| clients[..] == [client]);
        let mut joiner = Joiner::default();
        let joined: Vec<_> = own
            .filter_map(|(_, message)| {
                let piece = message.piece.as_ref().unwrap();
                assert_eq!((piece.message(), piece.stream), (42, Some(51)));
                assert!(piece.data().len() <= piece_bytes);
                joiner.piece(now, client, piece)
            })
            .collect();
        let [joined] = &joined[..] else {
            panic!("{} messages", joined.len())
        };
        let message = dummy::DriverMsg::decode(&joined.message[..]).unwrap();
        assert_eq!(
            (message.ack_num, message.message().len()),
            (Some(0), 60_000)
        );
    }
    let mut clients = pieces.iter().flat_map(|(clients, _)| clients);
    assert!(clients.all(|client| [NEW, LOCAL].contains(client)));
    // Short messages are as ever.
    session.publish(None, text(10)).unwrap();
    let short = sent(&mut session);
    assert_eq!((short.len(), &short[0].0), (1, &vec![OLD, NEW, LOCAL, 7]));
    assert_eq!(short[0].1.piece, None);
}

fn picture(bytes: usize) -> camera::DriverMsg {
    camera::DriverMsg {
        picture: Some(camera::Picture {
            data: Some(vec![7; bytes].into()),
            ..camera::Picture::default()
        }),
        ..camera::DriverMsg::data()
    }
}

/// The receivers and the bytes of the pieces that are sent now; those of a whole message are 0.
fn piece_lengths(session: &mut Session<camera::DriverMsg>) -> Vec<(Vec<i32>, usize)> {
    let mut now = Instant::now();
    let mut all = Vec::new();
    for _ in 0..5 {
        session.send_pieces(now);
        let sent = sent(session).into_iter();
        all.extend(sent.map(|(clients, message)| {
            let piece = message.piece.map_or(0, |it| it.data().len());
            (clients, piece)
        }));
        now = session.next_piece_timeout().unwrap_or(now);
    }
    all
}

#[test]
fn pictures_go_in_pieces_as_soon_as_they_do_not_fit_into_a_datagram() {
    let joins = |piece_bytes| {
        Some(Joins {
            longest: None,
            piece_bytes,
        })
    };
    let (network, local) = ((NEW, joins(None)), (LOCAL, joins(Some(32_000))));
    let old = (OLD, None);
    for (clients, bytes, expected) in [
        (vec![network], 1_160, vec![(vec![NEW], 0)]),
        (
            vec![network],
            1_300,
            vec![(vec![NEW], 1_180), (vec![NEW], 131)],
        ),
        (vec![local], 16_000, vec![(vec![LOCAL], 0)]),
        (
            vec![local],
            20_000,
            vec![(vec![LOCAL], 10_007), (vec![LOCAL], 10_006)],
        ),
        (
            vec![network, local],
            1_300,
            vec![
                (vec![NEW], 1_180),
                (vec![NEW], 131),
                (vec![LOCAL], 656),
                (vec![LOCAL], 655),
            ],
        ),
        // A recording would have it twice.
        (vec![network, old], 8_000, vec![(vec![OLD, NEW], 0)]),
    ] {
        let what = format!("{bytes} bytes to {clients:?}");
        let mut session = Session::<camera::DriverMsg>::default();
        for (client, joins) in &clients {
            session.handle_packet(Instant::now(), subscribe(*client, *joins));
        }
        session.publish(None, picture(bytes)).unwrap();
        let mut sent = piece_lengths(&mut session);
        sent.sort_by_key(|(clients, _)| clients.clone());
        assert_eq!(sent, expected, "{what}");
    }
    // Answers, too.
    for (joins, pieces) in [(None, 1), (joins(None), 7)] {
        let mut session = Session::<camera::DriverMsg>::default();
        let origin = Origin {
            syn: Some(SynNum(1)),
            joins: joins.map(|it| Ability::stated(&it)),
            ..Origin::of(ClientId(NEW))
        };
        session.answer(&origin, picture(8_000)).unwrap();
        assert_eq!(piece_lengths(&mut session).len(), pieces);
    }
}

#[test]
fn a_client_that_stops_joining_gets_no_pieces() {
    let now = Instant::now();
    let mut session = Session::<dummy::DriverMsg>::default();
    session.handle_packet(now, subscribe(NEW, Some(Joins::default())));
    session.handle_packet(now, subscribe(NEW, None));
    session.publish(None, text(60_000)).unwrap();
    assert!(!session.has_new_long());
    session.handle_packet(now, subscribe(NEW, Some(Joins::default())));
    session.publish(None, text(60_000)).unwrap();
    let died = DriverMsg {
        r#type: MsgType::ClientDied.into(),
        ..DriverMsg::default()
    };
    session.send_pieces(now);
    sent(&mut session);
    session.handle_packet(now, packet(NEW, &died));
    assert_eq!(session.next_piece_timeout(), None);
    let longest = session.publish(None, text(MAX_LONG));
    assert!(longest.is_err(), "{longest:?}");
}

#[test]
fn an_answer_is_as_long_as_its_request_allows() {
    let now = Instant::now();
    let mut session = Session::<dummy::DriverMsg>::default();
    for (joins, is_sent) in [(None, false), (Some(Joins::default()), true)] {
        let request = DriverMsg {
            r#type: MsgType::Data.into(),
            syn_num: Some(9),
            joins,
            ..DriverMsg::default()
        };
        session.handle_packet(now, packet(NEW, &request));
        let Some(Work::Request(request)) = session.poll_work(now) else {
            panic!("a request")
        };
        let answered = session.answer(&request.origin, text(40_000));
        assert_eq!(answered.is_ok(), is_sent);
        session.send_pieces(now);
        let pieces = sent(&mut session);
        assert_eq!(pieces.is_empty(), !is_sent);
        if let Some((clients, message)) = pieces.first() {
            let piece = message.piece.as_ref().unwrap();
            assert_eq!((&clients[..], piece.stream), (&[NEW][..], None));
            // A lost one is sent again, to this client alone.
            let call = DriverMsg {
                r#type: MsgType::Data.into(),
                missing: Some(MissingPieces {
                    message: piece.message,
                    index: vec![2],
                }),
                ..DriverMsg::default()
            };
            session.handle_packet(now, packet(OLD, &call));
            assert!(sent(&mut session).is_empty());
            session.handle_packet(now, packet(NEW, &call));
            let again = sent(&mut session);
            assert_eq!(again.len(), 1);
            assert_eq!(again[0].1.piece.as_ref().unwrap().index(), 2);
            assert!(!session.has_work());
        }
    }
}

#[test]
fn a_long_request_arrives_as_one() {
    let start = Instant::now();
    let request = dummy::DriverMsg {
        syn_num: Some(77),
        ..text(100_000)
    };
    let long = Long {
        number: 3,
        stream: None,
        syn: Some(SynNum(77)),
        bytes: request.encode_to_vec().into(),
    };
    let mut upload = Upload::new(start, long, PIECE_BYTES);
    let mut session = Session::<dummy::DriverMsg>::default();
    let mut now = start;
    let mut is_done = false;
    while !is_done {
        assert!(now < start + Duration::from_secs(1), "stuck");
        while let Some(piece) = upload.poll() {
            let message = DriverMsg::decode(piece).unwrap();
            session.handle_packet(now, packet(NEW, &message));
        }
        for (clients, message) in sent(&mut session) {
            assert_eq!(clients, [NEW]);
            let receipt = message.receipt.expect("a receipt");
            is_done |= upload.receipt(now, receipt.upto());
        }
        now += Duration::from_millis(1);
        assert_eq!(upload.timeout(now), Verdict::GoesOn);
    }
    let Some(Work::Request(arrived)) = session.poll_work(now) else {
        panic!("a request")
    };
    assert_eq!(arrived.message, request);
    assert_eq!(arrived.origin.clients, [ClientId(NEW)]);
    assert!(!session.has_work());
}
