//! Cutting, joining and sending together.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::{ClientId, Device, DeviceType, MissingPieces, Receipt};

const CAMERA: Device = Device::new(DeviceType(17), 0);
const CLIENT: ClientId = ClientId(300);

fn long(number: u32, stream: Option<u32>, bytes: Vec<u8>) -> Long {
    Long {
        number,
        stream,
        syn: None,
        bytes: bytes.into(),
    }
}

fn pieces(long: &Long, piece_bytes: usize) -> Vec<Piece> {
    let count = long.count(piece_bytes);
    let messages = (0..count).map(|index| long.piece(piece_bytes, index).unwrap());
    messages.map(|message| piece_of(&message)).collect()
}

fn piece_of(message: &[u8]) -> Piece {
    DriverMsg::decode(message).unwrap().piece.unwrap()
}

/// Bytes that differ with their place.
fn content(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|i| (i * 7 + i / 251) as u8 ^ seed)
        .collect()
}

#[test]
fn pieces_have_these_bytes() {
    let bytes = [b"\x10\x01\x20\x00\x92\x03\x14".to_vec(), (0..20).collect()].concat();
    let long = Long {
        number: 4711,
        stream: Some(50),
        syn: None,
        bytes: bytes.into(),
    };
    assert_eq!(long.count(10), 3);
    let expected = [
        &b"\x10\x01\x32\x15\x08\xe7\x24\x10\x00\x18\x03\x22\x0a\x10\x01\x20\x00\x92\x03\x14\x00\x01\x02\x28\x32"[..],
        b"\x10\x01\x32\x15\x08\xe7\x24\x10\x01\x18\x03\x22\x0a\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x28\x32",
        b"\x10\x01\x32\x12\x08\xe7\x24\x10\x02\x18\x03\x22\x07\x0d\x0e\x0f\x10\x11\x12\x13\x28\x32",
    ];
    for (index, expected) in expected.into_iter().enumerate() {
        assert_eq!(long.piece(10, index as u32).unwrap(), expected);
    }
    assert_eq!(long.piece(10, 3), None);
}

#[test]
fn the_stream_of_a_message_is_its_first_own_field() {
    let table: [(&[u8], Option<u32>); 5] = [
        (b"\x10\x01\x20\x00\x92\x03\x01x", Some(50)),
        (b"\x92\x03\x01x\x10\x01", Some(50)),
        (b"\x10\x01\x20\x00", None),
        (b"\x10\x01\x32\x05", None),
        (b"\xff", None),
    ];
    for (message, stream) in table {
        assert_eq!(stream_of(message), stream, "{message:?}");
    }
}

#[test]
fn the_longest_datagram_of_a_piece_fits_into_1232_bytes() {
    let long = Long {
        number: u32::MAX,
        stream: Some(999),
        syn: Some(SynNum(u32::MAX)),
        bytes: vec![0; MAX_LONG].into(),
    };
    let first = long.piece(crate::limits::PIECE_BYTES, 0).unwrap();
    let last = long.count(crate::limits::PIECE_BYTES) - 2;
    let last = long.piece(crate::limits::PIECE_BYTES, last).unwrap();
    // Lengths, and a header with a type and an id of three bytes each.
    let around = 4 + 2 * 4;
    assert!(first.len().max(last.len()) + around <= 1232);
    assert!(long.count(crate::limits::MIN_PIECE_BYTES) <= crate::limits::MAX_PIECES);
}

#[test]
fn a_piece_is_recognized_by_its_first_bytes() {
    for syn in [None, Some(SynNum(300))] {
        let long = Long {
            number: 1,
            stream: Some(261),
            syn,
            bytes: vec![7; 3_000].into(),
        };
        for index in 0..3 {
            assert!(is_piece(&long.piece(1_000, index).unwrap()));
        }
    }
    let others: [&[u8]; 6] = [
        b"",
        b"\x10",
        b"\x10\x01\x20\x00",
        // A call for missing pieces, and a message of a device that looks like a piece inside.
        b"\x10\x01\x3a\x02\x08\x01",
        b"\x10\x01\x92\x03\x02\x32\x00",
        b"\x1a\xff\x32",
    ];
    for other in others {
        assert!(!is_piece(other), "{other:x?}");
    }
}

