//! A harness with its own clock: a core, scripted processes, clients that note
//! every datagram.

mod unreachable;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use amber_proto::mediator::{DriverState, Reply, Request, refusal, reply, request, traced};
use amber_proto::{DeviceType, HeaderBytes, dummy};

use super::*;
use crate::counters::Drop;

mod health;

struct World {
    core: Core,
    now: Instant,
    /// Processes that run: key and pid.
    running: BTreeMap<DriverKey, u32>,
    pids: u32,
    /// Starts fail from now on.
    spawn_fails: bool,
    /// Drivers answer PINGs.
    drivers_answer: bool,
    actions: Vec<(DriverKey, Action)>,
    /// What each client got.
    got: HashMap<SocketAddr, Vec<Vec<u8>>>,
    /// What drivers got, PINGs of the mediator left out: header, message.
    drivers_got: Vec<(DriverKey, Vec<u8>, Vec<u8>)>,
    driver_pings: usize,
}

const DUMMY: DriverKey = DriverKey(0);
const OTHER: DriverKey = DriverKey(1);

fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn remote() -> SocketAddr {
    ([192, 168, 1, 7], 4000).into()
}

fn config(drivers: &[&str]) -> Config {
    let mut config = Config::default();
    for driver in drivers {
        config.add_driver(driver).unwrap();
    }
    config
}

fn frame(device: Option<Device>, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = HeaderBytes::new(device, None);
    Frame {
        header: header.as_slice(),
        message,
    }
    .encode(&mut bytes)
    .unwrap();
    bytes
}

fn plain(kind: MsgType) -> Vec<u8> {
    mediator::DriverMsg::of_kind(kind).encode_to_vec()
}

fn exit(code: i32) -> Exit {
    Exit {
        text: format!("exited with code {code}"),
        success: code == 0,
    }
}

impl World {
    fn new(drivers: &[&str]) -> Self {
        let now = Instant::now();
        let core = Core::new(now, &config(drivers), 1, || SystemTime::UNIX_EPOCH);
        let mut world = Self {
            core,
            now,
            running: BTreeMap::new(),
            pids: 100,
            spawn_fails: false,
            drivers_answer: true,
            actions: Vec::new(),
            got: HashMap::new(),
            drivers_got: Vec::new(),
            driver_pings: 0,
        };
        world.core.start(now, vec!["127.0.0.1:1".into()]);
        world.settle();
        world
    }

    fn settle(&mut self) {
        loop {
            if let Some((key, action)) = self.core.poll_action() {
                if action == Action::Spawn {
                    assert!(!self.running.contains_key(&key), "two processes of {key:?}");
                    if self.spawn_fails {
                        let (error, hint) = ("no such file".into(), "check the path".into());
                        self.core.spawn_failed(self.now, key, error, hint);
                    } else {
                        assert!(self.core.driver_config(key).is_some());
                        self.pids += 1;
                        self.running.insert(key, self.pids);
                        let pid = self.pids;
                        self.core
                            .driver_event(self.now, key, Event::Spawned { pid });
                    }
                }
                self.actions.push((key, action));
                continue;
            }
            if let Some(key) = self.core.router.poll_dirty() {
                self.read_pipe(key);
                continue;
            }
            break;
        }
        self.core.send_traced(self.now);
        for (to, bytes) in self.core.outbox.datagrams() {
            self.got.entry(to.address).or_default().push(bytes.to_vec());
        }
        self.core.outbox.clear();
    }

    fn read_pipe(&mut self, key: DriverKey) {
        let Some(queue) = self.core.router.queue_mut(key) else {
            return;
        };
        let bytes = queue.chunk().to_vec();
        queue.wrote(bytes.len());
        assert!(
            bytes.is_empty() || self.running.contains_key(&key),
            "bytes for nobody"
        );
        let mut rest = &bytes[..];
        while let Some(frame) = Frame::from_stream(rest) {
            rest = &rest[frame.wire_len()..];
            let ping = mediator::DriverMsg::decode(frame.message)
                .is_ok_and(|message| message.kind() == Some(MsgType::Ping));
            if frame.header.is_empty() && ping {
                self.driver_pings += 1;
                if self.drivers_answer {
                    let pong = plain(MsgType::Pong);
                    let frame = Frame {
                        header: b"",
                        message: &pong,
                    };
                    self.core.driver_frame(self.now, key, frame);
                }
            } else {
                self.drivers_got
                    .push((key, frame.header.to_vec(), frame.message.to_vec()));
            }
        }
        assert!(rest.is_empty());
    }

