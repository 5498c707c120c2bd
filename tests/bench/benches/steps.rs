//! The cost of the steps of a message, without the operating system: `cargo bench -p amber-bench`.
//! IO.
//!
//! Reports the nanoseconds of the fastest of many short runs, because other load on the machine
//! affects that value least. `cargo test` only checks that everything works.

#![allow(clippy::print_stdout)] // What a program is for.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{self, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use amber_bench::probe;
use amber_core::Core;
use amber_core::address::{ClientAddress, DriverKey};
use amber_core::config::Config;
use amber_core::supervise::Event;
use amber_proto::feed::{Direction, Record, Writer};
use amber_proto::{ClientId, DriverHdr, Frame, Header, HeaderBytes, MsgType};
use amber_record::Recording;
use amber_reflect::Schemas;
use mcap::records::MessageHeader;
use prost::Message;

/// Messages in one turn of the shell.
const TURN: u32 = 64;

fn main() {
    // What `cargo bench` passes and `cargo test` does not.
    let measures = std::env::args().any(|word| word == "--bench");
    let bench = Bench {
        runs: if measures { 400 } else { 2 },
    };
    let (request, _) = probe::request(MsgType::Data, 64);
    let answer = frame_from_driver(&[2], 64);

    bench.step("read a datagram", || {
        let frame = Frame::from_datagram(black_box(&request)).expect("is one");
        black_box(Header::parse(frame.header).expect("is one").device());
    });
    bench.step("write a header for a driver", || {
        black_box(HeaderBytes::new(None, Some(black_box(ClientId(4711)))));
    });
    for (clients, of_one_host) in [(1, 1), (100, 1), (10_000, 1), (1000, 1000)] {
        let mut mediator = Mediator::of_hosts(clients, of_one_host);
        let mut next = 0;
        let what = if of_one_host > 1 {
            "of one host"
        } else {
            "known"
        };
        bench.step(&format!("client to driver, {clients} {what}"), || {
            next = (next + 1) % clients;
            mediator.request(next, &request);
        });
    }
    for (what, of_one_host) in [("a full table", 1), ("a full host", PORTS)] {
        let mut mediator = Mediator::of_hosts(CLIENTS, of_one_host);
        let mut next = CLIENTS;
        bench.step(&format!("new client, {what}"), || {
            next += 1;
            mediator.request(next, &request);
        });
    }
    let mut mediator = Mediator::new(1);
    bench.step("driver to client", || mediator.answer(&answer, 1));
    for clients in [10, 100, 1000] {
        let mut mediator = Mediator::new(clients);
        let ids: Vec<i32> = (2..clients as i32 + 2).collect();
        let published = frame_from_driver(&ids, 64);
        bench.step(&format!("driver to {clients} clients"), || {
            mediator.answer(&published, clients as usize);
        });
    }
    for bytes in [64, 6800] {
        let feed = feed_of(bytes);
        let mut recording =
            Recording::new(Nowhere(0), Arc::new(Schemas::built_in())).expect("begins");
        let mut next = feed.iter().cycle();
        bench.step(&format!("record a message, {bytes} bytes"), || {
            let record = next.next().expect("is endless");
            let (record, _) = Record::parse(black_box(record))
                .expect("is valid")
                .expect("is whole");
            recording.add(&record).expect("is written");
        });
        let mut alone = Alone::new();
        let message = vec![0; bytes + 4];
        bench.step(&format!("the same by mcap alone, {bytes} bytes"), || {
            alone.add(black_box(&message));
        });
    }
}

/// Records of a feed: a request and its answer, again and again.
fn feed_of(bytes: usize) -> [Vec<u8>; 2] {
    let message = probe::message(MsgType::Data, bytes);
    [Direction::ToDriver, Direction::FromDriver].map(|direction| {
        let mut record = Vec::new();
        let mut writer = Writer {
            bytes: &mut record,
            time_ns: 1_700_000_000_000_000_000,
        };
        writer.frame(direction, probe::DEVICE, "", [ClientId(4711)], &message);
        record
    })
}

/// The library for MCAP files without anything around it.
struct Alone {
    writer: mcap::Writer<Nowhere>,
    channel: u16,
    sequence: u32,
}

