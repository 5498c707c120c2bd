//! A router with scripted clients and drivers.

mod crowds;
mod deaths;
mod loops;
mod recorded;
mod routing;

use std::net::Ipv4Addr;
use std::time::Duration;

use amber_proto::mediator;
use prost::Message;

use super::*;
use crate::limits;

/// A router with drivers of one or more devices, and its output.
struct World {
    router: Router,
    out: Outbox,
    now: Instant,
    keys: Vec<DriverKey>,
}

/// The output for one input, in readable form.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Client's port and its datagram.
    clients: Vec<(u16, Vec<u8>)>,
    /// Driver, header and message.
    drivers: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

const A: u16 = 1001;
const B: u16 = 1002;

fn client(port: u16) -> ClientAddress {
    ClientAddress {
        socket: 0,
        address: (Ipv4Addr::LOCALHOST, port).into(),
    }
}

fn device(text: &str) -> Device {
    text.parse().unwrap()
}

fn header(device: Option<Device>, client: Option<i32>) -> Vec<u8> {
    HeaderBytes::new(device, client.map(ClientId))
        .as_slice()
        .to_vec()
}

fn frame(header: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame { header, message }.encode(&mut bytes).unwrap();
    bytes
}

impl World {
    /// Drivers with their devices, separated by commas; ids count from 1.
    fn new(drivers: &[&str]) -> Self {
        Self::with_clients(drivers, 100)
    }

    fn with_clients(drivers: &[&str], clients: usize) -> Self {
        let now = Instant::now();
        let mut router = Router::new(
            now,
            NonZeroUsize::new(clients).unwrap(),
            Bounds::default(),
            7,
        );
        let mut keys = Vec::new();
        for (i, devices) in drivers.iter().enumerate() {
            let key = DriverKey(i as u32);
            router.add_driver(key, devices.split(',').map(device).collect());
            keys.push(key);
        }
        for key in &keys {
            router.driver_up(*key);
        }
        Self {
            router,
            out: Outbox::default(),
            now,
            keys,
        }
    }

    /// A client sends a datagram.
    fn datagram(&mut self, port: u16, bytes: &[u8]) -> Seen {
        let for_mediator = self
            .router
            .datagram(self.now, client(port), bytes, &mut self.out)
            .is_some();
        let seen = self.seen();
        assert!(!for_mediator || seen == Seen::default());
        seen
    }

    /// A client sends a message to a device.
    fn request(&mut self, port: u16, to: &str, message: &[u8]) -> Seen {
        self.datagram(port, &frame(&header(Some(device(to)), None), message))
    }

    /// A driver writes a frame.
    fn write(&mut self, driver: usize, header: &[u8], message: &[u8]) -> Seen {
        let key = self.keys[driver];
        let parsed = Header::parse(header).unwrap();
        let frame = Frame { header, message };
        // The frame does not begin the buffer.
        let mut buffer = vec![0; 3];
        for part in [header, message] {
            buffer.extend_from_slice(&(part.len() as u16).to_be_bytes());
            buffer.extend_from_slice(part);
        }
        let (now, at) = (self.now, Some(3));
        self.router.driver_frame(
            now,
            key,
            &parsed,
            frame,
            at,
            &mut { Portion::WHOLE },
            &mut self.out,
        );
        self.out.lend(buffer);
        self.seen()
    }

    fn announce(&mut self, port: u16) -> ClientId {
        let said = said(Sender::Client(client(port)));
        self.router.announce(self.now, &said).unwrap()
    }

    fn driver_down(&mut self, driver: usize) -> Seen {
        self.router.driver_down(self.keys[driver], &mut self.out);
        self.seen()
    }

    fn seen(&mut self) -> Seen {
        let mut seen = Seen::default();
        for (to, bytes) in self.out.datagrams() {
            seen.clients.push((to.address.port(), bytes.to_vec()));
        }
        self.out.clear();
        let mut dirty = Vec::new();
        while let Some(key) = self.router.poll_dirty() {
            dirty.push(key);
        }
        dirty.sort();
        for key in dirty {
            let driver = self.keys.iter().position(|k| *k == key).unwrap();
            let queue = self.router.queue_mut(key).unwrap();
            let bytes = queue.chunk().to_vec();
            queue.wrote(bytes.len());
            let mut rest = &bytes[..];
            while let Some(frame) = Frame::from_stream(rest) {
                seen.drivers
                    .push((driver, frame.header.to_vec(), frame.message.to_vec()));
                rest = &rest[frame.wire_len()..];
            }
            assert!(rest.is_empty());
        }
        seen
    }

    fn dropped(&self, why: DropReason) -> u64 {
        self.router.counters.dropped(why)
    }
}

/// A message for the mediator itself.
fn said(from: Sender) -> ForMediator<'static> {
    ForMediator {
        from,
        about: None,
        message: b"",
        bytes: 12,
    }
}

/// The same without the mediator's reasons.
fn bare(mut seen: Seen) -> Seen {
    let strip = |message: &[u8]| {
        let mut message = mediator::DriverMsg::decode(message).unwrap();
        assert!(message.unavailable.take().is_some(), "it says why");
        message.encode_to_vec()
    };
    for (_, datagram) in &mut seen.clients {
        let part = Frame::from_datagram(datagram).unwrap();
        *datagram = frame(part.header, &strip(part.message));
    }
    for (_, _, message) in &mut seen.drivers {
        *message = strip(message);
    }
    seen
}

fn to_driver(driver: usize, header: &[u8], message: &[u8]) -> Seen {
    Seen {
        drivers: vec![(driver, header.to_vec(), message.to_vec())],
        ..Seen::default()
    }
}

fn to_client(port: u16, header: &[u8], message: &[u8]) -> Seen {
    Seen {
        clients: vec![(port, frame(header, message))],
        ..Seen::default()
    }
}

/// CLIENT_DIED for one client.
fn client_died(driver: usize, id: i32) -> (usize, Vec<u8>, Vec<u8>) {
    (driver, header(None, Some(id)), vec![0x10, 4])
}