    /// A client sends a message to a device.
    fn send(&mut self, from: SocketAddr, to: Device, message: &[u8]) {
        let from = ClientAddress {
            socket: 0,
            address: from,
        };
        self.core
            .datagram(self.now, from, &frame(Some(to), message));
        self.settle();
    }

    fn announce(&mut self, from: SocketAddr) {
        self.send(from, Device::MEDIATOR, &plain(MsgType::Ping));
        assert_eq!(
            self.take(from),
            [frame(Some(Device::MEDIATOR), &plain(MsgType::Pong))]
        );
    }

    /// Asks the mediator and returns its answer.
    fn ask(&mut self, from: SocketAddr, what: request::What) -> reply::What {
        let mut message = mediator::DriverMsg::data();
        message.set_syn(Some(SynNum(77)));
        message.request = Some(Request { what: Some(what) });
        // PINGs of the mediator.
        self.take(from);
        self.send(from, Device::MEDIATOR, &message.encode_to_vec());
        let datagrams = self.take(from);
        assert_eq!(datagrams.len(), 1);
        assert!(datagrams[0].len() <= amber_proto::limits::OLD_CLIENT_DATAGRAM);
        let answer = decode(&datagrams[0]);
        assert_eq!(answer.ack(), Some(SynNum(77)));
        let Some(Reply { what: Some(what) }) = answer.reply else {
            panic!("no reply")
        };
        what
    }

    fn describe(&mut self, device: Device) -> mediator::Driver {
        let device = control::wire_device(device);
        match self.ask(local(9), request::What::DescribeDriver(device)) {
            reply::What::Driver(driver) => driver,
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, client: SocketAddr) -> Vec<Vec<u8>> {
        self.got.remove(&client).unwrap_or_default()
    }

    /// A driver speaks of itself, or of one of its devices.
    fn says(&mut self, key: DriverKey, about: Option<Device>, health: mediator::Health) {
        let mut message = mediator::DriverMsg::data();
        message.health = Some(health);
        let (header, message) = (HeaderBytes::new(about, None), message.encode_to_vec());
        let (header, message) = (header.as_slice(), &message[..]);
        assert!((self.core).driver_frame(self.now, key, Frame { header, message }));
        self.settle();
    }

    /// The events that a listener got.
    fn events(&mut self, client: SocketAddr) -> Vec<Kind> {
        let messages = self.take(client);
        messages
            .iter()
            .filter_map(|bytes| decode(bytes).event)
            .map(|e| e.kind())
            .collect()
    }

    fn exits(&mut self, key: DriverKey, code: i32) {
        assert!(self.running.remove(&key).is_some());
        self.core.exited(self.now, key, exit(code));
        self.settle();
    }

    /// Lets time pass, with all timeouts on the way.
    fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.core.next_timeout().filter(|due| *due <= end) {
            assert!(due >= self.now || self.core.next_timeout().is_some());
            self.now = self.now.max(due);
            self.core.timeout(self.now);
            self.settle();
        }
        self.now = end;
    }
}

fn decode(datagram: &[u8]) -> mediator::DriverMsg {
    let frame = Frame::from_datagram(datagram).unwrap();
    mediator::DriverMsg::decode(frame.message).unwrap()
}