#[test]
fn the_ability_of_clients_survives_its_bytes() {
    for is_local in [false, true] {
        let ability = Ability::of_client(is_local);
        let bytes = ability.to_append();
        assert_eq!(bytes.len(), if is_local { 6 } else { 5 });
        // Appended to any message, as the SDKs do, also to one that was passed on.
        let other = Ability::of_client(!is_local).to_append();
        let message = [b"\x10\x06", &other[..], &bytes[..]].concat();
        let joins = DriverMsg::decode(&message[..]).unwrap().joins.unwrap();
        assert_eq!(Ability::stated(&joins), ability);
    }
    let greedy = Joins {
        longest: Some(u32::MAX),
        piece_bytes: Some(1),
    };
    let expected = Ability {
        longest: MAX_LONG,
        piece_bytes: MIN_PIECE_BYTES,
    };
    assert_eq!(Ability::stated(&greedy), expected);
}

#[test]
fn pieces_that_contradict_themselves_or_others_are_refused() {
    let piece = |message, index, count, bytes: usize, stream| Piece {
        message: Some(message),
        index: Some(index),
        count: Some(count),
        data: Some(vec![1; bytes].into()),
        stream,
    };
    // What comes first, and what is refused then.
    let table = [
        (None, piece(1, 0, 0, 10, None)),
        (None, piece(1, 0, 1, 10, None)),
        (None, piece(1, 3, 3, 10, None)),
        (None, piece(1, 0, 3, 0, None)),
        (None, piece(1, 0, 8_193, 10, None)),
        (None, piece(1, 0, 3, 40_000, None)),
        (Some(piece(1, 0, 3, 10, None)), piece(1, 1, 3, 11, None)),
        (Some(piece(1, 0, 3, 10, None)), piece(1, 2, 3, 11, None)),
        (Some(piece(1, 2, 3, 11, None)), piece(1, 0, 3, 10, None)),
        (Some(piece(1, 0, 3, 10, None)), piece(1, 1, 3, 10, Some(5))),
    ];
    for (first, refused) in table {
        let mut joiner = Joiner::default();
        let now = Instant::now();
        if let Some(first) = &first {
            assert_eq!(joiner.piece(now, 0, first), None);
            assert_eq!(joiner.counters(), Counters::default());
        }
        let memory = joiner.memory();
        assert_eq!(joiner.piece(now, 0, &refused), None);
        assert_eq!(joiner.counters().malformed, 1, "{first:?} {refused:?}");
        assert_eq!(joiner.memory(), memory);
    }
    // 8192 pieces of 1025 bytes are more than 8 MiB; only the first one counts as lost.
    let mut joiner = Joiner::default();
    for index in 0..3 {
        let piece = piece(1, index, 8_192, 1_025, None);
        assert_eq!(joiner.piece(Instant::now(), 0, &piece), None);
    }
    assert_eq!((joiner.counters().too_long, joiner.counters().lost), (1, 1));
    assert_eq!(joiner.memory(), 0);
}

#[test]
fn a_newer_message_of_the_stream_wins() {
    let now = Instant::now();
    let mut joiner = Joiner::default();
    let pieces_of = |number, stream| pieces(&long(number, stream, content(30, 0)), 10);
    for (number, stream) in [(u32::MAX, Some(5)), (7, Some(6)), (8, None)] {
        for piece in &pieces_of(number, stream)[..2] {
            assert_eq!(joiner.piece(now, 0, piece), None);
        }
    }
    // The number after the highest one.
    let newest = pieces_of(0, Some(5));
    let joined: Vec<_> = (newest.iter())
        .filter_map(|piece| joiner.piece(now, 0, piece))
        .collect();
    assert_eq!(joined.len(), 1);
    let lost = Lost {
        sender: 0,
        stream: Some(5),
        missing: 1,
    };
    assert_eq!((joiner.poll_lost(), joiner.poll_lost()), (Some(lost), None));
    // The older one does not begin again, but the others can be finished.
    for piece in &pieces_of(u32::MAX, Some(5)) {
        assert_eq!(joiner.piece(now, 0, piece), None);
    }
    assert!(joiner.piece(now, 0, &pieces_of(7, Some(6))[2]).is_some());
    assert!(joiner.piece(now, 0, &pieces_of(8, None)[2]).is_some());
    // A driver that was restarted may count from anywhere.
    let later = now + Duration::from_secs(2);
    let restarted = pieces_of(u32::MAX - 9, Some(5));
    let joined = (restarted.iter()).filter_map(|piece| joiner.piece(later, 0, piece));
    assert_eq!(joined.count(), 1);
}

