//! Frames in any order, missing, repeated, contradicting, and the limits.

use proptest::prelude::*;

use super::super::frame::Layout;
use super::super::split::{Format, split};
use super::*;

const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

struct Bench {
    reassembly: Reassembly,
    now_ms: u64,
}

impl Bench {
    fn new() -> Self {
        Self::with(Reassembly::default())
    }

    fn with(reassembly: Reassembly) -> Self {
        Self {
            reassembly,
            now_ms: 0,
        }
    }

    fn from(&mut self, source: IpAddr, datagram: &[u8]) -> Outcome {
        let now = Duration::from_millis(self.now_ms);
        let (_, frame) = Frame::decode(datagram).unwrap();
        self.reassembly.handle_frame(now, 1000.0, source, &frame)
    }

    fn feed(&mut self, datagram: &[u8]) -> Outcome {
        self.from(SOURCE, datagram)
    }

    /// The bytes of the messages that the datagrams complete.
    fn feed_all<'a>(&mut self, datagrams: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
        let outcomes = datagrams.into_iter().map(|datagram| self.feed(datagram));
        let complete = outcomes.filter_map(|outcome| match outcome {
            Outcome::Complete(message) => Some(message.bytes),
            _ => None,
        });
        complete.collect()
    }
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

fn datagrams(id: u32, size: usize) -> Vec<Vec<u8>> {
    split(Format::default(), "PointCloud", id, 999.9, content(size)).unwrap()
}

#[test]
fn frames_in_reverse_order() {
    let mut bench = Bench::new();
    let found = bench.feed_all(datagrams(1, 2500).iter().rev());
    assert_eq!(found, [content(2500)]);
    assert_eq!(bench.reassembly.used(), 0);
}

#[test]
fn duplicates_are_ignored() {
    let mut bench = Bench::new();
    let sent = datagrams(1, 2500);
    assert_eq!(bench.feed(&sent[0]), Outcome::Incomplete);
    assert_eq!(bench.feed(&sent[0]), Outcome::Dropped(Drop::Duplicate));
    assert_eq!(bench.feed(&sent[1]), Outcome::Incomplete);
    assert!(matches!(bench.feed(&sent[2]), Outcome::Complete(_)));
    for again in &sent {
        assert_eq!(bench.feed(again), Outcome::Dropped(Drop::Old));
    }
}

/// The number of frames that Apollo's own receivers never complete. Other senders do not pad.
#[test]
fn thirty_two_frames() {
    let message = content(32 * 1024);
    let mut bench = Bench::new();
    let pieces = message.chunks(1024).enumerate();
    let sent: Vec<_> = pieces
        .map(|(index, payload)| {
            let frame = Frame {
                name: "PointCloud",
                message_id: 1,
                message_size: message.len(),
                frames: 32,
                position: index * 1024,
                index,
                time_s: 0.0,
                payload,
            };
            frame.encode(Layout::Current)
        })
        .collect();
    assert_eq!(bench.feed_all(&sent), [message]);
}

#[test]
fn legacy_frames() {
    let format = Format {
        layout: Layout::Legacy,
        ..Format::default()
    };
    let sent = split(format, "ADCTrajectory", 3, 0.0, content(5000)).unwrap();
    assert_eq!(Bench::new().feed_all(&sent), [content(5000)]);
}

#[test]
fn a_missing_frame_abandons_the_message_after_a_second() {
    let mut bench = Bench::new();
    let sent = datagrams(1, 2500);
    bench.feed(&sent[0]);
    bench.now_ms = 999;
    assert_eq!(bench.feed(&sent[1]), Outcome::Incomplete);
    bench.now_ms = 1000;
    // The message begins again.
    assert_eq!(bench.feed(&sent[2]), Outcome::Incomplete);
    assert_eq!(bench.reassembly.abandoned(), 1);
    bench.now_ms = 2000;
    bench.reassembly.handle_timeout(Duration::from_millis(2000));
    assert_eq!(bench.reassembly.used(), 0);
    assert_eq!(bench.reassembly.next_timeout(), None);
}