fn dummy() -> Device {
    Device::new(DeviceType::DUMMY, 0)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_ping_of_the_mediator_is_answered_with_its_number_and_device_0() {
    let mut world = World::new(&[]);
    // The recorded case "device type 0 id 0".
    let ping = [0, 4, 8, 0, 16, 0, 0, 4, 16, 2, 24, 5];
    let from = ClientAddress {
        socket: 0,
        address: local(1),
    };
    world.core.datagram(world.now, from, &ping);
    world.settle();
    assert_eq!(
        world.take(local(1)),
        [[0, 4, 8, 0, 16, 0, 0, 4, 16, 3, 32, 5]]
    );
}

#[test]
fn what_the_mediator_cannot_read_is_counted_and_not_answered() {
    let mut world = World::new(&[]);
    for message in [&b"ECHO"[..], b"", b"\x10\x63", b"\x18\x05"] {
        world.send(local(1), Device::MEDIATOR, message);
    }
    // The recorded cases "header without device" and "header with type only".
    let from = ClientAddress {
        socket: 0,
        address: local(1),
    };
    for datagram in [&b"\0\0\0\x04ECHO"[..], b"\0\x02\x08\x4d\0\x04ECHO"] {
        world.core.datagram(world.now, from, datagram);
    }
    world.settle();
    assert!(world.take(local(1)).is_empty());
    assert_eq!(world.core.router.counters.dropped(Drop::MediatorMessage), 6);
    assert!(world.core.router.clients.is_empty());
}

#[test]
fn a_client_that_never_spoke_to_the_mediator_sees_only_what_drivers_send() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    let old = local(1);
    let request = b"\x10\x01\x18\x05\x90\x03\x01";
    world.send(old, dummy(), request);
    world.send(old, "123:4".parse().unwrap(), request);
    world.exits(DUMMY, 1);
    world.send(old, dummy(), request);
    world.advance(SECOND * 60);
    world.core.shut_down(world.now);
    world.settle();
    assert!(world.take(old).is_empty());
}

#[test]
fn an_announced_client_hears_of_deaths_and_of_what_is_not_there() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.send(local(1), dummy(), b"\x10\x01\x18\x05");
    world.exits(DUMMY, 1);
    assert_eq!(world.take(local(1)), [frame(Some(dummy()), b"\x10\x05")]);
    world.send(local(1), dummy(), b"\x10\x01\x18\x06");
    assert_eq!(
        world.take(local(1)),
        [frame(Some(dummy()), b"\x10\x05\x20\x06")]
    );
}

#[test]
fn events_tell_of_deaths_and_returns() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    world.exits(DUMMY, 1);
    world.advance(SECOND);
    assert_eq!(world.events(local(1)), [Kind::DeviceDown, Kind::DeviceUp]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Unsubscribe));
    world.exits(DUMMY, 1);
    assert!(world.events(local(1)).is_empty());
}

#[test]
fn listeners_that_made_room_for_others_are_forgotten() {
    let mut world = World::new(&["5:0=x"]);
    world.core.router.clients =
        crate::router::Clients::new(std::num::NonZeroUsize::new(10).unwrap());
    for port in 1..1000 {
        world.send(local(port), Device::MEDIATOR, &plain(MsgType::Subscribe));
        assert!(world.core.listeners.len() <= 2 * (10 + 1));
    }
    world.exits(DUMMY, 1);
    assert_eq!(world.events(local(999)), [Kind::DeviceDown]);
}

#[test]
fn a_driver_that_dies_too_often_is_given_up_and_brought_back_by_name() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    for _ in 0..limits::DEATHS - 1 {
        world.exits(DUMMY, 3);
        world.advance(limits::BACKOFF_MAX / 2);
        while world.running.is_empty() {
            world.advance(Duration::from_millis(10));
        }
    }
    world.exits(DUMMY, 3);
    let events = world.events(local(1));
    assert_eq!(
        events[events.len() - 2..],
        [Kind::DeviceDown, Kind::DeviceFailed]
    );
    let driver = world.describe(dummy());
    assert_eq!(driver.state(), DriverState::Failed);
    assert_eq!(
        driver.reason(),
        "died 10 times within 60 s, last: exited with code 3"
    );

    let start = mediator::ChangeDriver {
        device: control::wire_device(dummy()),
        action: mediator::change_driver::Action::Start.into(),
    };
    let done = world.ask(local(9), request::What::ChangeDriver(start));
    assert_eq!(done, reply::What::Done("dummy:0: starting".into()));
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
}

#[test]
fn text_on_stdout_is_bad_framing_with_a_hint() {
    let mut world = World::new(&["5:0=x"]);
    assert!(!world.core.driver_prefix(world.now, DUMMY, b"starting up\n"));
    world.settle();
    assert!(
        world
            .actions
            .ends_with(&[(DUMMY, Action::CloseInput), (DUMMY, Action::Terminate)])
    );
    world.exits(DUMMY, 1);
    let driver = world.describe(dummy());
    assert_eq!(driver.state(), DriverState::Backoff);
    assert!(
        driver.reason().contains("73 74 61 72 74 69 6e 67"),
        "{}",
        driver.reason()
    );
    assert!(
        driver.reason().contains("starting up"),
        "{}",
        driver.reason()
    );
    assert!(
        driver.hint().contains("stdout is the wire"),
        "{}",
        driver.hint()
    );
}

