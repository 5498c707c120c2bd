//! A test harness with its own clock: a core, scripted processes, and clients that record every
//! datagram.

mod access;
mod bounds;
mod clients;
mod descriptions;
mod device0;
mod drivers;
mod feeds;
mod health;
mod log;
mod motion;
mod proof;
mod reload;
mod trace;
mod unreachable;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use amber_proto::frame::Frame;
use amber_proto::mediator::unavailable::Reason;
use amber_proto::mediator::{DriverState, Reply, Request, refusal, reply, request};
use amber_proto::{DeviceMessage, DeviceType, HeaderBytes, MsgType};
use bytes::Bytes;
use prost::Message;

use super::*;
use crate::counters::DropReason;
use crate::queue::Lane;
use crate::supervise::Exit;

struct World {
    core: Core,
    now: Instant,
    /// Running processes: key and pid.
    running: BTreeMap<DriverKey, u32>,
    pids: u32,
    /// Starts fail from now on.
    spawn_fails: bool,
    /// Drivers answer PINGs.
    drivers_answer: bool,
    actions: Vec<(DriverKey, ProcessAction)>,
    /// Datagrams that each client received.
    got: HashMap<SocketAddr, Vec<Vec<u8>>>,
    /// Frames that drivers received, without PINGs of the mediator: header, message.
    drivers_got: Vec<(DriverKey, Vec<u8>, Vec<u8>)>,
    driver_pings: usize,
    /// Drivers that do not read.
    stalled: BTreeSet<DriverKey>,
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
        Self::with_config(&config(drivers))
    }

    fn with_config(config: &Config) -> Self {
        let now = Instant::now();
        let core = Core::new(now, config, 1, || SystemTime::UNIX_EPOCH);
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
            stalled: BTreeSet::new(),
        };
        world.core.start(now, vec!["127.0.0.1:1".into()]);
        world.settle();
        world
    }

    fn settle(&mut self) {
        loop {
            if let Some((key, action)) = self.core.poll_action() {
                if action == ProcessAction::Spawn {
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
        let router = &self.core.router;
        router.totals().check(router.waiting()).unwrap();
        for (to, bytes) in self.core.outbox.datagrams() {
            self.got.entry(to.address).or_default().push(bytes.to_vec());
        }
        self.core.outbox.clear();
    }

    fn read_pipe(&mut self, key: DriverKey) {
        let Some(queue) = self.core.router.queue_mut(key) else {
            return;
        };
        if self.stalled.contains(&key) {
            if !queue.chunk().is_empty() {
                queue.wrote(0);
            }
            return;
        }
        queue.writable();
        let bytes = queue.chunk().to_vec();
        queue.wrote(bytes.len());
        assert!(
            bytes.is_empty() || self.running.contains_key(&key),
            "bytes for a driver that does not run"
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

    /// Sends a request to the mediator, and ignores the answer.
    fn request(&mut self, from: SocketAddr, what: request::What) {
        let mut message = mediator::DriverMsg::data();
        message.set_syn(Some(SynNum(77)));
        message.request = Some(Request { what: Some(what) });
        self.send(from, Device::MEDIATOR, &message.encode_to_vec());
    }

    fn ask(&mut self, from: SocketAddr, what: request::What) -> reply::What {
        // PINGs of the mediator.
        self.take(from);
        self.request(from, what);
        let mut datagrams = self.take(from);
        if let [ping] = &datagrams[..]
            && decode(ping).kind() == Some(MsgType::Ping)
        {
            // A client on another machine proves its address.
            self.send(from, Device::MEDIATOR, &pong(&decode(ping)));
            datagrams = self.take(from);
        }
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

    /// A driver reports its own health, or that of one of its devices.
    fn says(&mut self, key: DriverKey, about: Option<Device>, health: mediator::Health) {
        let mut message = mediator::DriverMsg::data();
        message.health = Some(health);
        self.tells_mediator(key, about, &message);
    }

    /// A driver sends a message to the mediator, about itself or one of its devices.
    fn tells_mediator(&mut self, key: DriverKey, about: Option<Device>, message: &impl Message) {
        let (header, message) = (HeaderBytes::new(about, None), message.encode_to_vec());
        let (header, message) = (header.as_slice(), &message[..]);
        assert!((self.core).driver_frame(self.now, key, Frame { header, message }));
        self.settle();
    }

    /// The events that a listener received.
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

    /// Lets time pass, with all timeouts in between.
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

fn pong(ping: &mediator::DriverMsg) -> Vec<u8> {
    let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
    pong.set_ack(ping.syn());
    pong.encode_to_vec()
}

/// What a client is told about an unavailable device: the number of its request, the reason and
/// the text.
fn refusal_of(datagram: &[u8]) -> (Option<SynNum>, Reason, String) {
    let message = decode(datagram);
    assert_eq!(message.kind(), Some(MsgType::DriverDied));
    let ack = message.ack();
    let why = message.unavailable.expect("a reason");
    (ack, why.reason(), why.message().to_owned())
}

fn decode(datagram: &[u8]) -> mediator::DriverMsg {
    let frame = Frame::from_datagram(datagram).unwrap();
    mediator::DriverMsg::decode(frame.message).unwrap()
}

fn dummy() -> Device {
    Device::new(DeviceType::DUMMY, 0)
}

const SECOND: Duration = Duration::from_secs(1);
