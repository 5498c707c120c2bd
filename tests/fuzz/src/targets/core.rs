//! The core of the mediator: messages for itself, and whole schedules of
//! everything that can happen to it. PURE, but for the start of its clock.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, SystemTime};

use amber_mediator::config::Config;
use amber_mediator::core::{Core, Order};
use amber_mediator::router::{Client, ClientAddress, DriverKey, Unreachable};
use amber_mediator::supervise::{Action, Event, Exit};
use amber_proto::limits::{MAX_DATAGRAM, OLD_CLIENT_DATAGRAM};
use amber_proto::{ClientId, Device, Frame, Header, HeaderBytes};

use crate::input::Input;

/// Few clients and short queues, so that bounds are reached.
const CONFIG: &str = "\
[limits]
clients = 6
clients_per_host = 3
queue_frames = 8
queue_bytes = 1024
[[driver]]
device = '5:0'
command = ['x']
[[driver]]
devices = ['77:3', '77:4']
command = ['y']
restart = 'never'
";

/// The same with one driver changed, one new and one missing, and fewer of a host.
const OTHER_CONFIG: &str = "\
[limits]
clients_per_host = 2
[[driver]]
device = '5:0'
command = ['x', 'again']
[[driver]]
devices = ['77:4', '78:0']
command = ['z']
";

/// A message for the mediator itself, from the same machine and from another.
pub(super) fn control(data: &[u8]) {
    let mut world = World::new();
    for address in [local(1), ([192, 168, 1, 7], 4000).into()] {
        let before = world.sent;
        world.datagram(address, &frame(Some(Device::MEDIATOR), data));
        assert!(world.sent - before <= 4, "one answer, and what it leads to");
    }
}

/// Everything that can happen, in any order.
pub(super) fn schedule(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new();
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.core.shut_down(world.now);
    world.settle();
    for key in world.processes.keys().copied().collect::<Vec<_>>() {
        world.exits(key, 0);
    }
    assert!(world.core.is_finished(), "{}", world.core.unfinished());
}

struct World {
    core: Core,
    now: Instant,
    processes: BTreeMap<DriverKey, Process>,
    spawn_fails: bool,
    pids: u32,
    sent: usize,
}