#[test]
fn a_start_failure_is_shown_with_its_hint_and_tried_again() {
    let mut world = World::new(&[]);
    world.spawn_fails = true;
    world.core.apply(world.now, &config(&["5:0=x"]));
    world.settle();
    let driver = world.describe(dummy());
    assert_eq!(driver.reason(), "could not be started: no such file");
    assert_eq!(driver.hint(), "check the path");
    world.spawn_fails = false;
    world.advance(limits::BACKOFF_MAX);
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
    assert_eq!(world.describe(dummy()).hint, None);
}

#[test]
fn a_driver_that_answers_pings_and_then_does_not_is_ended() {
    let mut world = World::new(&["5:0=x"]);
    world.advance(SECOND * 60);
    assert!(
        world
            .actions
            .iter()
            .all(|(_, action)| *action == Action::Spawn)
    );
    world.drivers_answer = false;
    world.advance(SECOND * 21);
    assert!(world.actions.contains(&(DUMMY, Action::Terminate)));
}

#[test]
fn a_driver_that_never_answers_gets_three_pings_and_is_left_alone() {
    let mut world = World::new(&[]);
    world.drivers_answer = false;
    world.core.apply(world.now, &config(&["5:0=x"]));
    world.settle();
    world.advance(SECOND * 600);
    assert_eq!(world.driver_pings, 3);
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
}

#[test]
fn a_silent_client_that_used_to_answer_is_lost_and_its_drivers_are_told() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.send(local(1), dummy(), b"drive");
    for _ in 0..5 {
        world.advance(SECOND * 2);
        assert!(!world.take(local(1)).is_empty(), "it is PINGed");
        world.send(local(1), Device::MEDIATOR, &plain(MsgType::Pong));
    }
    world.drivers_got.clear();
    world.advance(SECOND * 5);
    assert_eq!(
        world.take(local(1)).len(),
        usize::from(limits::CLIENT_PINGS)
    );
    // Drivers have ids, too: the first client has the second one.
    let died = (DUMMY, b"\x1a\x01\x02".to_vec(), plain(MsgType::ClientDied));
    assert_eq!(world.drivers_got, [died]);
    assert!(world.core.router.clients.is_empty());
}

#[test]
fn a_client_that_never_pauses_is_lost_when_it_falls_silent_too() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    for _ in 0..50 {
        world.advance(SECOND / 10);
        world.send(local(1), dummy(), b"drive");
        if !world.take(local(1)).is_empty() {
            world.send(local(1), Device::MEDIATOR, &plain(MsgType::Pong));
        }
    }
    world.drivers_got.clear();
    world.advance(SECOND * 5);
    let died = (DUMMY, b"\x1a\x01\x02".to_vec(), plain(MsgType::ClientDied));
    assert_eq!(world.drivers_got, [died]);
    assert!(world.core.router.clients.is_empty());
}

#[test]
fn a_silent_client_that_never_answers_is_kept_and_asked_three_times() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.advance(SECOND * 100);
    assert_eq!(
        world.take(local(1)).len(),
        usize::from(limits::CLIENT_PINGS)
    );
    world.send(local(1), dummy(), b"still here");
    world.advance(SECOND * 100);
    assert!(world.take(local(1)).is_empty());
    assert_eq!(world.core.router.clients.len(), 1);
}

#[test]
fn a_client_that_says_goodbye_is_forgotten_and_its_drivers_are_told_once() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.send(local(1), dummy(), b"drive");
    world.drivers_got.clear();
    for _ in 0..2 {
        world.send(local(1), Device::MEDIATOR, &plain(MsgType::ClientDied));
    }
    assert_eq!(world.drivers_got.len(), 1);
    assert_eq!(world.drivers_got[0].2, plain(MsgType::ClientDied));
    assert!(
        world.take(local(1)).is_empty(),
        "nothing is sent to one that never announced itself"
    );
}

#[test]
fn a_driver_says_of_itself_that_it_is_dead() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.send(local(1), dummy(), b"x");
    let died = plain(MsgType::DriverDied);
    world.core.driver_frame(
        world.now,
        DUMMY,
        Frame {
            header: b"",
            message: &died,
        },
    );
    world.settle();
    assert_eq!(world.take(local(1)), [frame(Some(dummy()), &died)]);
}

