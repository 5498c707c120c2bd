//! Feeds for recorders.

use amber_proto::feed::{Direction, Record, What};

use super::*;
use crate::feeds::FeedKey;

const FEED: FeedKey = FeedKey(0);

impl World {
    fn open_feed(&mut self, devices: &[&str]) {
        let devices = devices.iter().map(|name| name.parse().unwrap()).collect();
        self.core.open_feed(self.now, FEED, devices);
    }

    /// The records so far, as text without times: frames as `> DEVICE [CLIENTS] DROPPED: HEX`.
    fn fed(&mut self) -> Vec<String> {
        let feed = self.core.feed_mut(self.now, FEED).unwrap();
        let bytes = feed.pending().to_vec();
        self.core.feeds_mut().wrote(self.now, FEED, bytes.len());
        let (mut rest, mut shown) = (&bytes[..], Vec::new());
        while let Some((record, length)) = Record::parse(rest).unwrap() {
            rest = &rest[length..];
            shown.push(match record.what {
                What::Start(_) => "start".to_owned(),
                What::Peer(id, address) => format!("peer {id} {address}"),
                What::PeerGone(id) => format!("gone {id}"),
                What::Frame(frame) => {
                    let arrow = match frame.direction {
                        Direction::ToDriver => '>',
                        Direction::FromDriver => '<',
                    };
                    let clients: Vec<_> = frame.clients().map(|id| id.0).collect();
                    let (device, dropped) = (frame.device, frame.dropped);
                    format!(
                        "{arrow} {device} {clients:?} {dropped}: {:?}",
                        frame.message
                    )
                }
                What::Event(event) => {
                    let event = mediator::Event::decode(event).unwrap();
                    format!("event {:?}", event.kind())
                }
                What::Dropped(dropped) => {
                    let device = dropped.device.map(|device| device.to_string());
                    let device = device.unwrap_or_default();
                    format!("dropped {device} {} {}", dropped.reason, dropped.count)
                }
                What::Gap(gap) => format!("gap {} {}", gap.messages, gap.bytes),
                What::End => "end".to_owned(),
                What::Unknown(kind) => panic!("kind {kind}"),
            });
        }
        assert!(rest.is_empty());
        shown
    }

    fn driver_says(&mut self, key: DriverKey, header: &[u8], message: &[u8]) {
        let frame = Frame { header, message };
        self.core.driver_frame(self.now, key, frame);
        self.settle();
    }
}

#[test]
fn a_feed_has_every_frame_once_in_order() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.open_feed(&[]);
    let first = world.fed();
    assert_eq!(first[0], "start");
    // Two drivers, each with its id.
    assert_eq!(first.len(), 3, "{first:?}");
    world.send(local(2), dummy(), b"ask");
    let (_, header, _) = world.drivers_got.last().unwrap().clone();
    let id = *header.last().unwrap();
    world.driver_says(DUMMY, &header, b"answer");
    // A driver asks another driver: recorded once each way, with the id of the asker.
    world.driver_says(DUMMY, &[0x08, 77, 0x10, 3], b"other");
    let (_, header, _) = world.drivers_got.last().unwrap().clone();
    let driver = *header.last().unwrap();
    world.driver_says(OTHER, &header, b"yes");
    // For the mediator itself: not recorded.
    world.driver_says(DUMMY, b"", &plain(MsgType::Pong));
    world.send(local(2), Device::MEDIATOR, &plain(MsgType::Ping));
    assert_eq!(
        world.fed(),
        [
            format!("peer {id} 127.0.0.1:2"),
            format!("> dummy:0 [{id}] : {:?}", b"ask"),
            format!("< dummy:0 [{id}] : {:?}", b"answer"),
            format!("> 77:3 [{driver}] : {:?}", b"other"),
            format!("< 77:3 [{driver}] : {:?}", b"yes"),
        ]
    );
    // A client that leaves: its drivers are told.
    world.send(local(2), Device::MEDIATOR, &plain(MsgType::ClientDied));
    let died = plain(MsgType::ClientDied);
    let left = world.fed();
    assert!(
        left.contains(&format!("> dummy:0 [{id}] : {died:?}")),
        "{left:?}"
    );
    assert!(left.contains(&format!("gone {id}")), "{left:?}");
    assert!(left.contains(&"event ClientGone".to_owned()), "{left:?}");
}

#[test]
fn dropped_frames_are_recorded_with_the_reason() {
    let mut world = World::new(&["5:0=x"]);
    world.open_feed(&[]);
    world.fed();
    world.send(local(2), "4:9".parse().unwrap(), b"nobody");
    let down = |world: &mut World| {
        world.core.driver_event(world.now, DUMMY, Event::Stop);
        world.settle();
    };
    down(&mut world);
    world.send(local(2), dummy(), b"late");
    world.driver_says(DUMMY, &[0x1a, 1, 9], b"late, too");
    world.now += crate::limits::DROPS_INTERVAL;
    let fed = world.fed();
    for expected in [
        format!("> hokuyo:9 [] unknown_device: {:?}", b"nobody"),
        format!("> dummy:0 [] driver_not_running: {:?}", b"late"),
        format!("< dummy:0 [9] driver_stopping: {:?}", b"late, too"),
        "dropped  unknown_device 1".to_owned(),
        "dropped  driver_not_running 1".to_owned(),
        "dropped  driver_stopping 1".to_owned(),
    ] {
        assert!(fed.contains(&expected), "{expected} in {fed:?}");
    }
    assert!(world.fed().is_empty());
}