#[test]
fn a_lost_message_counts_once() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let pieces_of = |number, stream| pieces(&long(number, stream, content(30, 0)), 10);
    let mut joiner = Joiner::with_receipts();
    let lost = |joiner: &mut Joiner<u8>| {
        let lost = std::iter::from_fn(|| joiner.poll_lost());
        lost.map(|lost| (lost.stream, lost.missing))
            .collect::<Vec<_>>()
    };
    // Its last piece never comes, and a copy of its first one only after it was given up.
    for piece in &pieces_of(7, Some(5))[..2] {
        assert_eq!(joiner.piece(at(0), 0, piece), None);
    }
    joiner.timeout(at(1_000));
    assert_eq!(lost(&mut joiner), [(Some(5), 1)]);
    for piece in &pieces_of(7, Some(5)) {
        assert_eq!(joiner.piece(at(1_001), 0, piece), None);
    }
    joiner.timeout(at(3_000));
    assert_eq!(lost(&mut joiner), []);
    // All pieces come behind those of a newer one.
    let joined = pieces_of(9, Some(5));
    let joined = (joined.iter()).filter_map(|piece| joiner.piece(at(4_000), 0, piece));
    assert_eq!(joined.count(), 1);
    for piece in &pieces_of(8, Some(5)) {
        assert_eq!(joiner.piece(at(4_001), 0, piece), None);
    }
    assert_eq!(lost(&mut joiner), [(Some(5), 3)]);
    // A sender must not take a request that was given up for one that has arrived.
    while joiner.poll_receipt().is_some() {}
    assert_eq!(joiner.piece(at(5_000), 0, &pieces_of(20, None)[0]), None);
    joiner.timeout(at(10_000));
    while joiner.poll_receipt().is_some() {}
    assert_eq!(joiner.piece(at(10_001), 0, &pieces_of(20, None)[0]), None);
    assert_eq!(joiner.poll_receipt(), None);
    assert_eq!((joiner.memory(), lost(&mut joiner)), (0, vec![(None, 2)]));
}

#[test]
fn calls_name_gaps_first_and_the_end_later() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut joiner = Joiner::default();
    let pieces = pieces(&long(9, Some(5), content(100, 0)), 10);
    let arrived = |joiner: &mut Joiner<u8>, ms, index: usize| {
        assert_eq!(joiner.piece(at(ms), 1, &pieces[index]), None);
    };
    let calls = |joiner: &mut Joiner<u8>, ms| {
        joiner.timeout(at(ms));
        let mut calls = Vec::new();
        while let Some((sender, call)) = joiner.poll_call() {
            assert_eq!((sender, call.message), (1, Some(9)));
            calls.push(call.index);
        }
        calls
    };
    for index in [0, 2, 3, 5, 6, 7] {
        arrived(&mut joiner, 0, index);
    }
    let none: Vec<Vec<u32>> = vec![];
    assert_eq!(joiner.next_timeout(), Some(at(5)));
    assert_eq!(calls(&mut joiner, 4), none);
    assert_eq!(calls(&mut joiner, 5), [[1, 4]]);
    // The end follows behind a pause, but 9 is lost, and so is the answer to the call.
    arrived(&mut joiner, 8, 8);
    assert_eq!(calls(&mut joiner, 16), none);
    assert_eq!(joiner.next_timeout(), Some(at(17)));
    assert_eq!(calls(&mut joiner, 17), [[1, 4]]);
    assert_eq!(calls(&mut joiner, 29), [[1, 4, 9]]);
    arrived(&mut joiner, 30, 4);
    // No fourth one. Then a second passes.
    assert_eq!(calls(&mut joiner, 60), none);
    assert_eq!(calls(&mut joiner, 1_029), none);
    assert_eq!(joiner.poll_lost(), None);
    assert_eq!(calls(&mut joiner, 1_030), none);
    assert_eq!(joiner.poll_lost().map(|lost| lost.missing), Some(2));
    assert_eq!((joiner.memory(), joiner.next_timeout()), (0, None));
}

#[test]
fn with_much_missing_a_stream_is_not_called_for_but_an_answer_is() {
    for (stream, calls) in [(Some(5), 0), (None, 1)] {
        let now = Instant::now();
        let mut joiner = Joiner::default();
        for piece in &pieces(&long(9, stream, content(200, 0)), 10)[..14] {
            assert_eq!(joiner.piece(now, 0, piece), None);
        }
        joiner.timeout(now + Duration::from_millis(10));
        assert_eq!(joiner.counters().calls, calls, "{stream:?}");
        assert_eq!(joiner.counters().congested, 1 - calls);
    }
}