#[test]
fn changes_are_for_programs_on_the_same_machine() {
    let mut world = World::new(&["5:0=x"]);
    let stop = || {
        request::What::ChangeDriver(mediator::ChangeDriver {
            device: control::wire_device(dummy()),
            action: mediator::change_driver::Action::Stop.into(),
        })
    };
    for what in [stop(), request::What::Reload(mediator::Reload {})] {
        let reply::What::Refused(refusal) = world.ask(remote(), what) else {
            panic!("refused")
        };
        assert_eq!(refusal.reason(), refusal::Reason::NotAllowed);
    }
    assert!(
        world
            .actions
            .iter()
            .all(|(_, action)| *action == Action::Spawn)
    );
    let mapped: SocketAddr = "[::ffff:127.0.0.1]:99".parse().unwrap();
    assert_eq!(
        world.ask(mapped, stop()),
        reply::What::Done("dummy:0: stopping".into())
    );
    assert_eq!(world.actions.last(), Some(&(DUMMY, Action::CloseInput)));
    world.exits(DUMMY, 0);
    assert_eq!(world.describe(dummy()).state(), DriverState::Down);
    world.advance(SECOND * 60);
    assert!(world.running.is_empty(), "stopped means stopped");
}

#[test]
fn a_driver_that_is_stopped_before_it_is_started_is_down_for_its_clients() {
    let mut world = World::new(&[]);
    world.announce(local(1));
    world.core.apply(world.now, &config(&["5:0=x"]));
    // Before anybody has carried out what that calls for.
    world.core.driver_event(world.now, DUMMY, Event::Stop);
    world.settle();
    world.exits(DUMMY, 0);
    assert_eq!(world.describe(dummy()).state(), DriverState::Down);
    world.take(local(1));
    world.send(local(1), dummy(), b"\x10\x01\x18\x07");
    let answers = world.take(local(1));
    assert_eq!(decode(&answers[0]).kind(), Some(MsgType::DriverDied));
}

#[test]
fn questions_that_make_no_sense_are_refused_with_a_reason() {
    let mut world = World::new(&["5:0=x"]);
    let device = mediator::Device { r#type: 9, id: 9 };
    let reply::What::Refused(refusal) = world.ask(local(1), request::What::DescribeDriver(device))
    else {
        panic!("refused")
    };
    assert_eq!(refusal.reason(), refusal::Reason::NoSuchDevice);
    assert_eq!(refusal.message, "no driver serves collision-avoidance:9");

    let mut empty = mediator::DriverMsg::data();
    empty.set_syn(Some(SynNum(3)));
    world.send(local(1), Device::MEDIATOR, &empty.encode_to_vec());
    let answer = decode(&world.take(local(1))[0]);
    let Some(reply::What::Refused(refusal)) = answer.reply.and_then(|r| r.what) else {
        panic!("refused")
    };
    assert_eq!(refusal.reason(), refusal::Reason::BadRequest);
}

#[test]
fn answers_fit_into_a_datagram_whatever_was_configured() {
    let command = format!("5:0={}", "word ".repeat(10_000));
    let mut world = World::new(&[&command]);
    for _ in 0..limits::LAST_WORDS {
        world
            .core
            .driver_said(world.now, DUMMY, &"x".repeat(limits::STDERR_LINE_BYTES));
    }
    assert!(world.describe(dummy()).command.len() > 100);

    let ticket = Ticket {
        to: Sender::Client(ClientAddress {
            socket: 0,
            address: local(1),
        }),
        syn: SynNum(1),
    };
    let long = || "x".repeat(40_000);
    world.core.answer(ticket, Ok(long()));
    world.core.answer(ticket, Err((long(), Some(long()))));
    world.settle();
    assert_eq!(world.take(local(1)).len(), 2);
}

#[test]
fn long_lists_come_in_pages_that_fit() {
    let mut config = Config::default();
    for i in 0..300 {
        config.add_driver(&format!("77:{i}=x")).unwrap();
    }
    let mut world = World::new(&[]);
    world.spawn_fails = true;
    world.core.apply(world.now, &config);
    world.settle();
    let mut seen = Vec::new();
    loop {
        let page = mediator::ListDrivers {
            skip: Some(seen.len() as u32),
        };
        let reply::What::Drivers(list) = world.ask(local(1), request::What::ListDrivers(page))
        else {
            panic!("drivers")
        };
        assert_eq!(list.total, 300);
        if list.drivers.is_empty() {
            break;
        }
        seen.extend(list.drivers.iter().map(|driver| driver.devices[0].id));
    }
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
}

#[test]
fn statistics_name_every_counter() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), dummy(), b"x");
    let what = request::What::GetStatistics(mediator::GetStatistics {});
    let reply::What::Statistics(statistics) = world.ask(local(2), what) else {
        panic!()
    };
    let counter = |name: &str| {
        statistics
            .counters
            .iter()
            .find(|c| c.name == name)
            .map(|counter| counter.value)
    };
    assert_eq!(counter("datagrams_received"), Some(2));
    assert_eq!(counter("driver_starts"), Some(1));
    assert_eq!(statistics.dropped.len(), Drop::ALL.len());
    assert_eq!((statistics.clients(), statistics.drivers()), (2, 1));
}