#[derive(Default)]
struct Process {
    /// What it has written and nobody has understood yet.
    output: Vec<u8>,
    /// What it has read, but for whole frames.
    input: Vec<u8>,
    /// How much its pipe takes before it is full.
    room: Option<usize>,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let core = Core::new(now, &config(CONFIG), 1, || SystemTime::UNIX_EPOCH);
        let mut world = Self {
            core,
            now,
            processes: BTreeMap::new(),
            spawn_fails: false,
            pids: 100,
            sent: 0,
        };
        world.core.start(now, vec!["127.0.0.1:1".into()]);
        world.settle();
        world
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let (now, kind) = (self.now, input.byte() % 16);
        let key = DriverKey(u32::from(input.byte() % 4));
        match kind {
            0 => self.datagram(address(input.byte()), input.piece()),
            1 => self.datagram(address(input.byte()), &frame(None, input.piece())),
            2..=4 => {
                let device = device(input.byte());
                let from = address(input.byte());
                self.datagram(from, &frame(Some(device), input.piece()));
            }
            5 => self.driver_writes(key, input.piece()),
            6 | 7 => {
                let (device, client) = (device(input.byte()), ClientId(input.byte().into()));
                let (with_device, with_client) = (input.flag(), input.flag());
                let device = with_device.then_some(device);
                let header = HeaderBytes::new(device, with_client.then_some(client));
                let message = input.piece();
                let header = header.as_slice();
                let mut bytes = Vec::new();
                let encoded = Frame { header, message }.encode(&mut bytes);
                encoded.expect("it is short");
                self.driver_writes(key, &bytes);
            }
            8 | 9 => {
                self.now += Duration::from_millis(input.number().into());
                self.core.timeout(self.now);
            }
            10 => self.exits(key, i32::from(input.byte() % 2)),
            11 => {
                let how = [Unreachable::PortClosed, Unreachable::NoRoute];
                let at = ClientAddress {
                    socket: 0,
                    address: address(input.byte()),
                };
                let how = how[usize::from(input.byte() % 2)];
                self.core.unreachable(now, at, how);
            }
            12 => {
                if let Some(process) = self.processes.get_mut(&key) {
                    process.room = match input.byte() {
                        0 => None,
                        room => Some(room.into()),
                    };
                    if let Some(queue) = self.core.router.queue_mut(key) {
                        queue.writable();
                    }
                    self.read_pipe(key);
                }
            }
            13 => self
                .core
                .driver_said(now, key, &String::from_utf8_lossy(input.piece())),
            14 if self.processes.contains_key(&key) => {
                let output = &self.processes[&key].output;
                match input.byte() % 2 {
                    0 if !output.is_empty() => self.core.driver_stalled(now, key, output),
                    _ => self.core.driver_event(now, key, Event::OutputClosed),
                }
            }
            15 => match input.byte() {
                0 => self.spawn_fails = !self.spawn_fails,
                1 => drop(self.core.apply(now, &config(OTHER_CONFIG))),
                2 => drop(self.core.apply(now, &config(CONFIG))),
                3 => self.core.driver_event(now, key, Event::Restart),
                4 => self.core.driver_event(now, key, Event::Stop),
                5 => self.core.driver_event(now, key, Event::Start),
                _ => {}
            },
            _ => {}
        }
        self.settle();
        self.check();
    }

    fn datagram(&mut self, address: SocketAddr, bytes: &[u8]) {
        let from = ClientAddress { socket: 0, address };
        self.core.datagram(self.now, from, bytes);
        self.settle();
    }

    /// As the shell does it.
    fn driver_writes(&mut self, key: DriverKey, bytes: &[u8]) {
        let Some(process) = self.processes.get_mut(&key) else {
            return;
        };
        process.output.extend_from_slice(bytes);
        let mut output = std::mem::take(&mut process.output);
        let (mut start, mut sane) = (0, true);
        while let Some(frame) = Frame::from_stream(&output[start..]) {
            let length = frame.wire_len();
            sane = sane && self.core.driver_frame(self.now, key, frame);
            if !sane {
                break;
            }
            start += length;
        }
        output.drain(..start);
        if !sane || !self.core.driver_prefix(self.now, key, &output) {
            output.clear();
        }
        if let Some(process) = self.processes.get_mut(&key) {
            process.output = output;
        }
    }

    fn exits(&mut self, key: DriverKey, code: i32) {
        if self.processes.remove(&key).is_some() {
            let exit = Exit {
                text: format!("exited with code {code}"),
                success: code == 0,
            };
            self.core.exited(self.now, key, exit);
            self.settle();
        }
    }

    fn settle(&mut self) {
        for turns in 0.. {
            assert!(turns < 10_000, "it never comes to rest");
            if let Some((key, action)) = self.core.poll_action() {
                if action == Action::Spawn {
                    self.spawn(key);
                }
            } else if let Some(key) = self.core.router.poll_dirty() {
                self.read_pipe(key);
            } else if let Some(order) = self.core.poll_order() {
                let (Order::Reload(ticket) | Order::SetLogLevel(ticket, _)) = order;
                self.core.answer(ticket, Ok("done".into()));
            } else {
                break;
            }
        }
        self.core.send_traced(self.now);
        for (to, bytes) in self.core.outbox.datagrams() {
            self.sent += 1;
            assert!(bytes.len() <= MAX_DATAGRAM);
            let frame = Frame::from_datagram(bytes).expect("a datagram is one frame");
            let header = Header::parse(frame.header).expect("a good header");
            assert!(!header.has_clients(), "clients never see ids");
            assert!(header.device().is_some());
            if header.device() == Some(Device::MEDIATOR) {
                assert!(bytes.len() <= OLD_CLIENT_DATAGRAM);
            }
            assert_ne!(to.address.port(), 0);
        }
        self.core.outbox.clear();
    }

    fn spawn(&mut self, key: DriverKey) {
        assert!(
            !self.processes.contains_key(&key),
            "two processes of {key:?}"
        );
        assert!(self.core.driver_config(key).is_some());
        if self.spawn_fails {
            let (error, hint) = ("no such file".into(), "check the path".into());
            return self.core.spawn_failed(self.now, key, error, hint);
        }
        self.pids += 1;
        self.processes.insert(key, Process::default());
        let pid = self.pids;
        self.core
            .driver_event(self.now, key, Event::Spawned { pid });
    }

    /// The driver reads as much as it likes: whole frames in the end.
    fn read_pipe(&mut self, key: DriverKey) {
        let Some(queue) = self.core.router.queue_mut(key) else {
            return;
        };
        let Some(process) = self.processes.get_mut(&key) else {
            queue.clear();
            return;
        };
        while !queue.chunk().is_empty() {
            let chunk = queue.chunk();
            let taken = process.room.unwrap_or(usize::MAX).min(chunk.len());
            process.input.extend_from_slice(&chunk[..taken]);
            process.room = process.room.map(|room| room - taken);
            queue.wrote(taken);
        }
        let mut start = 0;
        while let Some(frame) = Frame::from_stream(&process.input[start..]) {
            Header::parse(frame.header).expect("a driver reads good headers");
            start += frame.wire_len();
        }
        process.input.drain(..start);
        // One that is being ended has no use for the rest of a frame.
        let is_up = self
            .core
            .router
            .route(key)
            .is_some_and(|route| route.id.is_some());
        if process.room.is_none() && is_up {
            assert!(process.input.is_empty(), "half a frame");
        }
    }

    fn check(&mut self) {
        let clients = self.core.router.clients.in_order();
        assert!(clients.len() <= 6);
        for first in [127, 192, 0xfd] {
            let is_there = |client: &&&Client| first_byte(client.address()) == first;
            assert!(clients.iter().filter(is_there).count() <= 3);
        }
        let mut ids = Vec::new();
        for key in (0..16).map(DriverKey) {
            let Some(route) = self.core.router.route(key) else {
                continue;
            };
            ids.extend(route.id);
            if route.id.is_some() {
                assert!(self.processes.contains_key(&key), "an id without a process");
            }
        }
        ids.extend(clients.iter().map(|client| client.id));
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "two have the same id");
        let router = &self.core.router;
        let accounted = router.totals().check(router.waiting());
        accounted.expect("everything is accounted for");
        let _ = (self.core.summary(), self.core.next_timeout());
    }
}