#[test]
fn a_sender_cannot_displace_the_messages_of_others() {
    let now = Instant::now();
    let mut joiner = Joiner::default();
    let small = pieces(&long(1, None, content(30, 0)), 10);
    assert_eq!(joiner.piece(now, 0, &small[0]), None);
    let large = |number| pieces(&long(number, None, vec![0; 7_000_000]), 32_000);
    for (sender, number) in [(1, 1), (1, 2), (2, 1), (1, 3)] {
        assert_eq!(joiner.piece(now, sender, &large(number)[0]), None);
        assert!(joiner.memory() <= 2 * MAX_LONG);
    }
    assert_eq!(joiner.piece(now, 0, &small[1]), None);
    assert!(joiner.piece(now, 0, &small[2]).is_some());
    // Nor fill the table.
    for number in 0..20 {
        let pieces = pieces(&long(number, None, content(30, 0)), 10);
        assert_eq!(joiner.piece(now, 3, &pieces[0]), None);
    }
    assert_eq!(joiner.counters().lost, 16 + 2);
    joiner.forget(|sender| sender != 9);
    assert_eq!((joiner.memory(), joiner.next_timeout()), (0, None));
}

#[test]
fn an_upload_waits_for_receipts_and_survives_loss() {
    let start = Instant::now();
    let bytes = content(300_000, 3);
    let mut upload = Upload::new(start, long(5, None, bytes.clone()), 1_180);
    let first = upload.poll().unwrap();
    assert_eq!(upload.poll(), None, "only one piece before a receipt");

    let mut joiner = Joiner::with_receipts();
    let mut joined = None;
    let (mut now, mut number, mut most) = (start, 0, 0);
    let mut under_way = VecDeque::from([first]);
    let mut is_done = false;
    while !is_done {
        now += Duration::from_millis(2);
        assert!(now < start + Duration::from_secs(5), "stuck");
        most = most.max(under_way.len());
        for message in under_way.drain(..) {
            number += 1;
            if number % 20 != 0 {
                joined = joined.or(joiner.piece(now, CLIENT, &piece_of(&message)));
            }
        }
        joiner.timeout(now);
        while let Some((_, MissingPieces { index, .. })) = joiner.poll_call() {
            upload.missing(&index);
        }
        while let Some((_, Receipt { message, upto })) = joiner.poll_receipt() {
            assert_eq!(message, Some(5));
            number += 1;
            is_done |= number % 20 != 0 && upload.receipt(now, upto.unwrap());
        }
        assert_eq!(upload.timeout(now), Verdict::GoesOn);
        under_way.extend(std::iter::from_fn(|| upload.poll()));
    }
    assert_eq!(joined.unwrap().message, bytes);
    assert!(most <= 128, "{most} pieces at once");
}

#[test]
fn a_driver_without_receipts_is_noticed_within_a_second() {
    let start = Instant::now();
    let mut upload = Upload::new(start, long(5, None, content(50_000, 0)), 1_180);
    let mut sent = 0;
    let verdict = loop {
        sent += std::iter::from_fn(|| upload.poll()).count();
        match upload.timeout(upload.next_timeout()) {
            Verdict::GoesOn => {}
            verdict => break verdict,
        }
    };
    assert_eq!((verdict, sent), (Verdict::NotUnderstood, 4));
    assert!(upload.next_timeout() < start + Duration::from_secs(1));
    assert_eq!(upload.long().number, 5);
}