#[test]
fn the_last_words_are_kept_and_floods_are_counted() {
    let mut world = World::new(&["5:0=x"]);
    for i in 0..1000 {
        world
            .core
            .driver_said(world.now, DUMMY, &format!("line {i} {}", "ä".repeat(1000)));
    }
    let driver = world.describe(dummy());
    assert_eq!(driver.last_words.len(), limits::LAST_WORDS);
    assert!(driver.last_words[0].starts_with("line 980 "));
    let counters = driver.counters.unwrap();
    assert_eq!(counters.stderr_lines(), 1000);
    assert_eq!(
        counters.stderr_dropped(),
        1000 - u64::from(limits::STDERR_LINES_PER_SECOND)
    );
}

#[test]
fn a_reload_leaves_unchanged_drivers_alone() {
    let mut world = World::new(&["5:0=same", "77:3=old", "6:0=goes"]);
    let before = world.running.clone();
    let text = world
        .core
        .apply(world.now, &config(&["5:0=same", "77:3=new", "8:0=comes"]));
    assert_eq!(
        text,
        "configuration read; drivers unchanged: 1, restarted: 1, added: 1, removed: 1"
    );
    world.settle();
    // The old ones are still ending.
    let text = world
        .core
        .apply(world.now, &config(&["5:0=same", "77:3=new", "8:0=comes"]));
    assert_eq!(
        text,
        "configuration read; drivers unchanged: 3, restarted: 0, added: 0, removed: 0"
    );
    world.settle();
    world.exits(OTHER, 0);
    world.exits(DriverKey(2), 0);
    world.settle();
    assert_eq!(world.running.get(&DUMMY), before.get(&DUMMY));
    assert_ne!(world.running.get(&OTHER), before.get(&OTHER));
    assert_eq!(world.core.driver_config(OTHER).unwrap().command, ["new"]);
    assert_eq!(world.running.len(), 3);
    let refused = mediator::Device { r#type: 6, id: 0 };
    assert!(matches!(
        world.ask(local(1), request::What::DescribeDriver(refused)),
        reply::What::Refused(_)
    ));
}

#[test]
fn a_driver_that_takes_devices_over_waits_for_the_end_of_the_old_one() {
    let mut world = World::new(&["5:0=x"]);
    world.core.apply(world.now, &config(&["5:0,5:1=x"]));
    world.settle();
    assert_eq!(
        world.running.keys().collect::<Vec<_>>(),
        [&DUMMY],
        "the serial port is taken"
    );
    world.exits(DUMMY, 0);
    assert_eq!(world.running.keys().collect::<Vec<_>>(), [&OTHER]);
    assert_eq!(world.describe(dummy()).devices.len(), 2);
}

#[test]
fn a_driver_that_somebody_has_stopped_stays_so_when_its_configuration_changes() {
    let mut world = World::new(&["5:0=old"]);
    world.core.driver_event(world.now, DUMMY, Event::Stop);
    world.settle();
    world.exits(DUMMY, 0);
    world.core.apply(world.now, &config(&["5:0=new"]));
    world.settle();
    assert!(world.running.is_empty());
    world.core.driver_event(world.now, DUMMY, Event::Start);
    world.settle();
    assert_eq!(world.core.driver_config(DUMMY).unwrap().command, ["new"]);
}

#[test]
fn a_driver_that_speaks_of_itself_speaks_to_the_mediator() {
    let mut world = World::new(&["5:0,5:1=x"]);
    world.drivers_got.clear();
    let own = HeaderBytes::new(Some(dummy()), None);
    let pong = plain(MsgType::Pong);
    let frame = Frame {
        header: own.as_slice(),
        message: &pong,
    };
    world.core.driver_frame(world.now, DUMMY, frame);
    world.settle();
    assert!(world.drivers_got.is_empty(), "it is no request to itself");
    assert_eq!(world.core.router.counters.dropped(Drop::MediatorMessage), 0);
}

#[test]
fn a_shut_down_ends_all_drivers_and_starts_none() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.exits(OTHER, 1);
    world.core.shut_down(world.now);
    world.settle();
    assert!(!world.core.is_finished());
    let reload = request::What::Reload(mediator::Reload {});
    assert!(matches!(
        world.ask(local(1), reload),
        reply::What::Refused(_)
    ));
    assert_eq!(world.core.poll_order(), None);
    world.advance(SECOND * 3);
    let ladder: Vec<_> = world
        .actions
        .iter()
        .filter(|(key, _)| *key == DUMMY)
        .map(|(_, a)| a.clone())
        .collect();
    assert_eq!(
        ladder[1..4],
        [Action::CloseInput, Action::Terminate, Action::Kill]
    );
    world.exits(DUMMY, 0);
    assert!(world.core.is_finished());
    world.advance(SECOND * 60);
    assert!(world.running.is_empty());
}

