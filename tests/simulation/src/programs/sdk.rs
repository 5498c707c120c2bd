//! A driver with our SDK: the real session, subscribers and queue, and the real client logic for
//! its requests to other devices. PURE.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_client::simulation::Machine;
use amber_client::transport::Role;
use amber_driver::queue::Work;
use amber_driver::session::Session;
use amber_driver::{Origin, Request};
use amber_proto::{Device, DeviceType, FrameCodec, MsgType, Packet, dummy};
use bytes::BytesMut;
use prost::Message;
use tokio_util::codec::Encoder;

use crate::messages::{self, Tokens};
use crate::random::Random;

/// The device to which drivers send requests.
pub(super) const ASKED: Device = Device::new(DeviceType(77), 3);

/// Their deadline.
const PATIENCE: Duration = Duration::from_millis(800);

/// A driver with the SDK.
pub struct Sdk {
    pid: u32,
    session: Session<dummy::DriverMsg>,
    period: Duration,
    published: u64,
    devices: Machine,
    /// Requests that wait for the reply of another device.
    relayed: BTreeMap<u64, (Origin, dummy::DriverMsg)>,
    /// One in this many requests is passed on; none if 0.
    relays: u64,
    requests: u64,
}

impl Sdk {
    /// Creates one that publishes several times per second.
    pub fn new(pid: u32, rng: &mut Random) -> Self {
        Self {
            pid,
            session: Session::default(),
            period: Duration::from_millis(rng.u64(200..1000)),
            published: 0,
            devices: Machine::new(Role::Driver, rng.u32(..)),
            relayed: BTreeMap::new(),
            relays: *rng.choice(&[0, 1, 3]).unwrap_or(&0),
            requests: 0,
        }
    }

    pub(super) fn frame(
        &mut self,
        now: Instant,
        packet: Packet,
        tokens: &mut Tokens,
        out: &mut Vec<u8>,
    ) {
        self.session.handle_packet(now, packet);
        while let Some(packet) = self.session.poll_from_device() {
            self.devices.receive(now, packet);
        }
        while let Some(work) = self.session.poll_work(now) {
            if let Work::Request(request) = work {
                self.request(now, request, tokens);
            }
        }
        self.end_relays();
        self.write(out);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let times = [self.session.next_due(), self.devices.next_timeout()];
        times.into_iter().flatten().min()
    }

    pub(super) fn due(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.devices.next_timeout().is_some_and(|due| due <= now) {
            self.devices.timeout(now);
        }
        self.end_relays();
        if let Some(device) = self.session.take_due(now, self.period) {
            self.published += 1;
            let message = messages::publication(self.pid, self.published);
            let published = self.session.publish(device, message);
            debug_assert!(published.is_ok(), "it is short");
        }
        self.write(out);
    }

    fn request(&mut self, now: Instant, request: Request<dummy::DriverMsg>, tokens: &mut Tokens) {
        let Request { message, origin } = request;
        let answer = messages::answer(messages::token(&message.encode_to_vec()));
        self.requests += 1;
        if self.relays > 0 && self.requests.is_multiple_of(self.relays) {
            let question = messages::message(MsgType::Data, tokens.fresh()).encode_to_vec();
            let call = self.devices.call(now, ASKED, question.into(), PATIENCE);
            self.relayed.insert(call, (origin, answer));
        } else {
            let answered = self.session.answer(&origin, answer);
            debug_assert!(answered.is_ok(), "it is short");
        }
    }

    fn end_relays(&mut self) {
        while let Some((call, _)) = self.devices.poll_outcome() {
            // Answers whatever the other device replies, and also without a reply.
            if let Some((origin, answer)) = self.relayed.remove(&call) {
                let answered = self.session.answer(&origin, answer);
                debug_assert!(answered.is_ok(), "it is short");
            }
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        let mut bytes = BytesMut::new();
        while let Some(packet) = self.session.poll_output() {
            let encoded = FrameCodec.encode(packet, &mut bytes);
            debug_assert!(encoded.is_ok(), "it is short");
        }
        for packet in self.devices.take_sent() {
            let encoded = FrameCodec.encode(packet, &mut bytes);
            debug_assert!(encoded.is_ok(), "it is short");
        }
        out.extend_from_slice(&bytes);
    }
}