#[test]
fn drops_of_a_full_queue_name_the_driver() {
    let mut config = config(&["5:0=x", "77:3=y"]);
    config.limits.queue.frames = 2;
    let mut world = World::with_config(&config);
    world.open_feed(&[]);
    world.stalled.insert(DUMMY);
    for _ in 0..10 {
        world.send(local(2), dummy(), b"ask");
    }
    world.now += crate::limits::DROPS_INTERVAL;
    let fed = world.fed();
    let dropped = world.core.router.totals().dropped(DropReason::QueueFull);
    assert!(dropped > 0);
    let expected = format!("dropped dummy:0 driver_queue_full {dropped}");
    assert!(fed.contains(&expected), "{fed:?}");
    // Once, although it is also in the totals.
    let full = fed.iter().filter(|line| line.contains("queue_full"));
    assert_eq!(full.count(), 1, "{fed:?}");
    let frames = fed.iter().filter(|line| line.starts_with('>')).count();
    assert_eq!(frames, 10);
}

#[test]
fn a_slow_reader_gets_a_gap_that_says_what_is_missing() {
    let mut world = World::new(&["5:0=x"]);
    world.open_feed(&["dummy"]);
    world.fed();
    let message = vec![1; 30_000];
    let mut sent = 0_u64;
    while (sent + 1) * 30_000 <= 2 * limits::FEED_BYTES as u64 {
        world.send(local(2), dummy(), &message);
        sent += 1;
    }
    let feed = world.core.feed_mut(world.now, FEED).unwrap();
    let pending = feed.pending().len();
    assert!(
        pending <= limits::FEED_BYTES + limits::FEED_EXTRA_BYTES,
        "{pending}"
    );
    // While less than half is free, nothing is added: no frame between two gaps.
    world.core.feeds_mut().wrote(world.now, FEED, 0);
    world.now += Duration::from_secs(1);
    world.send(local(2), dummy(), &message);
    sent += 1;
    let kept = world
        .fed()
        .iter()
        .filter(|line| line.starts_with('>'))
        .count() as u64;
    let missed = sent - kept;
    assert!(kept > 0 && missed > 0);
    // The gap is told without a further frame.
    assert_eq!(world.fed(), [format!("gap {missed} {}", missed * 30_000)]);
    world.send(local(2), dummy(), b"next");
    let next = world.fed();
    assert!(next[0].starts_with("> dummy:0"), "{next:?}");
    assert_eq!(
        world.core.feeds_mut().close(FEED),
        (missed, missed * 30_000)
    );
    assert!(!world.core.is_recorded());
}

#[test]
fn the_end_comes_after_an_open_gap() {
    let mut world = World::new(&["5:0=x"]);
    world.open_feed(&[]);
    let message = vec![1; 30_000];
    let sent = 1 + 2 * limits::FEED_BYTES / message.len();
    for _ in 0..sent {
        world.send(local(2), dummy(), &message);
    }
    world.core.end_feed(world.now, FEED);
    world.send(local(2), dummy(), b"too late");
    let fed = world.fed();
    let frames = fed.iter().filter(|line| line.starts_with('>')).count();
    let missed = sent - frames;
    let last = &fed[fed.len() - 2..];
    assert_eq!(
        last,
        [format!("gap {missed} {}", missed * 30_000), "end".into()]
    );
    assert!(world.fed().is_empty());
}

#[test]
fn a_feed_of_one_device_has_only_its_frames() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.open_feed(&["77:3"]);
    world.fed();
    world.send(local(2), dummy(), b"not this");
    world.send(local(2), "77:3".parse().unwrap(), b"this");
    let fed = world.fed();
    let frames: Vec<_> = fed.iter().filter(|line| line.starts_with('>')).collect();
    assert_eq!(frames.len(), 1, "{fed:?}");
    assert!(frames[0].starts_with("> 77:3"), "{fed:?}");
}

#[test]
fn only_local_clients_get_a_feed() {
    let mut world = World::new(&["5:0=x"]);
    let wanted = |count: usize| {
        let device = |id| control::wire_device(Device::new(DeviceType(5), id));
        let devices = (0..count as i32).map(device).collect();
        request::What::OpenFeed(mediator::OpenFeed { devices })
    };
    for (from, count, why) in [
        (remote(), 0, refusal::Reason::NotAllowed),
        (
            local(1),
            limits::FEED_DEVICES + 1,
            refusal::Reason::BadRequest,
        ),
    ] {
        let reply::What::Refused(refused) = world.ask(from, wanted(count)) else {
            panic!("refused")
        };
        assert_eq!(refused.reason(), why);
    }
    assert!(world.core.poll_task().is_none());
}

#[test]
fn times_follow_the_wall_clock_and_never_go_back() {
    let mut world = World::new(&["5:0=x"]);
    world.open_feed(&[]);
    world.fed();
    world.now += Duration::from_millis(5);
    world.send(local(2), dummy(), b"one");
    let earlier = world.now - Duration::from_millis(3);
    world.core.feeds_mut().set_time(earlier);
    world.send(local(2), dummy(), b"two");
    let bytes = world.core.feed_mut(world.now, FEED).unwrap().pending();
    let (mut rest, mut times) = (bytes, Vec::new());
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        times.push(record.time_ns);
        rest = &rest[length..];
    }
    assert!(times.iter().all(|time| *time == 5_000_000), "{times:?}");
}