#[test]
fn random_schedules_keep_the_invariants() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(&["5:0=x", "77:3=y"]);
        let clients: Vec<SocketAddr> = (1..6).map(local).collect();
        // Half of them never speak to the mediator itself.
        let (new, old) = clients.split_at(3);
        for step in 0..400 {
            let client = *random.choice(&clients).unwrap();
            let key = *random.choice(&[DUMMY, OTHER]).unwrap();
            let device = *random.choice(&["5:0", "77:3", "9:9"]).unwrap();
            match random.u8(0..10) {
                0..4 => world.send(client, device.parse().unwrap(), b"\x10\x01\x18\x07"),
                4 => world.send(
                    *random.choice(new).unwrap(),
                    Device::MEDIATOR,
                    &plain(MsgType::Ping),
                ),
                5 if world.running.contains_key(&key) => world.exits(key, random.i32(0..2)),
                6 => world.advance(Duration::from_millis(random.u64(0..4000))),
                7 => {
                    let junk: Vec<u8> = (0..random.usize(0..20)).map(|_| random.u8(..)).collect();
                    let from = ClientAddress {
                        socket: 0,
                        address: client,
                    };
                    world.core.datagram(world.now, from, &junk);
                    world.settle();
                }
                8 if world.running.contains_key(&key) => {
                    let id = random.i32(1..12);
                    let header = HeaderBytes::new(None, Some(ClientId(id)));
                    let message = dummy::DriverMsg::data().encode_to_vec();
                    let frame = Frame {
                        header: header.as_slice(),
                        message: &message,
                    };
                    world.core.driver_frame(world.now, key, frame);
                    world.settle();
                }
                _ => world.drivers_answer = random.bool(),
            }
            assert!(world.core.router.clients.len() <= clients.len());
            for address in old {
                for datagram in world.take(*address) {
                    let what = Frame::from_datagram(&datagram).unwrap();
                    let from_driver = dummy::DriverMsg::data().encode_to_vec();
                    assert_eq!(what.message, from_driver, "seed {seed}, step {step}");
                }
            }
            // Processes that were told to end do end.
            for (key, action) in std::mem::take(&mut world.actions) {
                let ended = matches!(action, Action::Terminate | Action::Kill);
                if ended && world.running.contains_key(&key) {
                    world.exits(key, 1);
                }
            }
        }
        world.core.shut_down(world.now);
        world.settle();
        world.advance(SECOND * 5);
        for key in world.running.keys().copied().collect::<Vec<_>>() {
            world.exits(key, 0);
        }
        assert!(world.core.is_finished(), "seed {seed}");
    }
}

/// What a tracer was shown: direction, header, message, lost.
fn traced(datagrams: &[Vec<u8>]) -> Vec<(traced::Direction, Vec<u8>, Vec<u8>, u64)> {
    let traced = datagrams.iter().filter_map(|bytes| decode(bytes).traced);
    traced
        .map(|t| {
            (
                t.direction(),
                t.header.to_vec(),
                t.message.to_vec(),
                t.lost(),
            )
        })
        .collect()
}