#[test]
fn only_receivers_get_pieces_again_and_at_most_once_each() {
    let start = Instant::now();
    let mut paced = Paced::default();
    let message = long(7, Some(54), content(30_000, 0));
    paced.push(start, message, None, vec![CLIENT, ClientId(2)], 1_180);
    assert_eq!(paced.poll(start).unwrap().pieces.len(), 16);
    let call = |index: Vec<u32>| MissingPieces {
        message: Some(7),
        index,
    };
    paced.missing(ClientId(3), &call(vec![1]));
    // 16 was not sent yet.
    paced.missing(CLIENT, &call(vec![3, 16, 900]));
    let again = paced.poll(start).unwrap();
    assert_eq!(again.clients, [CLIENT]);
    let index = again.pieces.iter().map(|it| piece_of(it).index());
    assert_eq!(index.collect::<Vec<_>>(), [3]);
    paced.missing(CLIENT, &call(vec![0; 400]));
    let again: usize = std::iter::from_fn(|| paced.poll(start))
        .map(|burst| burst.pieces.len())
        .sum();
    assert_eq!(again, 26 - 1);
    paced.missing(CLIENT, &call(vec![1]));
    assert_eq!(paced.poll(start), None);

    let mut now = start;
    let mut sent = 0;
    while let Some(due) = paced.next_timeout() {
        now = due;
        sent += paced.poll(now).map_or(0, |burst| burst.pieces.len());
    }
    // Half a second behind the second burst, nothing is left.
    assert_eq!((sent, now), (10, start + Duration::from_millis(505)));
}

#[test]
fn what_is_kept_is_bounded_and_ends_with_its_clients() {
    let now = Instant::now();
    let mut paced = Paced::default();
    for number in 0..5 {
        let message = long(number, None, vec![0; 3 << 20]);
        paced.push(now, message.clone(), None, vec![CLIENT], 1_180);
        paced.push(now, message, None, vec![ClientId(2)], 32_000);
    }
    assert!(paced.bytes() <= MAX_LONG, "{}", paced.bytes());
    paced.forget(CLIENT);
    paced.forget(ClientId(2));
    assert_eq!((paced.bytes(), paced.next_timeout()), (0, None));
}

/// What has arrived by now.
fn due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    let (at, _) = queue.front()?;
    match *at <= now {
        true => queue.pop_front().map(|(_, it)| it),
        false => None,
    }
}

/// Pictures through a network. Returns how many of them arrived, and the pieces that were sent in
/// addition, in percent each.
fn through_network(bytes: usize, loss_percent: u64, pictures: u32) -> (f64, f64) {
    const DELAY: Duration = Duration::from_millis(5);
    const PERIOD: Duration = Duration::from_millis(33);
    const STEP: Duration = Duration::from_micros(500);
    let start = Instant::now();
    let (mut paced, mut joiner) = (Paced::default(), Joiner::default());
    let (mut down, mut up) = (VecDeque::new(), VecDeque::new());
    let mut random = 12_345_u64;
    let mut is_lost = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % 100 < loss_percent
    };
    let (mut number, mut sent, mut arrived) = (0, 0, 0);
    let mut now = start;
    let end = start + PERIOD * pictures + Duration::from_secs(2);
    while now < end {
        now += STEP;
        if number < pictures && now >= start + PERIOD * number {
            number += 1;
            let picture = long(number, Some(54), content(bytes, number as u8));
            paced.push(now, picture, Some(CAMERA), vec![CLIENT], 1_180);
        }
        while let Some(burst) = paced.poll(now) {
            assert_eq!(
                (burst.device, &burst.clients[..]),
                (Some(CAMERA), &[CLIENT][..])
            );
            for piece in burst.pieces {
                sent += 1;
                if !is_lost() {
                    down.push_back((now + DELAY, piece));
                }
            }
        }
        while let Some(piece) = due(&mut down, now) {
            if let Some(joined) = joiner.piece(now, CAMERA, &piece_of(&piece)) {
                arrived += 1;
                assert_eq!(joined.message.len(), bytes);
            }
        }
        if joiner.next_timeout().is_some_and(|due| due <= now) {
            joiner.timeout(now);
        }
        while let Some((_, call)) = joiner.poll_call() {
            if !is_lost() {
                up.push_back((now + DELAY, call));
            }
        }
        while let Some(call) = due(&mut up, now) {
            paced.missing(CLIENT, &call);
        }
    }
    let counters = joiner.counters();
    assert_eq!(counters.joined, arrived);
    assert_eq!(counters.joined + counters.lost, u64::from(pictures));
    let needed = f64::from(pictures * long(0, None, vec![0; bytes]).count(1_180));
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    (
        percent(arrived as f64, f64::from(pictures)),
        percent(f64::from(sent) - needed, needed),
    )
}

#[test]
fn loss_is_repaired_for_little_traffic() {
    // Bytes, loss, at least so many whole, at most so much more traffic, each in percent.
    let table = [
        (60_000, 0, 100.0, 0.0),
        (60_000, 1, 99.5, 5.0),
        (60_000, 3, 98.0, 5.0),
        (200_000, 1, 97.0, 5.0),
    ];
    for (bytes, loss, whole, extra) in table {
        let (arrived, more) = through_network(bytes, loss, 400);
        let what = format!("{bytes} bytes, {loss} %: {arrived:.2} % whole, {more:.2} % more");
        assert!(arrived >= whole && more <= extra, "{what}");
    }
}