#[test]
fn a_complete_message_drops_older_ones() {
    let mut bench = Bench::new();
    let (first, second) = (datagrams(1, 2500), datagrams(2, 2500));
    bench.feed(&first[0]);
    assert_eq!(bench.feed_all(&second), [content(2500)]);
    assert_eq!(bench.reassembly.used(), 0);
    assert_eq!(bench.feed(&first[1]), Outcome::Dropped(Drop::Old));
}

#[test]
fn numbers_wrap() {
    let mut bench = Bench::new();
    let ids = [u32::MAX - 1, u32::MAX, 1, 2];
    for id in ids {
        assert_eq!(bench.feed_all(&datagrams(id, 10)).len(), 1, "{id}");
    }
    assert_eq!(
        bench.feed(&datagrams(u32::MAX, 10)[0]),
        Outcome::Dropped(Drop::Old)
    );
}

#[test]
fn a_sender_that_does_not_count_is_never_old() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        assert_eq!(bench.feed_all(&datagrams(0, 2500)), [content(2500)]);
    }
}

#[test]
fn a_restarted_sender_is_accepted_after_silence() {
    let mut bench = Bench::new();
    assert_eq!(bench.feed_all(&datagrams(500, 10)).len(), 1);
    bench.now_ms = 1500;
    assert_eq!(
        bench.feed(&datagrams(1, 10)[0]),
        Outcome::Dropped(Drop::Old)
    );
    // What is dropped is no sign of life.
    bench.now_ms = 2100;
    assert_eq!(bench.feed_all(&datagrams(1, 10)).len(), 1);
}

/// A message of one frame, made at this time.
fn made_at(id: u32, time_s: f64) -> Vec<u8> {
    let frames = split(Format::default(), "PointCloud", id, time_s, content(10)).unwrap();
    frames[0].clone()
}

impl Bench {
    /// The number of accepted messages of a sender that counts from here, ten per second.
    fn accepted(&mut self, ids: impl Iterator<Item = u32>) -> usize {
        let messages = ids.map(|id| {
            self.now_ms += 100;
            let time_s = 1000.0 + self.now_ms as f64 / 1000.0;
            usize::from(matches!(
                self.feed(&made_at(id, time_s)),
                Outcome::Complete(_)
            ))
        });
        messages.sum()
    }
}

#[test]
fn a_forged_number_does_not_silence_the_sender() {
    for ahead in [(1 << 31) - 2, 1 << 31, 1001, u32::MAX - 1000] {
        let mut bench = Bench::new();
        assert_eq!(bench.accepted(1..=10), 10);
        for time_s in [0.0, 1001.0, 1e12] {
            let forged = made_at(10_u32.wrapping_add(ahead), time_s);
            assert_eq!(bench.feed(&forged), Outcome::Dropped(Drop::Old), "{ahead}");
        }
        assert_eq!(bench.accepted(11..=110), 100, "{ahead}");
    }
    // A number that is a little ahead is accepted. The sender is back after 2 s at the latest.
    let mut bench = Bench::new();
    assert_eq!(bench.accepted(1..=10), 10);
    bench.feed(&made_at(1010, 1e12));
    assert!(bench.accepted(11..=110) >= 80);
}

#[test]
fn a_sender_that_restarts_without_a_pause_loses_one_message() {
    let mut bench = Bench::new();
    assert_eq!(bench.accepted(5_000..=5_010), 11);
    assert_eq!(bench.accepted(1..=100), 99);
    // What the network has kept from before the restart is old.
    let before = made_at(5_011, 1001.2);
    assert_eq!(bench.feed(&before), Outcome::Dropped(Drop::Old));
    let before = made_at(5_012, 1001.3);
    assert_eq!(bench.feed(&before), Outcome::Dropped(Drop::Old));
    assert_eq!(bench.accepted(101..=200), 100);
}

#[test]
fn sources_and_names_do_not_mix() {
    let mut bench = Bench::new();
    let sent = datagrams(1, 2500);
    let other = IpAddr::from([127, 0, 0, 2]);
    let named = split(Format::default(), "Chassis", 1, 0.0, content(2500)).unwrap();
    bench.feed(&sent[0]);
    bench.feed(&named[0]);
    bench.from(other, &sent[1]);
    assert_eq!(bench.feed(&sent[1]), Outcome::Incomplete);
    assert!(matches!(bench.feed(&sent[2]), Outcome::Complete(_)));
    assert_eq!(bench.reassembly.open.len(), 2);
}