fn trace(device: Device, off: bool) -> request::What {
    request::What::Trace(mediator::Trace {
        device: control::wire_device(device),
        off: Some(off),
    })
}

#[test]
fn a_tracer_sees_the_frames_of_its_device_both_ways() {
    use traced::Direction::{FromDriver, ToDriver};
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    assert!(matches!(
        world.ask(local(1), trace(dummy(), false)),
        reply::What::Done(_)
    ));
    world.send(local(2), dummy(), b"\x10\x02\x18\x07");
    world.send(local(2), "77:3".parse().unwrap(), b"not this");
    let (_, header, _) = world.drivers_got.last().unwrap().clone();
    let asked = world.take(local(2));
    assert!(asked.is_empty());
    let pong = Frame {
        header: &header,
        message: b"\x10\x03\x20\x07",
    };
    world.core.driver_frame(world.now, DUMMY, pong);
    world.settle();
    assert_eq!(
        traced(&world.take(local(1))),
        [
            (ToDriver, header.clone(), b"\x10\x02\x18\x07".to_vec(), 0),
            (FromDriver, header, b"\x10\x03\x20\x07".to_vec(), 0),
        ]
    );
    world.ask(local(1), trace(dummy(), true));
    world.send(local(2), dummy(), b"\x10\x02");
    assert_eq!(traced(&world.take(local(1))), []);
    assert!(world.core.router.tap.is_empty());
}

#[test]
fn frames_are_shown_on_the_machine_itself_only() {
    let mut world = World::new(&["5:0=x"]);
    let reply::What::Refused(refused) = world.ask(remote(), trace(dummy(), false)) else {
        panic!("refused")
    };
    assert_eq!(refused.reason(), refusal::Reason::NotAllowed);
    let reply::What::Refused(refused) = world.ask(local(1), trace("4:9".parse().unwrap(), false))
    else {
        panic!("refused")
    };
    assert_eq!(refused.reason(), refusal::Reason::NoSuchDevice);
}

#[test]
fn a_tracer_that_has_left_costs_nothing_and_too_many_frames_are_counted() {
    let mut world = World::new(&["5:0=x"]);
    world.ask(local(1), trace(dummy(), false));
    let many = limits::TRACE_FRAMES_PER_SECOND + 10;
    for _ in 0..many {
        world.send(local(2), dummy(), b"x");
    }
    assert_eq!(traced(&world.take(local(1))).len() as u32, many - 10);
    assert_eq!(world.core.router.counters.dropped(Drop::TraceFrames), 10);
    // The next second tells.
    world.now += SECOND;
    world.send(local(2), dummy(), &[7; 20_000]);
    let shown = traced(&world.take(local(1)));
    assert_eq!(
        (shown.len(), shown[0].2.len(), shown[0].3),
        (1, limits::TRACE_BYTES, 10)
    );
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::ClientDied));
    world.send(local(2), dummy(), b"x");
    world.send(local(2), dummy(), b"x");
    assert!(world.core.tracers.is_empty() && world.core.router.tap.is_empty());
}

#[test]
fn a_turn_with_too_many_frames_tells_how_many_were_lost() {
    let mut world = World::new(&["5:0=x"]);
    world.ask(local(1), trace(dummy(), false));
    for _ in 0..limits::TRACE_WAITING + 3 {
        let frame = Frame {
            header: b"",
            message: b"\x10\x03",
        };
        world.core.driver_frame(world.now, DUMMY, frame);
    }
    world.settle();
    assert_eq!(traced(&world.take(local(1))).len(), limits::TRACE_WAITING);
    assert_eq!(world.core.router.counters.dropped(Drop::TraceFrames), 3);
}

#[test]
fn there_are_only_so_many_tracers() {
    let mut world = World::new(&["5:0=x"]);
    for port in 0..limits::TRACERS as u16 {
        world.ask(local(100 + port), trace(dummy(), false));
    }
    let refused = world.ask(local(1), trace(dummy(), false));
    assert!(matches!(refused, reply::What::Refused(_)));
    // Again by the same client is no further one.
    let again = world.ask(local(100), trace(dummy(), false));
    assert!(matches!(again, reply::What::Done(_)));
}