impl Alone {
    fn new() -> Self {
        let mut writer = mcap::WriteOptions::new()
            .compression(None)
            .chunk_size(Some(1024 * 1024))
            .create(Nowhere(0))
            .expect("begins");
        let schema = writer.add_schema("x", "protobuf", b"").expect("is new");
        let channel = writer.add_channel(schema, "/x", "protobuf", &BTreeMap::new());
        Self {
            writer,
            channel: channel.expect("is new"),
            sequence: 0,
        }
    }

    fn add(&mut self, message: &[u8]) {
        self.sequence += 1;
        let header = MessageHeader {
            channel_id: self.channel,
            sequence: self.sequence,
            log_time: 1_700_000_000_000_000_000,
            publish_time: 1_700_000_000_000_000_000,
        };
        self.writer
            .write_to_known_channel(&header, message)
            .expect("is written");
    }
}

/// Takes everything, and knows only how much that was.
struct Nowhere(u64);

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Nowhere {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0 = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) | SeekFrom::End(by) => self.0.saturating_add_signed(by),
        };
        Ok(self.0)
    }
}

struct Bench {
    runs: u32,
}

impl Bench {
    fn step(&self, name: &str, mut step: impl FnMut()) {
        let fastest = (0..self.runs)
            .map(|_| {
                let start = Instant::now();
                (0..TURN).for_each(|_| step());
                start.elapsed()
            })
            .min();
        let ns = fastest.unwrap_or(Duration::ZERO).as_nanos() as f64 / f64::from(TURN);
        println!("{name:32} {ns:9.1} ns");
    }
}

/// A mediator core without a shell, with one driver and known clients.
struct Mediator {
    core: Core,
    now: Instant,
    turn: u32,
    of_one_host: u32,
}

const DRIVER: DriverKey = DriverKey(0);

/// The number of clients in a full table.
const CLIENTS: u32 = 20_000;

/// The number of ports in use on one host.
const PORTS: u32 = 30_000;

impl Mediator {
    fn new(clients: u32) -> Self {
        Self::of_hosts(clients, 1)
    }

    fn of_hosts(clients: u32, of_one_host: u32) -> Self {
        let mut config = Config::default();
        config.add_driver("5:0=echo").expect("is a driver");
        config.limits.clients = (CLIENTS as usize).try_into().expect("is not 0");
        let now = Instant::now();
        let core = Core::new(now, &config, 0, || SystemTime::UNIX_EPOCH);
        let mut mediator = Self {
            core,
            now,
            turn: 0,
            of_one_host,
        };
        mediator.core.start(now, Vec::new());
        let spawned = Event::Spawned { pid: 4711 };
        mediator.core.driver_event(now, DRIVER, spawned);
        while mediator.core.poll_action().is_some() {}
        let (request, _) = probe::request(MsgType::Data, 64);
        (0..clients).for_each(|client| mediator.request(client, &request));
        mediator
    }

    fn request(&mut self, client: u32, datagram: &[u8]) {
        let ip = Ipv4Addr::from(0x0a00_0000 + client / self.of_one_host);
        // Ports that no mediator uses.
        let port = 30_000 + (client % self.of_one_host) as u16;
        let from = ClientAddress {
            socket: 0,
            address: (ip, port).into(),
        };
        self.core.datagram(self.now, from, datagram);
        self.turn += 1;
        if self.turn.is_multiple_of(TURN) {
            self.write();
        }
    }

    /// Once per turn, the pipe takes everything.
    fn write(&mut self) {
        while let Some(key) = self.core.poll_queue() {
            let queue = self.core.queue_mut(key).expect("is known");
            let bytes = black_box(queue.chunk()).len();
            queue.wrote(bytes);
        }
    }

    fn answer(&mut self, frame: &[u8], datagrams: usize) {
        let frame = Frame::from_stream(frame).expect("is one");
        assert!(self.core.driver_frame(self.now, DRIVER, frame));
        self.turn += 1;
        if self.turn.is_multiple_of(TURN) || datagrams > 1 {
            assert!(self.core.outbox().datagrams().len() >= datagrams);
            self.core
                .transmit(|outbox, _| black_box(outbox.runs(TURN as usize).count()));
        }
    }
}

fn frame_from_driver(clients: &[i32], bytes: usize) -> Vec<u8> {
    let header = DriverHdr {
        client_ids: clients.to_vec(),
        ..DriverHdr::default()
    };
    let mut frame = Vec::new();
    Frame {
        header: &header.encode_to_vec(),
        message: &probe::message(MsgType::Data, bytes),
    }
    .encode(&mut frame)
    .expect("short enough");
    frame
}