fn config(text: &str) -> Config {
    Config::parse(text, "amber.toml".as_ref()).expect("a good configuration")
}

/// Mostly of this machine; of another, and of an IPv6 network.
fn address(number: u8) -> SocketAddr {
    let port = u16::from(number % 8);
    match number / 64 {
        0 | 1 => local(number),
        2 => ([192, 168, 1, 7], port).into(),
        _ => ([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number % 2)], port).into(),
    }
}

fn first_byte(address: SocketAddr) -> u8 {
    match address.ip() {
        IpAddr::V4(v4) => v4.octets()[0],
        IpAddr::V6(v6) => v6.octets()[0],
    }
}

fn local(port: u8) -> SocketAddr {
    ([127, 0, 0, 1], u16::from(port % 8)).into()
}

/// Those that there are, and a few that there are not.
fn device(number: u8) -> Device {
    let names = ["5:0", "77:3", "77:4", "78:0", "123:4", "0:0"];
    names[usize::from(number) % names.len()]
        .parse()
        .expect("a device")
}

fn frame(device: Option<Device>, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = HeaderBytes::new(device, None);
    let header = header.as_slice();
    // What is too long is cut: datagrams are.
    let message = &message[..message.len().min(32_767)];
    let encoded = Frame { header, message }.encode(&mut bytes);
    encoded.expect("it is short");
    bytes
}