#[test]
fn contradicting_sizes_are_dropped() {
    let mut bench = Bench::new();
    bench.feed(&datagrams(1, 2500)[0]);
    let longer = &datagrams(1, 2600)[1];
    assert_eq!(bench.feed(longer), Outcome::Dropped(Drop::Contradiction));
    assert_eq!(bench.feed_all(&datagrams(1, 2500)[1..]), [content(2500)]);
}

#[test]
fn eight_open_messages_per_source() {
    let mut bench = Bench::new();
    for id in 1..=9 {
        bench.feed(&datagrams(id, 2500)[0]);
    }
    assert_eq!(bench.reassembly.open.len(), MAX_OPEN_PER_SOURCE);
    assert_eq!(bench.reassembly.abandoned(), 1);
    let oldest = &bench.reassembly.open[0].message;
    assert_eq!(oldest.message_id, 2);
}

#[test]
fn memory_of_all_sources_is_bounded() {
    let mut bench = Bench::new();
    let mut full = 0;
    for host in 1..=4 {
        let source = IpAddr::from([10, 0, 0, host]);
        for id in 1..=8 {
            let message = vec![0; 1 << 20];
            let frame = Frame {
                name: "PointCloud",
                message_id: id,
                message_size: message.len(),
                frames: 1024,
                position: 0,
                index: 0,
                time_s: 0.0,
                payload: &message[..1024],
            };
            let outcome = bench.from(source, &frame.encode(Layout::Current));
            full += u32::from(outcome == Outcome::Dropped(Drop::Full));
            assert!(bench.reassembly.used() <= MAX_OPEN_TOTAL);
        }
    }
    assert!(full >= 16, "{full}");
}

#[test]
fn remembered_senders_are_bounded() {
    let mut bench = Bench::new();
    for i in 0..2 * MAX_REMEMBERED {
        let name = format!("Name{i}");
        let sent = split(Format::default(), &name, 1, 0.0, vec![1]).unwrap();
        assert_eq!(bench.feed_all(&sent).len(), 1);
        assert!(bench.reassembly.published.len() <= MAX_REMEMBERED);
    }
}

#[test]
fn old_times_are_dropped_only_if_configured() {
    let of = |time_s| split(Format::default(), "Chassis", 0, time_s, vec![1]).unwrap();
    for (time_s, accepted) in [
        (1000.0, true),
        (999.5, true),
        (998.9, false),
        (1001.1, false),
        (f64::NAN, false),
        (f64::INFINITY, false),
    ] {
        let mut strict = Bench::with(Reassembly::new(Some(Duration::from_secs(1))));
        assert_eq!(
            strict.feed_all(&of(time_s)).len() == 1,
            accepted,
            "{time_s}"
        );
        assert_eq!(Bench::new().feed_all(&of(time_s)).len(), 1);
    }
}

proptest! {
    /// Any piece size, any order, with duplicates: the message is complete once, and the same.
    #[test]
    fn shuffled_frames(
        size in 1..6000_usize,
        piece in 64..1500_usize,
        seed in any::<u64>(),
        id in any::<u32>(),
    ) {
        let message = content(size);
        let pieces: Vec<_> = message.chunks(piece).enumerate().collect();
        let mut sent: Vec<_> = pieces.iter().map(|&(index, payload)| {
            let frame = Frame {
                name: "PointCloud",
                message_id: id,
                message_size: size,
                frames: pieces.len(),
                position: index * piece,
                index,
                time_s: 0.0,
                payload,
            };
            frame.encode(Layout::Current)
        }).collect();
        sent.extend_from_within(..sent.len() / 2);
        let mut state = seed;
        for i in (1..sent.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            sent.swap(i, (state >> 33) as usize % (i + 1));
        }
        let found = Bench::new().feed_all(&sent);
        prop_assert!(!found.is_empty());
        prop_assert!(id == 0 || found.len() == 1);
        prop_assert_eq!(&found[0], &message);
    }
}
