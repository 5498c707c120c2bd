//! The rules for a server, on a virtual clock.

mod admission;
mod messages;
mod motion;
mod reports;

use amber_robot::robot::UserOrder;
use amber_values::WheelSpeeds;
use serde_json::Value;

use super::*;
use crate::galileo::codec::{SessionId, decode_reply};
use crate::testing::robot;

const CLIENT: &str = "192.168.0.9:5000";
const FAR: &str = "8.8.8.8:5000";

/// A server with its outputs, and the time.
struct World {
    server: Server,
    out: Outputs,
    now: Now,
    outputs: Vec<Output>,
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn url(path: &str) -> Vec<u8> {
    let url = format!("udp://192.168.0.132:3547/{path}?token=28b1c5");
    Frame::Connect(url.as_bytes()).encode()
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(robot());
        change(&mut config);
        let mut last = 0_u32;
        let ids = move || {
            last += 1;
            last.to_be_bytes()
        };
        let mut world = Self {
            server: Server::new(config, Box::new(ids)),
            out: Outputs::default(),
            now: Now::from_millis(1_000),
            outputs: Vec::new(),
        };
        world.server.start(&mut world.out);
        world.drain();
        assert_eq!(world.outputs.len(), 1);
        world.outputs.clear();
        world
    }

    fn drain(&mut self) {
        while let Some(output) = self.out.take() {
            self.outputs.push(output);
        }
    }

    /// A datagram arrives; returns what is sent back.
    fn receive(&mut self, from: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
        let datagram = Datagram {
            socket: SOCKET,
            from: address(from),
            bytes,
        };
        self.server
            .handle_datagram(self.now, datagram, &mut self.out);
        self.drain();
        self.sent_to(from)
    }

    /// Connects; returns the id.
    fn connect(&mut self, from: &str, path: &str) -> Option<SessionId> {
        let replies = self.receive(from, &url(path));
        assert_eq!(replies.len(), 1, "{path}");
        decode_reply(&replies[0]).unwrap()
    }

    fn session(&mut self, path: &str) -> SessionId {
        self.connect(CLIENT, path).unwrap()
    }

    fn frame(&mut self, from: &str, id: SessionId, op: Op<'_>) -> Vec<Vec<u8>> {
        self.receive(from, &Frame::Session { id, op }.encode())
    }

    fn text(&mut self, id: SessionId, text: &str) -> Vec<Vec<u8>> {
        self.frame(CLIENT, id, Op::Text(text.as_bytes()))
    }

    fn event(&mut self, event: Event) -> Vec<Vec<u8>> {
        self.server.handle_event(self.now, event, &mut self.out);
        self.drain();
        self.sent_to(CLIENT)
    }

    /// Lets time pass, with all timeouts; returns what is sent to one address, with its time since
    /// then.
    fn wait(&mut self, ms: u64, to: &str) -> Vec<(u64, Vec<u8>)> {
        let start = self.now.elapsed;
        let end = start + Duration::from_millis(ms);
        let mut sent = Vec::new();
        while let Some(due) = self.server.next_timeout().filter(|due| *due <= end) {
            self.now.elapsed = due.max(self.now.elapsed);
            self.server.handle_timeout(self.now, &mut self.out);
            self.drain();
            let at = u64::try_from((self.now.elapsed - start).as_millis()).unwrap();
            sent.extend(self.sent_to(to).into_iter().map(|bytes| (at, bytes)));
        }
        self.now.elapsed = end;
        sent
    }

    /// Takes the datagrams to one address out of the outputs.
    fn sent_to(&mut self, to: &str) -> Vec<Vec<u8>> {
        let to = address(to);
        let mut sent = Vec::new();
        self.outputs.retain(|output| match output {
            Output::Send(_, its, bytes) if *its == to => {
                sent.push(bytes.to_vec());
                false
            }
            _ => true,
        });
        sent
    }

    /// Takes the wheel speeds out of the outputs.
    fn driven(&mut self) -> Vec<WheelSpeeds> {
        let orders = std::mem::take(&mut self.outputs).into_iter();
        let speeds = orders.filter_map(|output| match output {
            Output::Order(_, UserOrder::Drive(_, speeds)) => Some(speeds),
            _ => None,
        });
        speeds.collect()
    }

    fn count(&self, reason: &str) -> u64 {
        self.out.tally.count(reason)
    }
}

fn op(bytes: &[u8]) -> Op<'_> {
    match Frame::decode(bytes) {
        Ok(Frame::Session { op, .. }) => op,
        other => panic!("{other:?}"),
    }
}

fn json(bytes: &[u8]) -> Value {
    match op(bytes) {
        Op::Text(text) => serde_json::from_slice(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Times of the PINGs among sent frames.
fn pings(sent: &[(u64, Vec<u8>)]) -> Vec<u64> {
    let pings = sent.iter().filter(|(_, bytes)| op(bytes) == Op::Ping);
    pings.map(|(at, _)| *at).collect()
}

fn closes(sent: &[Vec<u8>]) -> usize {
    sent.iter().filter(|bytes| op(bytes) == Op::Close).count()
}