/// The pieces of several messages, in any order, some of them twice and some never.
fn mixed() -> impl Strategy<Value = (Vec<Long>, Vec<(usize, u32)>)> {
    let message = (11_usize..2_000, any::<u8>(), prop::option::of(5_u32..7));
    let messages = prop::collection::vec(message, 1..5);
    messages.prop_flat_map(|messages| {
        let longs: Vec<_> = (messages.iter().enumerate())
            .map(|(i, (length, seed, stream))| long(i as u32, *stream, content(*length, *seed)))
            .collect();
        let all: Vec<_> = (longs.iter().enumerate())
            .flat_map(|(i, long)| (0..long.count(10)).map(move |index| (i, index)))
            .collect();
        let again = prop::collection::vec(prop::sample::select(all.clone()), 0..20);
        let kept = prop::sample::subsequence(all.clone(), all.len() - all.len().min(2)..=all.len());
        let order = (kept, again)
            .prop_flat_map(|(kept, again)| Just([kept, again].concat()).prop_shuffle());
        (Just(longs), order)
    })
}

proptest! {
    #[test]
    fn a_message_arrives_exactly_once_and_unchanged_or_not_at_all((longs, order) in mixed()) {
        let now = Instant::now();
        let mut joiner = Joiner::default();
        let mut arrived = vec![0; longs.len()];
        for &(i, index) in &order {
            let piece = piece_of(&longs[i].piece(10, index).unwrap());
            if let Some(joined) = joiner.piece(now, 0, &piece) {
                prop_assert_eq!(&joined.message, &longs[i].bytes);
                prop_assert_eq!(joined.stream, longs[i].stream);
                arrived[i] += 1;
            }
        }
        for (i, long) in longs.iter().enumerate() {
            let came = |index| order.contains(&(i, index));
            let is_whole = (0..long.count(10)).all(came);
            prop_assert!(arrived[i] <= usize::from(is_whole));
            // Only newer messages of the stream may have displaced it.
            prop_assert!(long.stream.is_some() || arrived[i] == usize::from(is_whole));
        }
        joiner.timeout(now + Duration::from_secs(60));
        prop_assert_eq!(joiner.memory(), 0);
        // Each message that began has arrived, or counts as lost once.
        for piece in &order {
            let piece = piece_of(&longs[piece.0].piece(10, piece.1).unwrap());
            prop_assert_eq!(joiner.piece(now, 0, &piece), None);
        }
        joiner.timeout(now + Duration::from_secs(120));
        let begun = (0..longs.len()).filter(|i| order.iter().any(|(it, _)| it == i)).count();
        let counters = joiner.counters();
        prop_assert_eq!(counters.joined + counters.lost, begun as u64);
    }

    #[test]
    fn no_pieces_cause_a_panic_or_unbounded_memory(
        pieces in prop::collection::vec(
            (0_u8..9, 0_u32..6, any::<u32>(), 0_u32..9_000, 0_usize..40_000, any::<Option<u32>>(), 0_u64..400),
            0..100,
        ),
    ) {
        let mut now = Instant::now();
        let mut joiner = Joiner::with_receipts();
        for (sender, number, index, count, length, stream, pause) in pieces {
            now += Duration::from_millis(pause);
            let piece = Piece {
                message: Some(number),
                index: Some(index % (count + 1)),
                count: Some(count),
                data: Some(vec![0; length].into()),
                stream: stream.map(|it| it % 3),
            };
            let joined = joiner.piece(now, sender, &piece);
            prop_assert!(joined.is_none_or(|it| it.message.len() <= MAX_LONG));
            prop_assert!(joiner.memory() <= 2 * MAX_LONG);
            joiner.timeout(now);
            while let Some((_, call)) = joiner.poll_call() {
                prop_assert!((1..=crate::limits::MAX_MISSING).contains(&call.index.len()));
            }
            while joiner.poll_receipt().is_some() {}
        }
        let end = now + Duration::from_secs(9);
        while let Some(due) = joiner.next_timeout() {
            prop_assert!(due <= end);
            joiner.timeout(due);
        }
        prop_assert_eq!(joiner.memory(), 0);
    }
}
